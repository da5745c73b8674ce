package screening

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TermChange is what differs about one term between two packs.
type TermChange struct {
	Term   string
	Kind   string // added, removed or changed
	Fields []FieldChange
}

// FieldChange is one key of a term, in its JSON form; empty means absent.
type FieldChange struct {
	Key, Old, New string
}

// DiffPacks lists the terms that differ, in lexical order. Two packs without a
// difference decide alike; whether a difference matters is for people to say. Of
// a pack and a profile that extends it, what the profile raises is a change of the
// pack's terms.
func DiffPacks(old, next *Pack) ([]TermChange, error) {
	a, err := termMembers(old, next)
	if err != nil {
		return nil, err
	}
	b, err := termMembers(next, old)
	if err != nil {
		return nil, err
	}
	var changes []TermChange
	if fields := packFields(old, next); fields != nil {
		changes = append(changes, TermChange{PackItself, "changed", fields})
	}
	for _, id := range bothKeys(a, b) {
		was, had := a[id]
		is, has := b[id]
		kind := "changed"
		switch {
		case strings.HasPrefix(id, raiseOf): // a change of another pack's term
		case !had:
			kind = "added"
		case !has:
			kind = "removed"
		}
		var fields []FieldChange
		for _, key := range bothKeys(was, is) {
			if !bytes.Equal(was[key], is[key]) {
				fields = append(fields, FieldChange{key, string(was[key]), string(is[key])})
			}
		}
		if len(fields) > 0 {
			changes = append(changes, TermChange{id, kind, fields})
		}
	}
	return changes, nil
}

// raiseOf precedes the id of a term that a profile raises and that is not at hand.
const raiseOf = "raise of "

// PackItself stands for the pack where a change is not about a term.
const PackItself = "(pack)"

// packFields are the differences beside the terms that a decision can show.
func packFields(old, next *Pack) (fields []FieldChange) {
	all := []FieldChange{{"extends", old.extended(), next.extended()}}
	if !old.isOn(next) && !next.isOn(old) { // a profile stands beside its pack, whose texts stay
		all = append(all, FieldChange{"layer", string(old.Layer), string(next.Layer)},
			FieldChange{"preferred_hedge_soft", old.PreferredHedgeSoft, next.PreferredHedgeSoft},
			FieldChange{"preferred_hedge_strong", old.PreferredHedgeStrong, next.PreferredHedgeStrong})
	}
	for _, f := range all {
		if f.Old != f.New {
			fields = append(fields, f)
		}
	}
	return fields
}

// bothKeys gives the keys of two maps, sorted, each once.
func bothKeys[V any](a, b map[string]V) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// extended lists what a profile is bound to, "" for any other pack.
func (p *Pack) extended() string {
	var list []string
	for _, x := range p.Extends {
		list = append(list, x.ID+" "+x.SHA256.String())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// isOn reports whether p is a profile of another pack, in whatever version.
func (p *Pack) isOn(other *Pack) bool {
	return slices.ContainsFunc(p.Extends, func(x Extended) bool { return x.ID == other.ID })
}

// inView gives a pack's terms as they are to be compared with those of another
// pack. A profile of that pack shows its terms, raised; a raise of a term that is
// not at hand stands for itself.
func (p *Pack) inView(other *Pack) []Term {
	out := slices.Clone(p.Terms)
	extends := p.isOn(other)
	if extends {
		out = slices.Concat(out, other.Terms)
	}
	for _, r := range p.Raises {
		i := slices.IndexFunc(out, func(t Term) bool { return t.ID == r.Term })
		if !extends || i < 0 {
			out = append(out, Term{ID: raiseOf + r.Term, Response: r.Response, Unchecked: r.Unchecked})
			continue
		}
		up := r.On(&out[i])
		if plain := up; out[i].Unchecked == 0 {
			plain.Unchecked = 0
			if plain.unchecked(CauseNoEvidence) == up.Unchecked {
				up = plain // it follows from the response, and stays unsaid
			}
		}
		out[i] = up
	}
	return out
}

// termMembers gives every term's keys in canonical JSON.
func termMembers(p, other *Pack) (map[string]map[string]jsontext.Value, error) {
	terms := p.inView(other)
	out := make(map[string]map[string]jsontext.Value, len(terms))
	for i := range terms {
		raw, err := json.Marshal(&terms[i])
		if err != nil {
			return nil, err
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		delete(members, "id") // it is the key
		for key, v := range members {
			if err := v.Canonicalize(); err != nil {
				return nil, err
			}
			members[key] = v
		}
		out[terms[i].ID] = members
	}
	return out, nil
}
