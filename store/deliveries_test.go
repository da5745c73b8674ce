package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/store"
	"weir/store/storetest"
	"weir/webhooks"
)

var chi = webhooks.Order{Actor: "chi", Project: "default", Reason: "looked into it"}

// failOne claims one for an endpoint and lets it fail, to be tried again at once.
func (w *world) failOne(endpoint string) webhooks.Delivery {
	w.Helper()
	ds, err := w.store.Outbox().Claim(w.Context(), 1, lease, []string{endpoint})
	if err != nil || len(ds) != 1 {
		w.Fatalf("%d claimed for %s, %v; want 1", len(ds), endpoint, err)
	}
	w.finish(ds[0], 500, webhooks.Outcome{State: webhooks.StateRetry})
	return ds[0]
}

func (w *world) delivery(id string) *webhooks.Record {
	w.Helper()
	r, err := w.store.Delivery(w.Context(), "default", id)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) claimFrom(endpoints ...string) []webhooks.Delivery {
	w.Helper()
	ds, err := w.store.Outbox().Claim(w.Context(), 100, lease, endpoints)
	if err != nil {
		w.Fatal(err)
	}
	return ds
}

// A backlog of an endpoint that is down keeps nobody else waiting.
func TestBacklogStarvesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "violent=present"))
	w.exec(`insert into delivery (message_id, endpoint, type, project, review_id, body, due_at)
		select 'msg_' || n, 'one', 'review.opened', project, review_id, body, now() - interval '1 hour' from delivery, generate_series(1, 5000) n`)
	w.submit("bo", spec("s", "", "personal_data=present"))
	if ds := w.claimFrom("two"); len(ds) != 1 || ds[0].EndpointID != "two" {
		t.Errorf("one is full: %+v", ds)
	}
	w.exec(`update delivery set state = 'pending', claim = null, lease_until = null where endpoint = 'two'`)
	w.exec(`update endpoint set trips = 1, open_until = now() + interval '1 hour' where id = 'one'`)
	if ds := w.claimFrom("one", "two"); len(ds) != 1 || ds[0].EndpointID != "two" {
		t.Errorf("one cools down: %+v", ds)
	}
}

// Fault test 28, the last part: no wish for patience outlasts the review.
func TestRetryComesBeforeTheDueTime(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		dueIn   string
		retryIn time.Duration
		want    time.Duration // from now, to the second
	}{
		{"long before", "2 hours", time.Hour, time.Hour},
		{"after", "2 hours", 3 * time.Hour, 2*time.Hour - 5*time.Second},
		{"far after", "10 minutes", 999999 * time.Hour, 10*time.Minute - 5*time.Second},
		{"within the last seconds", "4 seconds", time.Hour, time.Hour}, // expiry comes first and cancels it
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.submit("bo", spec("r", "", "violent=present"))
			d := w.claim(1)[0]
			w.exec(`update review set due_at = now() + $1::text::interval`, tt.dueIn)
			w.finish(d, 429, webhooks.Outcome{State: webhooks.StateRetry, RetryIn: tt.retryIn})
			got := time.Duration(one[float64](w, `select extract(epoch from due_at - now())::float8 from delivery`) * float64(time.Second))
			if got < tt.want-20*time.Second || got > tt.want+time.Second {
				t.Errorf("tried again in %s, want %s", got, tt.want)
			}
		})
	}
}

// A person sends a message again: same id and bytes, whatever became of it, as
// often as asked (hookdeck/outpost#670), with the schedule from its start.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "violent=present"))
	original := w.claim(1)[0]
	w.finish(original, 200, webhooks.Outcome{State: webhooks.StateDelivered})
	seen := map[string]bool{}
	for i := range 3 {
		request, err := w.store.Redeliver(t.Context(), original.ID, chi)
		if err != nil || request == "" || seen[request] {
			t.Fatalf("request %d: %q, %v", i+1, request, err)
		}
		seen[request] = true
		ds := w.claim(1)
		if len(ds) != 1 || ds[0].MessageID != original.MessageID || string(ds[0].Body) != string(original.Body) || ds[0].Request != request ||
			ds[0].Attempt != i+2 || ds[0].RoundStart != i+1 {
			t.Fatalf("sent again: %+v", ds)
		}
		if _, err := w.store.Redeliver(t.Context(), original.ID, chi); !errors.Is(err, webhooks.ErrUnderWay) {
			t.Errorf("while it is under way: %v", err)
		}
		a := attempt(ds[0], 500)
		a.Request = ds[0].Request
		if err := w.store.Outbox().Finish(t.Context(), ds[0], a, webhooks.Outcome{State: webhooks.StateDead}); err != nil {
			t.Fatal(err)
		}
		if r := w.delivery(original.ID); r.State != "dead" || r.Last.Request != request || len(r.Log) != i+2 || r.Log[0].Request != "" || string(r.Body) != string(original.Body) {
			t.Errorf("record %+v", r)
		}
	}
	if n := one[int](w, `select count(*) from endpoint_event where type = 'redelivered' and actor = 'chi'`); n != 3 {
		t.Errorf("%d requests recorded, want 3: those that were refused changed nothing", n)
	}
	if err := w.store.DisableEndpoint(t.Context(), "one", chi); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Redeliver(t.Context(), original.ID, chi); !errors.Is(err, webhooks.ErrDisabled) {
		t.Errorf("to a disabled endpoint: %v", err)
	}
	elsewhere := chi
	elsewhere.Project = "other"
	for _, id := range []string{"018f0000-0000-7000-8000-000000000000", "x"} {
		if _, err := w.store.Redeliver(t.Context(), id, chi); !errors.Is(err, review.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := w.store.Redeliver(t.Context(), original.ID, elsewhere); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("from another project: %v", err)
	}
}

