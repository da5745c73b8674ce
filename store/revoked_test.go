package store_test

import (
	"slices"
	"testing"

	"weir/review"
	"weir/review/reviewtest"
	"weir/webhooks"
)

// revocations lists the screenings of which an endpoint was told that their
// admission holds no more, in order.
func (w *world) revocations(endpoint string) (ids []string) {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), `select screening_id::text from delivery where type = 'admission.revoked' and endpoint = $1 order by created_at, id`, endpoint)
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			w.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// Whoever holds an admission hears that it ended: every endpoint that wants to,
// once for each admission, and not when the same bytes are admitted anew.
func TestRevokedAdmissionsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{
		{ID: "all", Host: "all.example", Format: webhooks.FormatStandard},
		{ID: "chat", Host: "chat.example", Format: webhooks.FormatChat, Types: []string{webhooks.TypeRevoked}},
		{ID: "deaf", Host: "deaf.example", Format: webhooks.FormatStandard, Types: []string{webhooks.TypeOpened}},
	}); err != nil {
		t.Fatal(err)
	}
	var want []string
	told := func(when string, more ...*review.Screening) {
		t.Helper()
		for _, s := range more {
			want = append(want, s.ID)
		}
		for _, endpoint := range []string{"all", "chat"} {
			if got := w.revocations(endpoint); !slices.Equal(got, want) {
				t.Fatalf("%s: %s was told of %v, want %v", when, endpoint, got, want)
			}
		}
		if got := w.revocations("deaf"); got != nil {
			t.Fatalf("%s: told who did not want to hear: %v", when, got)
		}
		w.checkRecord()
	}

	first := w.submit("bo", spec("r", ""))
	told("admitted")
	again := w.submit("bo", spec("r", ""))
	told("the same bytes admitted anew")
	if again.ID == first.ID {
		t.Fatal("the same bytes were not screened anew: this shows nothing")
	}
	w.submit("bo", spec("r", "other"))
	told("other bytes took the run's place", again)

	pending := w.submit("bo", spec("p", "", "personal_data=present"))
	w.submit("bo", spec("p", "other"))
	told("what was pending had no admission")
	_ = pending

	// New packs block what was admitted.
	strict := w.submit("bo", spec("s", ""))
	s := w.desk.Setup()
	s.Vocabulary = reviewtest.Vocabulary(t, reviewtest.Floor, `
schema: weir/pack/v1
id: pledge
version: "2"
layer: ethics
title: Another pledge
description: One term.
terms:
  - id: violence_unstated
    title: Violence
    description: Nobody said that there is none.
    severity: high
    violated_if: {not: {tag: {violent: present}}}
    response: block
    remedy: State it.
`)
	var err error
	if w.desk, err = review.NewDesk(w.store, s, review.Config{}); err != nil {
		t.Fatal(err)
	}
	if s := w.submit("bo", spec("s", "")); s.Status == review.StatusAdmitted {
		t.Fatalf("%s: this shows nothing", s.Status)
	}
	told("the same bytes, not admitted any more", strict)
}

// A waiver admits while people still look: when they block it, or it is taken
// back, that admission ends as well.
func TestWaivedAdmissionThatEndsIsTold(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, *review.Screening) error{
		"blocked": func(w *world, s *review.Screening) error { return w.vote("bo", s, review.VoteBlock) },
		"withdrawn": func(w *world, s *review.Screening) error {
			_, err := w.desk.Withdraw(w.Context(), principal("dee"), s.ID, "no")
			return err
		},
	} {
		w := newWorld(t)
		if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "one", Host: "one.example", Format: webhooks.FormatStandard}}); err != nil {
			t.Fatal(err)
		}
		s := w.submit("dee", spec("r", "", "violent=present"))
		w.waive(s, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
		if got := w.status(s); got != review.StatusAdmitted {
			t.Fatalf("%s: waived, and %s", name, got)
		}
		w.ok(name, end(w, s))
		if got := w.revocations("one"); !slices.Equal(got, []string{s.ID}) {
			t.Errorf("%s: told of %v, want %s once", name, got, s.ID)
		}
	}
}

// Who takes an appeal back leaves the block as it was, and with it the waiver that
// admits: nothing ended.
func TestWaiverOutlivesAnAppeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.strict()
	w.declare("one")
	raw := spec("r", "", "violent=present")
	s := w.submit("dee", raw)
	_, err := w.desk.Appeal(t.Context(), principal("dee"), s.ID, "a history museum")
	w.ok("appeal", err)
	w.waive(s, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
	_, err = w.desk.Withdraw(t.Context(), principal("dee"), s.ID, "the waiver is enough")
	w.ok("withdraw", err)
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("at the gate: %s", got)
	}
	if told := w.revocations("one"); len(told) != 0 {
		t.Errorf("told that %v is admitted no more", told)
	}
}
