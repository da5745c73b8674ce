package webhooks

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// These tests run in a bubble of fake time, so no socket may be involved: the
// lanes' send is replaced. It is the one place where that is done.

// script is a send whose n-th call (from 1, over all deliveries) is play(n).
type script struct {
	mu    sync.Mutex
	calls []time.Time
	open  int
	most  int
	play  func(ctx context.Context, n int, a *Attempt)
}

func (s *script) send(ctx context.Context, d Delivery) Attempt {
	s.mu.Lock()
	s.calls = append(s.calls, time.Now())
	n := len(s.calls)
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	a := newAttempt(d, time.Now())
	s.play(ctx, n, &a)
	return a
}

func (s *script) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func ok(_ context.Context, _ int, a *Attempt) { a.Status = 200 }

func fail(_ context.Context, _ int, a *Attempt) { a.Status, a.Class = 500, ClassHTTPStatus }

// busy is a request that takes d, or as long as it is let.
func busy(d time.Duration) func(context.Context, int, *Attempt) {
	return func(ctx context.Context, _ int, a *Attempt) {
		select {
		case <-time.After(d):
			a.Status = 200
		case <-ctx.Done():
			a.Class, a.aborted = ClassTimeout, true
		}
	}
}

// scripted runs a dispatcher with the given endpoints, all played by s, until
// the test function returns.
func scripted(t *testing.T, o *memoryOutbox, cfg Config, s *script, ids []string, test func(d *Dispatcher, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var endpoints []Endpoint
		for _, id := range ids {
			e := loopback(id, "http://127.0.0.1:1/")
			e.Timeout = DefaultTimeout
			endpoints = append(endpoints, e)
		}
		// Made anew: its channel and its times must belong to the bubble.
		o.changed = make(chan struct{})
		for _, r := range o.rows {
			r.due = time.Now()
		}
		d := newTestDispatcher(t, o, cfg, endpoints...)
		for _, l := range d.lanes {
			l.send = s.send
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		stop := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		defer stop()
		test(d, stop)
	})
}

// pass lets fake time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTimingSchedule(t *testing.T) {
	t.Parallel()
	const poll = 5 * time.Second
	o := newOutbox(pending("legal", 1)...)
	s := &script{play: fail}
	scripted(t, o, Config{Poll: poll}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(96 * time.Hour)
		want := DefaultSchedule()
		if len(s.calls) != len(want) || o.rows[0].state != "dead" {
			t.Fatalf("%d attempts, then %s; want %d, then dead", len(s.calls), o.rows[0].state, len(want))
		}
		for i := 1; i < len(want); i++ {
			gap := s.calls[i].Sub(s.calls[i-1])
			if low, high := want[i]*8/10, want[i]*12/10+poll*12/10; gap < low || gap > high {
				t.Errorf("attempt %d came after %v, want %v to %v", i+1, gap, low, high)
			}
		}
	})
}

func TestTimingWakeAndPoll(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	s := &script{play: ok}
	scripted(t, o, Config{Poll: time.Minute, Jitter: fixed(0.5)}, s, []string{"legal"}, func(d *Dispatcher, _ func()) {
		synctest.Wait()
		began := time.Now()
		o.add(pending("legal", 1)[0])
		d.Wake()
		d.Wake() // nobody has taken the first yet; this one must not block
		synctest.Wait()
		if s.sent() != 1 || time.Since(began) != 0 {
			t.Errorf("after a wake: %d sent in %v, want 1 at once", s.sent(), time.Since(began))
		}
		o.add(pending("legal", 1)[0]) // committed by another process: nobody wakes us
		pass(59 * time.Second)
		if s.sent() != 1 {
			t.Errorf("%d sent before the poll", s.sent())
		}
		pass(2 * time.Second)
		if s.sent() != 2 {
			t.Errorf("%d sent after the poll, want 2", s.sent())
		}
	})
}