// Of a review that is decided, one attempt is made when asked, and none after it.
func TestRedeliverOfAClosedReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	s := w.submit("dee", spec("r", "", "violent=present"))
	opened := w.claim(1)[0]
	w.finish(opened, 500, webhooks.Outcome{State: webhooks.StateDead})
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	decided := w.claim(1)[0]
	w.finish(decided, 500, webhooks.Outcome{State: webhooks.StateDead})
	if _, n, err := w.store.RedeliverFailed(t.Context(), "one", time.Now().Add(-time.Hour), chi); err != nil || n != 1 {
		t.Errorf("%d of those that failed, %v; want only the decision", n, err)
	}
	if _, err := w.store.Redeliver(t.Context(), opened.ID, chi); err != nil {
		t.Fatal(err)
	}
	for _, d := range w.claim(2) {
		w.finish(d, 500, webhooks.Outcome{State: webhooks.StateRetry, RetryIn: time.Second})
	}
	if got := sorted(states(w, "type || ' ' || state")); !slices.Equal(got, []string{"one review.decided pending", "one review.opened cancelled"}) {
		t.Errorf("%v", got)
	}
}

func TestRedeliverFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	for i := range 5 {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "personal_data=present"))
	}
	ds := w.claim(10)
	byID := map[string]string{}
	for _, d := range ds {
		w.finish(d, 500, webhooks.Outcome{State: webhooks.StateDead})
	}
	ones := slices.DeleteFunc(slices.Clone(ds), func(d webhooks.Delivery) bool { return d.EndpointID != "one" })
	w.exec(`update delivery set finished_at = now() - interval '2 days' where id = $1`, ones[0].ID)
	w.exec(`update delivery set state = 'delivered' where id = $1`, ones[1].ID)
	w.exec(`update delivery set state = 'pending', finished_at = null, due_at = now() + interval '5 hours' where id = $1`, ones[2].ID)
	w.exec(`update delivery set project = 'other', screening_id = null, review_id = null where id = $1`, ones[3].ID)
	w.exec(`update endpoint set trips = 2, open_until = now() + interval '1 hour', failures = 12, failing_since = now() where id = 'one'`)
	request, n, err := w.store.RedeliverFailed(t.Context(), "one", time.Now().Add(-24*time.Hour), chi)
	if err != nil || n != 2 || request == "" {
		t.Fatalf("%d, %q, %v; want the waiting and the dead one of this project since yesterday", n, request, err)
	}
	// The breaker is open: one of them probes, and the other follows.
	probe := w.claimFrom("one", "two")
	if len(probe) != 1 || !probe[0].Probe || probe[0].Request != request {
		t.Fatalf("%+v", probe)
	}
	w.finish(probe[0], 200, webhooks.Outcome{State: webhooks.StateDelivered})
	rest := w.claimFrom("one", "two")
	if len(rest) != 1 || rest[0].Request != request {
		t.Errorf("%+v", rest)
	}
	for _, d := range append(probe, rest...) {
		byID[d.ID] = d.MessageID
	}
	if byID[ones[2].ID] != ones[2].MessageID || byID[ones[4].ID] != ones[4].MessageID {
		t.Errorf("sent %v", byID)
	}
}

func TestDeliveriesInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	for i := range 7 {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "personal_data=present"))
	}
	w.exec(`update delivery set created_at = '2026-11-01'`) // all in one instant
	w.exec(`update delivery set project = 'other', screening_id = null, review_id = null where endpoint = 'two' and review_id = (select id from review order by id limit 1)`)
	w.exec(`update delivery set project = '', screening_id = null, review_id = null where endpoint = 'two' and review_id = (select id from review order by id desc limit 1)`)
	for _, size := range []int{1, 3, 100} {
		seen := map[string]int{}
		q := webhooks.RecordQuery{Limit: size}
		for {
			page, err := w.store.Deliveries(t.Context(), "default", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				seen[r.ID]++
			}
			if len(page) < size {
				break
			}
			q.After = &webhooks.RecordCursor{At: page[size-1].CreatedAt, ID: page[size-1].ID}
		}
		if len(seen) != 13 {
			t.Errorf("page size %d: %d deliveries, want 13", size, len(seen))
		}
	}
	w.finish(w.claimFrom("one")[0], 200, webhooks.Outcome{State: webhooks.StateDelivered})
	for name, tt := range map[string]struct {
		q    webhooks.RecordQuery
		want int
	}{
		"endpoint": {webhooks.RecordQuery{EndpointID: "two"}, 6},
		"state":    {webhooks.RecordQuery{State: "delivered"}, 1},
		"type":     {webhooks.RecordQuery{Type: "review.decided"}, 0},
		"review":   {webhooks.RecordQuery{ReviewID: one[string](w, `select id::text from review order by id offset 3 limit 1`)}, 2},
	} {
		tt.q.Limit = 100
		if list, err := w.store.Deliveries(t.Context(), "default", tt.q); err != nil || len(list) != tt.want {
			t.Errorf("by %s: %d, %v; want %d", name, len(list), err, tt.want)
		}
	}
	if _, err := w.store.Delivery(t.Context(), "default", one[string](w, `select id::text from delivery where project = 'other'`)); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("another project's: %v", err)
	}
}

