package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/store"
	"weir/store/storetest"
)

const pledgeYAML = `
schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
title: Pledge for tests
description: Two terms.
terms:
  - id: personal_data_inside
    title: Personal data
    description: Data about people.
    severity: medium
    over: [dataset]
    violated_if: {tag: {personal_data: present}}
    response: escalate
    remedy: Remove it.
  - id: violent_inside
    title: Violence
    description: Violent content.
    severity: high
    over: [dataset]
    violated_if: {tag: {violent: present}}
    response: escalate
    unchecked: observe
    remedy: Remove it.
`

const peopleYAML = `
people: [{id: ana, aliases: [ana@corp.example]}, {id: bo}, {id: chi}, {id: dee}]
services: [{id: airflow}]
groups: {general: [ana, bo, chi, dee], legal: [bo, chi]}
`

const policiesYAML = `
policies:
  - {id: violence, match: {terms: ["violent_*"]}, group: legal, quorum: 1, due: 24h, endpoints: [one]}
  - {id: general, group: general, quorum: 2, due: 48h, endpoints: [one, two]}
default: general
endpoints:
  - {id: one, url: "https://one.example/", secret_env: S}
  - {id: two, url: "https://two.example/", secret_env: S}
`

// world is a store on a database of its own with a desk in front of it.
type world struct {
	*testing.T
	dsn   string
	store *store.Store
	desk  *review.Desk
	pool  *pgxpool.Pool // looks at the tables, past the store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, store.Config{})
}

func newWorldWith(t *testing.T, cfg store.Config) *world {
	t.Helper()
	dsn := storetest.DSN(t)
	st, err := store.Open(t.Context(), dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	desk, err := review.NewDesk(st, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, dsn, st, desk, pool}
}

func setup(t *testing.T) review.Setup {
	t.Helper()
	return reviewtest.Setup(t, peopleYAML, policiesYAML, reviewtest.Floor, pledgeYAML)
}

func principal(subject string) review.Principal {
	return review.Principal{Subject: subject, Project: "default", Scopes: []review.Scope{review.ScopeSubmit, review.ScopeReview}}
}

// spec writes a spec whose outcome is what its tags say; note makes its bytes differ.
func spec(run, note string, states ...string) []byte {
	tags := map[string]string{"minors": "absent", "sexual_content": "absent", "personal_data": "absent", "violent": "absent"}
	for _, s := range states {
		tag, state, _ := strings.Cut(s, "=")
		tags[tag] = state
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nschema: weir/spec/v1\nrun_ref: %s\nowner: ana\nobjective: {kind: sft}\ninputs: [{id: d1, kind: dataset}]\ndisclosures:\n", note, run)
	for _, tag := range []string{"minors", "sexual_content", "personal_data", "violent"} {
		fmt.Fprintf(&b, "  - {tag: %s, state: %s, basis: structured}\n", tag, tags[tag])
	}
	return []byte(b.String())
}

func (w *world) submit(who string, raw []byte) *review.Screening {
	w.Helper()
	s, _, err := w.desk.Submit(w.Context(), principal(who), raw, nil)
	if err != nil {
		w.Fatalf("submit: %v", err)
	}
	return s
}

func (w *world) vote(who string, s *review.Screening, choice review.Choice) error {
	w.Helper()
	r, err := w.store.Review(w.Context(), "default", s.Review.ID)
	if err != nil {
		w.Fatal(err)
	}
	var terms []string
	for _, p := range r.Panels {
		terms = append(terms, p.Terms...)
	}
	_, err = w.desk.Vote(w.Context(), principal(who), r.ID, review.VoteRequest{ExpectedVersion: r.Version,
		SpecSHA256: s.SpecSHA256, Choice: choice, Reason: "looked at it", Terms: terms})
	return err
}

func (w *world) gate(raw []byte) review.Status {
	w.Helper()
	a, err := w.desk.Check(w.Context(), principal("bo"), screening.Sum(raw))
	if err != nil {
		w.Fatalf("gate: %v", err)
	}
	return a.Status
}

// one reads a single value.
func one[T any](w *world, sql string, args ...any) (v T) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), sql, args...).Scan(&v); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// later lets time pass for a review: everything about it moves into the past.
func (w *world) later(s *review.Screening, d time.Duration) {
	w.Helper()
	w.exec(`update review_panel set due_at = due_at - $2::interval, remind_at = remind_at - $2::interval, passed_at = passed_at - $2::interval,
		answered_at = answered_at - $2::interval, claimed_until = claimed_until - $2::interval where review_id in (select id from review where screening_id = $1)`, s.ID, d)
	w.exec(`update review set opened_at = opened_at - $2::interval, due_at = due_at - $2::interval, expires_at = expires_at - $2::interval,
		asked_at = asked_at - $2::interval where screening_id = $1`, s.ID, d)
}

// overdue moves a review's due time into the past.
func (w *world) overdue(s *review.Screening) {
	w.Helper()
	w.later(s, 1000*time.Hour)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// packs are the packs that the desk decides by.
func (w *world) packs() (packs []*screening.Pack) {
	v := w.desk.Setup().Vocabulary
	for _, ref := range v.Packs() {
		p, _ := v.Pack(ref.ID)
		packs = append(packs, p)
	}
	return packs
}