func TestTimingCaps(t *testing.T) {
	t.Parallel()
	var ids []string
	var ds []Delivery
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		ids = append(ids, id)
		ds = append(ds, pending(id, 4)...)
	}
	o := newOutbox(ds...)
	s := &script{play: busy(time.Second)}
	// The poll is far away: room that becomes free must be used without it.
	scripted(t, o, Config{MaxTotal: 3, Poll: time.Hour}, s, ids, func(*Dispatcher, func()) {
		pass(7 * time.Second)
		if s.most != 3 || s.sent() != len(ds) || !allIn("delivered")(o.rows) {
			t.Errorf("at most %d at once, %d sent; want 3, and all %d in ceil(20/3) seconds", s.most, s.sent(), len(ds))
		}
	})
}

func TestTimingOutboxAway(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	var claims []time.Time
	o.claimFault = func(n int) error {
		claims = append(claims, time.Now())
		if n <= 8 {
			return errOutbox
		}
		return nil
	}
	s := &script{play: ok}
	scripted(t, o, Config{Jitter: fixed(0.5)}, s, []string{"legal"}, func(d *Dispatcher, _ func()) {
		d.Wake() // must not shorten a pause
		pass(10 * time.Minute)
		if s.sent() != 1 || o.rows[0].state != "delivered" {
			t.Fatalf("%d sent, %s; want it delivered once the outbox is back", s.sent(), o.rows[0].state)
		}
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
			if gap := claims[i+1].Sub(claims[i]); gap != want*time.Second {
				t.Errorf("pause after failure %d: %v, want %v", i+1, gap, want*time.Second)
			}
		}
	})
}

// A result that cannot be written is kept and tried again, and the message is
// not sent again meanwhile.
func TestTimingResultNotWritten(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	o.finishFault = func(n int) error {
		if n <= 3 {
			return errOutbox
		}
		return nil
	}
	s := &script{play: ok}
	scripted(t, o, Config{}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(time.Minute)
		if s.sent() != 1 || o.rows[0].state != "delivered" || o.finishes != 4 {
			t.Errorf("%d sent, %s after %d writes; want 1, delivered, 4", s.sent(), o.rows[0].state, o.finishes)
		}
	})
}

// If that lasts longer than the lease, the claim is given up, the delivery is
// claimed again, and the slot is free.
func TestTimingLeaseRunsOut(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	began := time.Time{}
	o.finishFault = func(int) error {
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < 35*time.Second {
			return errOutbox
		}
		return nil
	}
	s := &script{play: ok}
	scripted(t, o, Config{Lease: 30 * time.Second}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(5 * time.Minute)
		if s.sent() != 2 || o.rows[0].state != "delivered" || o.rows[0].Attempt != 2 {
			t.Errorf("%d sent, %s, attempt %d; want 2, delivered, 2", s.sent(), o.rows[0].state, o.rows[0].Attempt)
		}
	})
}

func TestTimingClaimLost(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	s := &script{}
	s.play = func(_ context.Context, _ int, a *Attempt) {
		o.mu.Lock() // somebody else claims it while the request is open
		o.rows[0].Delivery.Claim = "theirs"
		o.mu.Unlock()
		a.Status = 200
	}
	scripted(t, o, Config{}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(10 * time.Second)
		if o.finishes != 1 || o.rows[0].state != "delivering" || len(o.rows[0].attempts) != 0 {
			t.Errorf("%d writes, %s; want one, and their claim untouched", o.finishes, o.rows[0].state)
		}
	})
}

func TestTimingPanics(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	s := &script{play: func(ctx context.Context, n int, a *Attempt) {
		if n == 1 {
			panic("a fault in here")
		}
		ok(ctx, n, a)
	}}
	cfg := Config{Observe: func(Attempt) { panic("a fault in the observer") }}
	scripted(t, o, cfg, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(time.Minute)
		var classes []Class
		for _, a := range o.rows[0].attempts {
			classes = append(classes, a.Class)
		}
		if !slices.Equal(classes, []Class{ClassInternal, ""}) || o.rows[0].state != "delivered" {
			t.Errorf("attempts %q, then %s; want a failed one, then a good one", classes, o.rows[0].state)
		}
	})
}

func TestTimingOutboxPanics(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 1)...)
	o.finishFault = func(n int) error {
		if n == 1 {
			panic("a fault in the outbox")
		}
		return nil
	}
	s := &script{play: ok}
	scripted(t, o, Config{}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(2 * time.Minute)
		if s.sent() != 2 || o.rows[0].state != "delivered" {
			t.Errorf("%d sent, %s; want it sent again after the lease", s.sent(), o.rows[0].state)
		}
	})
}