// Where the store's connections went is known to the guard of webhooks.
func TestAddresses(t *testing.T) {
	t.Parallel()
	door := newProxy(t, storetest.DSN(t), false) // on TCP, as a database elsewhere is
	st, err := store.Open(t.Context(), door.dsn, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if _, err := st.Endpoints(within(t, 30*time.Second), "default"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(door.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Addresses(); len(got) != 1 || got[0].String() != u.Host {
		t.Errorf("%v, want %s", got, u.Host)
	}
}

// With a long history, neither a claim nor a page walks over it.
func TestHistoryIsNotWalked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "violent=present"))
	w.exec(`insert into delivery (message_id, endpoint, type, project, screening_id, review_id, body, state, attempt, finished_at, created_at)
		select 'msg_' || n, case n % 2 when 0 then 'one' else 'two' end, 'review.opened', project, screening_id, review_id, body, 'delivered', 1, now(),
			now() - n * interval '1 second' from delivery, generate_series(1, 30000) n`)
	w.exec(`analyze delivery`)
	for name, q := range map[string]struct {
		sql  string
		args pgx.StrictNamedArgs
	}{
		"claim": {store.ClaimSQL, pgx.StrictNamedArgs{"limit": 2, "lease": 30.0, "endpoints": []string{"one", "two"}}},
		"page": {`select id from delivery d where d.project in (@project, '') and (d.created_at, d.id) < (now(), '018f0000-0000-7000-8000-000000000000'::uuid)
			order by d.created_at desc, d.id desc limit 50`, pgx.StrictNamedArgs{"project": "default"}},
		"endpoints": {store.EndpointsSQL + ` and e.id <> @none`, pgx.StrictNamedArgs{"none": ""}},
	} {
		rows, err := w.pool.Query(t.Context(), "explain "+q.sql, q.args)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan on delivery") || !strings.Contains(text, "delivery") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// Everything that touches deliveries and endpoints, at once: nobody waits for
// each other in a circle, nothing is lost, and every row stays in order.
func TestDeliveriesUnderFire(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{Breaker: webhooks.Breaker{Failures: 3, Cooldown: time.Millisecond, MaxCooldown: 5 * time.Millisecond}})
	w.declare("one", "two")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var reviews sync.Map // of open reviews: screening by number
	var made atomic.Int64
	submit := func() {
		n := made.Add(1)
		if s, _, err := w.desk.Submit(t.Context(), principal("dee"), spec(fmt.Sprintf("r%d", n), "", "violent=present", "personal_data=present"), nil); err != nil {
			t.Error(err)
		} else {
			reviews.Store(n, s)
		}
	}
	for range 6 {
		submit()
	}
	any := func(r *rand.Rand) (id string) {
		if err := w.pool.QueryRow(t.Context(), `select id::text from delivery order by md5(id::text || $1) limit 1`, fmt.Sprint(r.Uint64())).Scan(&id); err != nil {
			t.Error(err)
		}
		return id
	}
	expected := []error{webhooks.ErrClaimLost, webhooks.ErrUnderWay, webhooks.ErrDisabled, review.ErrConflict, review.ErrNotAllowed}
	check := func(what string, err error) {
		if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var workers sync.WaitGroup
	for i := range 6 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			endpoint := func() string { return []string{"one", "two"}[r.IntN(2)] }
			for range 60 {
				switch r.IntN(13) {
				case 12: // what is read is of one moment
					d, err := w.store.Delivery(t.Context(), "default", any(r))
					check("read", err)
					if d != nil && (len(d.Log) == 0) != (d.Last == nil) || d != nil && d.Last != nil && d.Last.Number != d.Log[len(d.Log)-1].Number {
						t.Errorf("the last attempt is not the log's: %+v", d)
					}
				case 0:
					submit()
				case 1:
					check("enable", w.store.EnableEndpoint(t.Context(), endpoint(), chi))
				case 2:
					check("disable", w.store.DisableEndpoint(t.Context(), endpoint(), chi))
				case 3:
					_, err := w.store.Redeliver(t.Context(), any(r), chi)
					check("redeliver", err)
				case 4:
					_, _, err := w.store.RedeliverFailed(t.Context(), endpoint(), time.Now().Add(-time.Hour), chi)
					check("redeliver failed", err)
				case 5:
					check("declare", w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "two", Format: "standard"}, {ID: "one", Format: "standard"}}))
				case 6:
					_, err := w.store.PingEndpoint(t.Context(), endpoint(), chi)
					check("ping", err)
				case 7:
					n := r.Int64N(made.Load()) + 1
					if s, ok := reviews.LoadAndDelete(n); ok {
						rev, err := w.store.Review(t.Context(), "default", s.(*review.Screening).Review.ID)
						check("read", err)
						_, err = w.desk.Vote(t.Context(), principal("bo"), rev.ID, review.VoteRequest{ExpectedVersion: rev.Version,
							SpecSHA256: rev.Screening.SpecSHA256, Choice: review.VoteBlock, Reason: "no", Terms: []string{"ethics:violent_inside"}})
						check("vote", err)
					}
				default:
					ds, err := w.store.Outbox().Claim(t.Context(), 2, time.Duration(r.IntN(3))*time.Millisecond, []string{"one", "two"})
					check("claim", err)
					for _, d := range ds {
						switch r.IntN(6) {
						case 0:
							check("release", w.store.Outbox().Release(t.Context(), []webhooks.Delivery{d}))
						case 1: // dies
						case 2:
							check("finish", w.store.Outbox().Finish(t.Context(), d, attempt(d, 200), webhooks.Outcome{State: webhooks.StateDelivered}))
						case 3:
							check("finish", w.store.Outbox().Finish(t.Context(), d, attempt(d, 410), webhooks.Outcome{State: webhooks.StateHeld, Disable: "gone"}))
						case 4:
							check("finish", w.store.Outbox().Finish(t.Context(), d, attempt(d, 500), webhooks.Outcome{State: webhooks.StateDead}))
						default:
							check("finish", w.store.Outbox().Finish(t.Context(), d, attempt(d, 500), webhooks.Outcome{State: webhooks.StateRetry}))
						}
					}
				}
			}
		})
	}
	workers.Wait()
	for _, id := range []string{"one", "two"} {
		if err := w.store.EnableEndpoint(t.Context(), id, chi); err != nil {
			t.Fatal(err)
		}
	}
	w.leaseOver()
	for ds := w.claimFrom("one", "two"); len(ds) > 0; ds = w.claimFrom("one", "two") {
		for _, d := range ds {
			w.finish(d, 200, webhooks.Outcome{State: webhooks.StateDelivered})
		}
	}
	for what, sql := range map[string]string{
		"deliveries that no enabling and no time will ever end": `select count(*) from delivery where state not in ('delivered', 'dead', 'cancelled')`,
		"deliveries that were delivered without an attempt": `select count(*) from delivery d where state = 'delivered'
			and not exists (select from delivery_attempt a where a.delivery_id = d.id and a.class = '')`,
		"messages about open reviews that were cancelled": `select count(*) from delivery d join review r on r.id = d.review_id where d.state = 'cancelled' and r.closed_at is null`,
	} {
		if n := one[int](w, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	w.checkRecord()
}
