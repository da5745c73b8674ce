package review

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

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

// Expire does what time does to reviews: closes them, hands overdue panels over,
// reminds. Every replica may call it at any time. It returns how many expired.
func (d *Desk) Expire(ctx context.Context) (int, error) {
	ids, err := d.store.SweepReviews(ctx)
	for _, id := range ids {
		d.waiters.wake(id)
	}
	return len(ids), err
}

// settleRecalls carries recalls out: what falls under them is ended, with its messages and
// events. Nothing was open any more since the recall was kept.
func (d *Desk) settleRecalls(ctx context.Context) error {
	ids, err := d.store.SettleRecalls(ctx)
	for _, id := range ids {
		d.waiters.wake(id)
	}
	return err
}

// RunExpiry calls Expire every interval until ctx ends, and report with each error.
// It also carries out what recalls have left to do.
func (d *Desk) RunExpiry(ctx context.Context, every time.Duration, report func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, err := d.Expire(ctx)
			if err := errors.Join(err, d.settleRecalls(ctx)); err != nil && !errors.Is(err, context.Canceled) {
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
