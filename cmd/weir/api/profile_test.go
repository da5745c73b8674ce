package api_test

import (
	"fmt"
	"testing"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/screening"
)

// TestProfileOnTheWire: a stored decision tells what a profile raised and which
// term is not in force yet, and the packs tell what is declared.
func TestProfileOnTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, g *api.Gate) {
		s := g.Desk.Setup()
		packs := []*screening.Pack{}
		for _, ref := range s.Vocabulary.Packs() {
			p, _ := s.Vocabulary.Pack(ref.ID)
			packs = append(packs, p)
		}
		pledge, _ := s.Vocabulary.Pack("pledge")
		reg := screening.NewRegistry()
		house, err := screening.LoadPack("house.yaml", fmt.Appendf(nil, `
schema: weir/pack/v1
id: house
version: "1"
layer: ethics
title: House
description: A profile.
extends: [{id: pledge, sha256: %s}]
raises: [{term: personal_data_inside, response: block}]
terms:
  - {id: later, title: Later, description: D., severity: low, response: block, remedy: R., effective_from: 9999-12-31,
     violated_if: {fact: objective.kind, has: sft}}
`, pledge.SHA256), reg)
		if err != nil {
			t.Fatal(err)
		}
		v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, append(packs, house)...)
		if err != nil {
			t.Fatal(err)
		}
		if g.Desk, err = review.NewDesk(g.Keys.(review.Store), review.Setup{Vocabulary: v, People: s.People, Policies: s.Policies}, review.Config{}); err != nil {
			t.Fatal(err)
		}
	})
	if a := w.do("POST", "/v1/screenings", "bo", spec("clean")); a.text("status") != "admitted" {
		t.Errorf("a term that is not in force yet: %d %s", a.status, a.body)
	}
	s := w.do("POST", "/v1/screenings", "bo", spec("personal", personal))
	if s.text("status") != "blocked" {
		t.Errorf("a raised term: %d %s", s.status, s.body)
	}
	kept := w.do("GET", "/v1/screenings/"+s.text("id"), "bo", nil)
	causes, _ := kept.get("decision", "causes").([]any)
	if packs, _ := kept.get("decision", "packs").([]any); len(packs) != 3 || len(causes) != 1 {
		t.Fatalf("kept: %s", kept.body)
	}
	cause, _ := causes[0].(map[string]any)
	if got := fmt.Sprintf("%v %v %v", cause["term"], cause["effect"], cause["raised"]); got != "ethics:personal_data_inside block map[by:[house] from:escalate]" {
		t.Errorf("cause %s", got)
	}
	verdicts, _ := kept.get("decision", "ethics").([]any)
	if got := fmt.Sprint(verdicts[0]); len(verdicts) != 2 || got != "map[findings:[map[evidence:[map[name:objective.kind pointer:/objective/kind value:sft]] finding:violated out_of_force:not_yet reason:not in force before 9999-12-31: objective.kind is sft term:later]] pack:house runtime_checkable_count:0 upheld:true violated_commitments:[]]" {
		t.Errorf("verdict %s", got)
	}
	declared := w.do("GET", "/v1/packs/house", "bo", nil)
	if got := fmt.Sprintf("%v %v %v", declared.get("raises"), len(declared.get("extends").([]any)), declared.get("terms").([]any)[0].(map[string]any)["effective_from"]); got != "[map[response:block term:personal_data_inside]] 1 9999-12-31" {
		t.Errorf("the profile: %s", declared.body)
	}
}
