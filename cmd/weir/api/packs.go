package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

type wirePack struct {
	screening.PackRef
	Title   string               `json:"title"`
	Extends []screening.Extended `json:"extends,omitempty"` // of a profile
	Raises  []screening.Raise    `json:"raises,omitempty"`
	Terms   []wireTerm           `json:"terms"` // as the pack has them, not as profiles raise them
}

type wireTerm struct {
	ID            string                `json:"id"`
	Title         string                `json:"title"`
	Description   string                `json:"description"`
	Severity      string                `json:"severity"`
	Response      screening.Response    `json:"response"`
	Remedy        string                `json:"remedy,omitzero"`
	References    []screening.Reference `json:"references,omitempty"`
	EffectiveFrom screening.Day         `json:"effective_from,omitzero"`
	Sunset        screening.Day         `json:"sunset,omitzero"`
}

func packJSON(ref screening.PackRef, p *screening.Pack) wirePack {
	w := wirePack{PackRef: ref, Title: p.Title, Extends: p.Extends, Raises: p.Raises, Terms: make([]wireTerm, len(p.Terms))}
	for i, t := range p.Terms {
		w.Terms[i] = wireTerm{t.ID, t.Title, t.Description, t.Severity, t.Response, t.Remedy, t.References, t.EffectiveFrom, t.Sunset}
	}
	return w
}

// packList is what is in force.
type packList struct {
	Packs      []wirePack `json:"packs"`
	Unratified bool       `json:"unratified"`
	AuditOnly  bool       `json:"audit_only"`
	Engine     string     `json:"engine"` // which decides by them
}

// listPacks names the packs in force, and whether they really are.
func (s *Server) listPacks(c echo.Context) error {
	v := gateOf(c).Desk.Setup().Vocabulary
	out := packList{Unratified: v.Config().Unratified, AuditOnly: v.Config().AuditOnly, Engine: screening.EngineVersion}
	for _, ref := range v.Packs() {
		p, _ := v.Pack(ref.ID)
		out.Packs = append(out.Packs, packJSON(ref, p))
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getPack(c echo.Context) error {
	v := gateOf(c).Desk.Setup().Vocabulary
	for _, ref := range v.Packs() {
		if ref.ID == c.Param("id") {
			p, _ := v.Pack(ref.ID)
			return reply(c, http.StatusOK, packJSON(ref, p))
		}
	}
	return review.ErrNotFound
}
