package console

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
	"weir/screening"
)

type packPage struct {
	Ref  screening.PackRef
	Pack *screening.Pack
}

// vocabulary lists the terms in force.
func (c *Console) vocabulary(w http.ResponseWriter, r *http.Request, v *visit) error {
	voc := c.desk.Setup().Vocabulary
	d := struct {
		Packs  []packPage
		Config screening.VocabularyConfig
	}{Config: voc.Config()}
	for _, ref := range voc.Packs() {
		p, _ := voc.Pack(ref.ID)
		d.Packs = append(d.Packs, packPage{ref, p})
	}
	return c.render(w, r, v, http.StatusOK, "vocabulary", "Vocabulary", d)
}

type termData struct {
	*screening.Term
	Tagged    string
	Pack      screening.PackRef
	Check     string // the clause, as JSON
	Unchecked string // what happens when it cannot be checked, "" for the default
}

func (c *Console) term(w http.ResponseWriter, r *http.Request, v *visit) error {
	voc := c.desk.Setup().Vocabulary
	d := termData{Tagged: r.PathValue("layer") + ":" + r.PathValue("term")}
	var ok bool
	if d.Term, ok = voc.Term(d.Tagged); !ok {
		return review.ErrNotFound
	}
	for _, ref := range voc.Packs() {
		p, _ := voc.Pack(ref.ID)
		for i := range p.Terms {
			if p.Terms[i].ID == d.ID {
				d.Pack = ref
			}
		}
	}
	if d.ViolatedIf != nil {
		check, err := json.Marshal(d.ViolatedIf, json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		d.Check = cut(12_000, string(check))
	}
	if d.Term.Unchecked != 0 {
		d.Unchecked = d.Term.Unchecked.String()
	}
	return c.render(w, r, v, http.StatusOK, "term", d.Title, d)
}
