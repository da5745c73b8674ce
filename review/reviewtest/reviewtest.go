// Package reviewtest makes what a desk decides by, for tests of packages that
// have a desk in front of a store.
package reviewtest

import (
	"testing"

	"weir/review"
	"weir/screening"
)

// Floor is a safety floor of one term, which two tags violate.
const Floor = `
schema: weir/pack/v1
id: safety_floor
version: "1"
layer: safety
title: Floor for tests
description: One term.
terms:
  - id: sexualised_minors
    title: Sexualised minors
    description: Both in one input.
    severity: critical
    over: [dataset]
    violated_if: {all: [{tag: {minors: present}}, {tag: {sexual_content: present}}]}
    response: block
    remedy: Take the data out.
`

// Setup loads people.yaml, policies.yaml and packs from their texts. One of the
// packs has to be a floor.
func Setup(t testing.TB, people, policies string, packs ...string) review.Setup {
	t.Helper()
	s := review.Setup{Vocabulary: Vocabulary(t, packs...)}
	var err error
	if s.People, err = review.LoadPeople("people.yaml", []byte(people)); err != nil {
		t.Fatal(err)
	}
	if s.Policies, err = review.LoadPolicies("policies.yaml", []byte(policies), s.People); err != nil {
		t.Fatal(err)
	}
	return s
}

// Vocabulary loads packs from their texts, ratified or not.
func Vocabulary(t testing.TB, packs ...string) *screening.Vocabulary {
	t.Helper()
	reg := screening.NewRegistry()
	loaded := make([]*screening.Pack, len(packs))
	for i, text := range packs {
		var err error
		if loaded[i], err = screening.LoadPack("test", []byte(text), reg); err != nil {
			t.Fatal(err)
		}
	}
	v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, loaded...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
