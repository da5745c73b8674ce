package screening

import (
	"bytes"
	"maps"
	"slices"

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
// difference decide alike; whether a difference matters is for people to say.
func DiffPacks(old, next *Pack) ([]TermChange, error) {
	a, err := termMembers(old)
	if err != nil {
		return nil, err
	}
	b, err := termMembers(next)
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

// PackItself stands for the pack where a change is not about a term.
const PackItself = "(pack)"

// packFields are the differences beside the terms that a decision can show.
func packFields(old, next *Pack) (fields []FieldChange) {
	for _, f := range []FieldChange{
		{"layer", string(old.Layer), string(next.Layer)},
		{"preferred_hedge_soft", old.PreferredHedgeSoft, next.PreferredHedgeSoft},
		{"preferred_hedge_strong", old.PreferredHedgeStrong, next.PreferredHedgeStrong},
	} {
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

// termMembers gives every term's keys in canonical JSON.
func termMembers(p *Pack) (map[string]map[string]jsontext.Value, error) {
	out := make(map[string]map[string]jsontext.Value, len(p.Terms))
	for i := range p.Terms {
		raw, err := json.Marshal(&p.Terms[i])
		if err != nil {
			return nil, err
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		for key, v := range members {
			if err := v.Canonicalize(); err != nil {
				return nil, err
			}
			members[key] = v
		}
		out[p.Terms[i].ID] = members
	}
	return out, nil
}
