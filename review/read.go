package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/screening"
)

// Answer is what the gate says about a spec's bytes right now.
type Answer struct {
	Status    Status
	Screening *Screening
}

// Open reports whether training may start. Nothing but a live admission opens the gate.
func (a Answer) Open() bool { return a.Status == StatusAdmitted }

// AnswerTo is the gate's answer to a submission of bytes with this digest that s
// answered. It is asked for anew: a replayed key names its first screening, which
// need not be the latest of these bytes.
func (d *Desk) AnswerTo(ctx context.Context, p Principal, s *Screening, spec screening.Digest256) (Answer, error) {
	if s.SpecSHA256 != spec { // a block of the same content in other bytes
		return Answer{Status: s.Status, Screening: s}, nil
	}
	return d.Check(ctx, p, spec)
}

// Check answers for exactly these bytes. ErrNotFound when they were never screened here.
func (d *Desk) Check(ctx context.Context, p Principal, spec screening.Digest256) (Answer, error) {
	if !p.May(ScopeSubmit) {
		return Answer{}, ErrNotAllowed
	}
	s, err := d.store.ScreeningOfSpec(ctx, p.Project, spec)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: s.Status, Screening: s}, nil
}

// Screening reads one; submitters see those they have a part in.
func (d *Desk) Screening(ctx context.Context, p Principal, id string) (*Screening, error) {
	if !p.May(ScopeSubmit) && !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	s, err := d.store.Screening(ctx, p.Project, id)
	if err == nil && !p.mayReadAll() && !slices.Contains(s.Parties, d.subject(p)) {
		return nil, ErrNotFound // whether it exists is not theirs to know
	}
	return s, err
}

// subject is the name under which a principal's submissions are kept.
func (d *Desk) subject(p Principal) string {
	id, _ := d.Setup().People.Subject(p.Subject)
	return id
}

// Screenings lists; submitters see their own.
func (d *Desk) Screenings(ctx context.Context, p Principal, q ListQuery) ([]*Screening, error) {
	if !p.mayReadAll() {
		if !p.May(ScopeSubmit) {
			return nil, ErrNotAllowed
		}
		q.Party = d.subject(p)
	}
	return d.store.Screenings(ctx, p.Project, q)
}

// SpecBytes gives the bytes of a screening's spec as they were received.
func (d *Desk) SpecBytes(ctx context.Context, p Principal, id string) ([]byte, error) {
	s, err := d.Screening(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return d.store.SpecBytes(ctx, p.Project, s.SpecSHA256)
}

// Review reads one with its panels and votes.
func (d *Desk) Review(ctx context.Context, p Principal, id string) (*Review, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Review(ctx, p.Project, id)
}

// Reviews lists the queue.
func (d *Desk) Reviews(ctx context.Context, p Principal, q ReviewQuery) ([]*Review, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Reviews(ctx, p.Project, q)
}

// pollEvery is how often a waiting reader asks the store: a change made by
// another replica is seen after at most this long.
const pollEvery = time.Second

// Wait returns the screening as soon as its status is final, or as it is when
// the time is up or stop is closed (nil: never).
func (d *Desk) Wait(ctx context.Context, p Principal, id string, atMost time.Duration, stop <-chan struct{}) (*Screening, error) {
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	for {
		woken, forget := d.waiters.wait(id) // before reading, so that no change slips in between
		s, err := d.Screening(ctx, p, id)
		if err != nil || s.Status.Final() {
			forget()
			return s, err
		}
		poll, over := time.NewTimer(pollEvery), false
		select {
		case <-woken:
		case <-poll.C:
		case <-timeout.C:
			over = true
		case <-stop:
			over = true
		case <-ctx.Done():
			err = fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
		poll.Stop()
		forget()
		switch {
		case err != nil:
			return nil, err
		case over:
			return s, nil
		}
	}
}

// Expire closes overdue reviews. Every replica may call it at any time.
func (d *Desk) Expire(ctx context.Context) (int, error) {
	ids, err := d.store.ExpireReviews(ctx)
	for _, id := range ids {
		d.waiters.wake(id)
	}
	return len(ids), err
}

// RunExpiry calls Expire every interval until ctx ends, and report with each error.
func (d *Desk) RunExpiry(ctx context.Context, every time.Duration, report func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := d.Expire(ctx); err != nil && !errors.Is(err, context.Canceled) {
				report(err)
			}
		}
	}
}

// waiters are the readers of this process that wait for a screening to change.
type waiters struct {
	mu  sync.Mutex
	chs map[string]map[chan struct{}]bool
}

func (w *waiters) wait(id string) (woken <-chan struct{}, forget func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chs == nil {
		w.chs = map[string]map[chan struct{}]bool{}
	}
	if w.chs[id] == nil {
		w.chs[id] = map[chan struct{}]bool{}
	}
	w.chs[id][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.chs[id], ch)
		if len(w.chs[id]) == 0 {
			delete(w.chs, id)
		}
	}
}

func (w *waiters) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.chs[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
