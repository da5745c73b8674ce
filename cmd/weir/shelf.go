package main

import (
	"slices"

	"weir/screening"
)

// shelf keeps the packs in which reports look terms up, so that a report of many
// specs reads them once. A nil shelf has the safety floor only.
type shelf struct {
	refs         []string
	packs        []*screening.Pack // those that could be read; nil before the first look
	vocabularies map[vocabularyMode]*screening.Vocabulary
}

type vocabularyMode struct{ auditOnly, unratified bool }

// shelved is a shelf of packs beside the floor.
func shelved(refs []string) *shelf { return &shelf{refs: refs} }

// vocabulary gives the packs compiled, nil when they are not in force.
func (s *shelf) vocabulary(auditOnly, unratified bool) *screening.Vocabulary {
	if s == nil {
		s = &shelf{}
	}
	mode := vocabularyMode{auditOnly, unratified}
	v, known := s.vocabularies[mode]
	if !known {
		v, _ = loadVocabulary(s.refs, auditOnly, unratified) // a report says what it can without them
		if s.vocabularies == nil {
			s.vocabularies = map[vocabularyMode]*screening.Vocabulary{}
		}
		s.vocabularies[mode] = v
	}
	return v
}

// terms looks up the terms of the packs that a decision was made with. A pack
// that is not at hand in exactly that form is left out: the report then says only
// what the decision says.
func (s *shelf) terms(d *screening.Decision) map[string]*screening.Term {
	if s == nil {
		s = &shelf{}
	}
	if s.packs == nil {
		reg := screening.NewRegistry()
		s.packs = []*screening.Pack{}
		for _, ref := range append([]string{screening.FloorID}, s.refs...) {
			if b, err := loadBundle(ref, reg); err == nil {
				s.packs = append(s.packs, b.Pack)
			}
		}
	}
	known := map[string]*screening.Term{}
	for _, p := range s.packs {
		if !slices.ContainsFunc(d.Packs, func(ref screening.PackRef) bool { return ref.SHA256 == p.SHA256 }) {
			continue
		}
		for i := range p.Terms {
			known[string(p.Layer)+":"+p.Terms[i].ID] = &p.Terms[i]
		}
	}
	return known
}