func TestTimingStop(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		busy  time.Duration
		took  time.Duration
		state string
	}{
		{"idle", 0, 0, "delivered"},
		{"ends in time", 8 * time.Second, 7 * time.Second, "delivered"},
		{"cut off", 14 * time.Second, DefaultStopTimeout, "pending"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOutbox(pending("legal", 1)...)
			s := &script{play: busy(tt.busy)}
			scripted(t, o, Config{}, s, []string{"legal"}, func(_ *Dispatcher, stop func()) {
				pass(time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took != tt.took || o.rows[0].state != tt.state {
					t.Errorf("stopped after %v, %s; want %v, %s", took, o.rows[0].state, tt.took, tt.state)
				}
			})
		})
	}
}

// A claim that is on its way when the stop comes is neither cut short nor acted
// on: what it brings is given back, never left leased.
func TestTimingStopDuringClaim(t *testing.T) {
	t.Parallel()
	o := newOutbox(pending("legal", 2)...)
	slow := &slowOutbox{memoryOutbox: o, delay: 3 * time.Second}
	s := &script{play: busy(time.Hour)}
	synctest.Test(t, func(t *testing.T) {
		o.changed = make(chan struct{})
		for _, r := range o.rows {
			r.due = time.Now()
		}
		e := loopback("legal", "http://127.0.0.1:1/")
		e.Timeout = DefaultTimeout
		d := newTestDispatcher(t, slow, Config{}, e)
		d.lanes["legal"].send = s.send
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		pass(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s.sent() != 0 {
			t.Errorf("%d sent after the stop", s.sent())
		}
		for _, r := range o.rows {
			if r.state != "pending" || r.Attempt != 0 {
				t.Errorf("%s: %s, attempt %d; want it back as it was", r.ID, r.state, r.Attempt)
			}
		}
	})
}

// slowOutbox takes its time for a claim, unless it is told to give up.
type slowOutbox struct {
	*memoryOutbox
	delay time.Duration
}

func (o *slowOutbox) Claim(ctx context.Context, limit int, lease time.Duration, endpoints []string) ([]Delivery, error) {
	ds, err := o.memoryOutbox.Claim(ctx, limit, lease, endpoints)
	select {
	case <-time.After(o.delay):
		return ds, err
	case <-ctx.Done():
		return nil, ctx.Err() // committed, but the answer is lost
	}
}

// A process says which endpoints it has for as long as it runs.
func TestTimingDeclares(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	scripted(t, o, Config{}, &script{play: ok}, []string{"legal", "lead"}, func(d *Dispatcher, stop func()) {
		if err := d.Declare(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(5*DeclareEvery + time.Second)
		stop()
		want := []Declared{{ID: "legal", Host: "127.0.0.1:1", Format: FormatStandard}, {ID: "lead", Host: "127.0.0.1:1", Format: FormatStandard}}
		if len(o.declared) != 6 || !cmp.Equal(want, o.declared[5]) {
			t.Errorf("declared %d times, last %+v; want 6 times %+v", len(o.declared), o.declared[len(o.declared)-1], want)
		}
	})
}

// A person's request begins the schedule anew; a ping has one attempt.
func TestTimingRounds(t *testing.T) {
	t.Parallel()
	ds := pending("legal", 2)
	ds[0].Attempt, ds[0].RoundStart = 7, 7
	ds[1].Type = TypePing
	o := newOutbox(ds...)
	s := &script{play: fail}
	scripted(t, o, Config{Schedule: Schedule{0, time.Second, time.Second}}, s, []string{"legal"}, func(*Dispatcher, func()) {
		pass(time.Minute)
		if o.rows[0].state != "dead" || o.rows[0].Attempt != 10 || o.rows[1].state != "dead" || o.rows[1].Attempt != 1 {
			t.Errorf("%s after attempt %d, ping %s after %d; want dead after 10, dead after 1", o.rows[0].state, o.rows[0].Attempt, o.rows[1].state, o.rows[1].Attempt)
		}
	})
}
