package screening

import (
	"errors"
	"fmt"
	"slices"
)

// Precedent is a reviewed example that people hold to be coherent and that says
// what a term finds: on this spec, as of this day.
type Precedent struct {
	Source  string // which correction it comes from, for messages
	Spec    []byte
	AsOf    Day
	Term    string // id without layer
	Finding State
}

// Regression is what a pack is compared with at ratification: the precedents in
// the database and the pack that it replaces.
type Regression struct {
	Replaces   *Pack
	Bases      []*Pack // the packs that Replaces extends
	Precedents []Precedent
}

// regressionGate runs at ratification only: the database is not part of the seal.
const regressionGate = "regression"

// regression: a precedent that the replaced pack agrees with, the new pack agrees
// with too.
func (b *Bundle) regression(reg *Registry, floor *Pack) (Gate, error) {
	r := b.Regression
	if r == nil {
		return gate(regressionGate, 0, 0, true, "not_run: no database was named"), nil
	}
	if r.Replaces == nil {
		return gate(regressionGate, 0, 0, true, "not_run: the pack replaces none"), nil
	}
	before, err := Agreement(reg, r.Precedents, append([]*Pack{r.Replaces, floor}, r.Bases...)...)
	if err != nil {
		return Gate{}, fmt.Errorf("the replaced pack: %w", err)
	}
	after, err := Agreement(reg, r.Precedents, append([]*Pack{b.Pack, floor}, b.Bases...)...)
	if err != nil {
		return Gate{}, err
	}
	agreed, kept, lost := 0, 0, []string{}
	for i, p := range r.Precedents {
		if !before[i] {
			continue
		}
		agreed++
		if after[i] {
			kept++
		} else {
			lost = append(lost, p.Source+" ("+p.Term+")")
		}
	}
	return gate(regressionGate, kept, agreed, kept == agreed, note(
		fmt.Sprintf("%d of %d coherent examples that %s %s agrees with keep their finding", kept, agreed, r.Replaces.ID, r.Replaces.Version), lost)), nil
}

// Agreement tells for each precedent whether the packs find what it says. A
// precedent whose term no pack declares, or whose spec is refused, is disagreed with.
func Agreement(reg *Registry, precedents []Precedent, packs ...*Pack) ([]bool, error) {
	unique := slices.CompactFunc(packs, func(a, b *Pack) bool { return a.ID == b.ID })
	v, err := NewVocabulary(reg, VocabularyConfig{}, unique...)
	if err != nil {
		return nil, err
	}
	return v.Agreement(precedents)
}

// Agreement tells for each precedent whether the vocabulary finds what it says.
func (v *Vocabulary) Agreement(precedents []Precedent) ([]bool, error) {
	agree := make([]bool, len(precedents))
	for i, p := range precedents {
		spec, err := ParseSpec(p.Spec)
		if err != nil {
			continue
		}
		d, err := Classify(spec, v, p.AsOf)
		var invalid *InvalidError
		if errors.As(err, &invalid) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("precedent %s: %w", p.Source, err)
		}
		for _, layer := range []Layer{Safety, Ethics} {
			if f, ok := d.Finding(tagID(layer, p.Term)); ok && f.State == p.Finding {
				agree[i] = true
			}
		}
	}
	return agree, nil
}
