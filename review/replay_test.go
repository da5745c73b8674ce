package review

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

const replayFloor = `
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

// candidate is a pledge of the given terms, "id response condition".
func candidate(t *testing.T, terms ...[3]string) *screening.Vocabulary {
	t.Helper()
	text := "schema: weir/pack/v1\nid: pledge\nversion: \"2\"\nlayer: ethics\ntitle: P\ndescription: P\npreferred_hedge_soft: Perhaps\nterms:\n"
	for _, term := range terms {
		text += fmt.Sprintf("- {id: %s, title: T, description: T, severity: low, over: [dataset], violated_if: %s, response: %s, remedy: R}\n", term[0], term[2], term[1])
	}
	reg := screening.NewRegistry()
	var packs []*screening.Pack
	for _, text := range []string{replayFloor, text} {
		p, err := screening.LoadPack("test", []byte(text), reg)
		if err != nil {
			t.Fatal(err)
		}
		packs = append(packs, p)
	}
	v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, packs...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const replaySpec = `schema: weir/spec/v1
run_ref: r
owner: ana
objective: {kind: sft}
inputs: [{id: d1, kind: dataset}]
disclosures:
- {tag: minors, state: absent, basis: structured}
- {tag: personal_data, state: present, basis: structured}
`

func TestReplayNamesWhatMadeTheDifference(t *testing.T) {
	t.Parallel()
	const personal, violent = "{tag: {personal_data: present}}", "{tag: {violent: present}}"
	was := map[string]Effect{"ethics:old": {screening.Escalate, screening.Violated}, "ethics:quiet": {screening.Observe, screening.Violated}}
	escalated, lost := &Effect{screening.Escalate, screening.Violated}, EffectChange{Term: "ethics:old", Then: &Effect{screening.Escalate, screening.Violated}}
	tests := []struct {
		name    string
		v       *screening.Vocabulary
		effects map[string]Effect
		then    screening.Outcome
		raw     string
		now     ReplayOutcome
		changes []EffectChange
		differs bool
	}{
		{"nothing", candidate(t, [3]string{"old", "escalate", personal}), was, screening.OutcomeEscalate, replaySpec, "escalate", nil, false},
		{"raised", candidate(t, [3]string{"old", "block", personal}), was, screening.OutcomeEscalate, replaySpec, "block",
			[]EffectChange{{"ethics:old", escalated, &Effect{screening.Block, screening.Violated}}}, true},
		{"lowered to observe", candidate(t, [3]string{"old", "observe", personal}, [3]string{"other", "block", `{all: [{tag: {minors: present}}]}`}), was,
			screening.OutcomeEscalate, replaySpec, "admit", []EffectChange{lost}, true},
		{"nobody had said it", candidate(t, [3]string{"new", "escalate", violent}), nil, screening.OutcomeAdmit, replaySpec, "escalate",
			[]EffectChange{{"ethics:new", nil, &Effect{screening.Escalate, screening.NotCheckable}}}, true},
		{"another reason", candidate(t, [3]string{"new", "escalate", personal}), was, screening.OutcomeEscalate, replaySpec, "escalate",
			[]EffectChange{{"ethics:new", nil, escalated}, lost}, false},
		{"nothing that decides", candidate(t, [3]string{"old", "observe", personal}), nil, screening.OutcomeAdmit, replaySpec, "escalate",
			[]EffectChange{{NoPolicyMatched, nil, &Effect{screening.Escalate, screening.NotCheckable}}}, true},
		{"no statement to hedge", candidate(t, [3]string{"new", "hedge", personal}), nil, screening.OutcomeAdmit, replaySpec, ReplayRefused, nil, true},
		{"no spec any more", candidate(t, [3]string{"old", "escalate", personal}), nil, screening.OutcomeBlock, replaySpec + "novelty: 1\n", ReplayRefused, nil, true},
		{"no document", candidate(t, [3]string{"old", "escalate", personal}), nil, screening.OutcomeAdmit, "\x00", ReplayRefused, nil, true},
	}
	for _, tt := range tests {
		r, err := replayOne(&StoredSpec{At: Cursor{ID: "s"}, RunRef: "r", AsOf: "2026-01-01", Engine: screening.EngineVersion,
			Outcome: tt.then, Raw: []byte(tt.raw), Effects: tt.effects}, tt.v, "")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.changes == nil {
			tt.changes = []EffectChange{}
		}
		if d := cmp.Diff(tt.changes, r.Changes); d != "" || r.Now != tt.now || r.Differs() != tt.differs || r.AsOf != "2026-01-01" {
			t.Errorf("%s: now %s as of %s, differs %t %s", tt.name, r.Now, r.AsOf, r.Differs(), d)
		}
		if (r.Now == ReplayRefused) != (len(r.Refused) > 0) {
			t.Errorf("%s: %s with the problems %v", tt.name, r.Now, r.Refused)
		}
	}
}

// A window ends where nothing can come in any more, and one that holds nothing by
// its bounds is refused at the bound that is wrong.
func TestReplayWindow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	day, last, zero := 24*time.Hour, now.Add(-time.Minute), time.Time{}
	for name, tt := range map[string]struct {
		since, until, to time.Time // to: where it ends
		pointer          string
	}{
		"up to now":                     {now.Add(-day), zero, last, ""},
		"ends in the future":            {now.Add(-day), now.Add(day), last, ""},
		"ends in the last minute":       {now.Add(-day), now.Add(-time.Second), last, ""},
		"ends before":                   {now.Add(-2 * day), now.Add(-day), now.Add(-day), ""},
		"begins in the last minute":     {now.Add(-time.Second), zero, now.Add(-time.Second), ""},
		"ends before it begins":         {now.Add(-day), now.Add(-2 * day), zero, "/until"},
		"ends as it begins":             {now.Add(-day), now.Add(-day), zero, "/until"},
		"begins in the future":          {now.Add(day), zero, zero, "/since"},
		"begins and ends in the future": {now.Add(day), now.Add(2 * day), zero, "/since"},
	} {
		var q ReplayQuery
		err := q.SetWindow(tt.since, tt.until, now)
		var invalid *screening.InvalidError
		if tt.pointer != "" {
			if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Pointer != tt.pointer {
				t.Errorf("%s: %v, want a problem at %s", name, err, tt.pointer)
			}
			continue
		}
		if err != nil || !q.Since.Equal(tt.since) || !q.Until.Equal(tt.to) {
			t.Errorf("%s: %s to %s, %v; want the end %s", name, q.Since, q.Until, err, tt.to)
		}
	}
}

// An admit that was one needs no decision, unless the run would get a hedge now.
func TestReplayOfAnAdmitWithAHedge(t *testing.T) {
	t.Parallel()
	stated := StoredSpec{Engine: screening.EngineVersion, AsOf: "2026-01-01", Outcome: screening.OutcomeAdmit,
		Raw: []byte(replaySpec + "disclosure_statement: People are in it.\n")}
	hedged := &Effect{screening.Hedge, screening.Violated}
	violent := [3]string{"old", "escalate", "{all: [{tag: {personal_data: present}}, {tag: {minors: present}}]}"}
	was := stated
	was.Effects = map[string]Effect{"ethics:new": *hedged}
	for name, tt := range map[string]struct {
		s    StoredSpec
		v    *screening.Vocabulary
		want []EffectChange
	}{
		"none then, none now": {stated, candidate(t, violent), []EffectChange{}},
		"none then, one now":  {stated, candidate(t, violent, [3]string{"new", "hedge", "{tag: {personal_data: present}}"}), []EffectChange{{"ethics:new", nil, hedged}}},
		"one then, none now":  {was, candidate(t, violent), []EffectChange{{"ethics:new", hedged, nil}}},
	} {
		r, err := replayOne(&tt.s, tt.v, "")
		if err != nil || r.Now != "admit" || cmp.Diff(tt.want, r.Changes) != "" {
			t.Errorf("%s: %s, %v %s", name, r.Now, err, cmp.Diff(tt.want, r.Changes))
		}
	}
}

// Most stored specs come out as they did: replaying an admit costs no more than
// deciding it, for which no decision is written out.
func TestReplayDecidesBeforeItExplains(t *testing.T) {
	t.Parallel()
	v := candidate(t, [3]string{"old", "escalate", "{all: [{tag: {personal_data: present}}, {tag: {minors: present}}]}"})
	s := &StoredSpec{Engine: screening.EngineVersion, AsOf: "2026-01-01", Outcome: screening.OutcomeAdmit, Raw: []byte(replaySpec)}
	outcome, d, err := decideAgain(s, nil, v, s.AsOf)
	if err != nil || outcome != screening.OutcomeAdmit || d != nil {
		t.Errorf("an admit that stays one: %s, written out: %t (%v)", outcome, d != nil, err)
	}
	s.Outcome = screening.OutcomeEscalate
	if outcome, d, err = decideAgain(s, nil, v, s.AsOf); err != nil || outcome != screening.OutcomeAdmit || d == nil {
		t.Errorf("an admit that was none: %s, written out: %t (%v)", outcome, d != nil, err)
	}
}

// shelf is stored specs in memory, a few at a time.
type shelf []StoredSpec

func (s shelf) Now(context.Context) (time.Time, error) { return time.Time{}, nil }

func (s shelf) StoredSpecs(_ context.Context, _ string, q StoredQuery) (list []StoredSpec, next *Cursor, err error) {
	for _, one := range s {
		if q.After == nil || one.At.ID > q.After.ID {
			if list = append(list, one); len(list) == q.Limit {
				return list, &list[len(list)-1].At, nil
			}
		}
	}
	return list, nil, nil
}

// However the pages are cut, they add up to the same.
func TestReplayPagesAddUp(t *testing.T) {
	t.Parallel()
	var all shelf
	for i := range 50 {
		s := StoredSpec{At: Cursor{ID: fmt.Sprintf("%03d", i)}, Superseded: i%3 == 0, RunRef: fmt.Sprint(i), AsOf: "2026-01-01",
			Engine: screening.EngineVersion, Outcome: screening.Outcome(1 + i%2), Raw: []byte(replaySpec)}
		if i%7 == 0 {
			s.Raw, s.Engine = []byte("{"), "0"
		}
		all = append(all, s)
	}
	v := candidate(t, [3]string{"old", "block", "{tag: {personal_data: present}}"})
	read := func(limit int, enough func() bool) (sum ReplayPage, pages int) {
		q := ReplayQuery{Candidate: v, Limit: limit, Enough: enough}
		for {
			page, err := Replay(t.Context(), all, "p", q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			sum.Replayed += page.Replayed
			sum.OtherEngine += page.OtherEngine
			sum.OtherFindings += page.OtherFindings
			for _, total := range page.Totals {
				sum.AddTotal(total)
			}
			sum.Differences = append(sum.Differences, page.Differences...)
			if q.After = page.Next; q.After == nil {
				return sum, pages
			}
		}
	}
	want, pages := read(1000, nil)
	if want.Replayed != 33 || len(want.Differences) != 33 || want.OtherEngine == 0 || pages != 1 {
		t.Fatalf("%d replayed, %d differ, %d pages", want.Replayed, len(want.Differences), pages)
	}
	for _, limit := range []int{1, 2, 16, 17} {
		if got, pages := read(limit, nil); cmp.Diff(want, got) != "" || pages < 2 {
			t.Errorf("pages of %d, %d of them: %s", limit, pages, cmp.Diff(want, got))
		}
	}
	if got, pages := read(1000, func() bool { return true }); cmp.Diff(want, got) != "" || pages < 33 {
		t.Errorf("a gate that never has time, %d pages: %s", pages, cmp.Diff(want, got))
	}
}
