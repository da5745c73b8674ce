package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/review"
	"weir/screening"
	"weir/store/storetest"
)

// Work that nobody waits for any more is not done when a database that hung comes back.
func TestNobodyWaitsNothingIsWritten(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c := &committer{store: &Store{}} // without a pool: reaching for it would panic
	c.commit([]*pending{{ctx: gone, done: make(chan outcome, 1)}, {ctx: gone, done: make(chan outcome, 1)}})
}

func TestDayIsForgottenWhenItChanged(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), storetest.DSN(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	today, err := s.Today(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.dayMu.Lock()
	s.day, s.dayRead = "2001-02-03", time.Now()
	s.dayMu.Unlock()
	if day, err := s.Today(t.Context()); err != nil || day != "2001-02-03" {
		t.Errorf("within the minute: %s, %v", day, err)
	}
	s.forgetDay()
	// Midnight may pass between the two readings, never backwards.
	if day, err := s.Today(t.Context()); err != nil || day < today {
		t.Errorf("after it changed: %s, %v, want %s or later", day, err, today)
	}
}

// Whoever waits for a database that hangs makes nobody else wait longer.
func TestTodayWaitsItsOwnTime(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), storetest.DSN(t), Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	conn, err := s.requests.Acquire(s.nobody().context(t.Context())) // the only one
	if err != nil {
		t.Fatal(err)
	}
	long, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := s.Today(long); ended <- err }()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Today(short); !errors.Is(err, review.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	stop()
	if err := <-ended; !errors.Is(err, review.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	conn.Release()
	var day screening.Day
	if day, err = s.Today(t.Context()); err != nil || day == "" {
		t.Errorf("afterwards: %q, %v", day, err)
	}
}
