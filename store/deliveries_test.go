package store_test

import (
	"encoding/json"
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

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/store"
	"weir/store/storetest"
	"weir/webhooks"
)

var chi = webhooks.Order{Actor: "chi", Project: "default", Reason: "looked into it"}

// declare says which endpoints there are: "id", or "id/format", or "id//type,type".
func (w *world) declare(list ...string) {
	w.Helper()
	var ds []webhooks.Declared
	for _, e := range list {
		parts := append(strings.Split(e, "/"), "", "")
		d := webhooks.Declared{ID: parts[0], Host: parts[0] + ".example", Format: webhooks.Format(parts[1])}
		if d.Format == "" {
			d.Format = webhooks.FormatStandard
		}
		if parts[2] != "" {
			d.Types = strings.Split(parts[2], ",")
		}
		ds = append(ds, d)
	}
	if err := w.store.Outbox().Declare(w.Context(), ds); err != nil {
		w.Fatal(err)
	}
}

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

func (w *world) endpoint(id string) *webhooks.EndpointStatus {
	w.Helper()
	e, err := w.store.Endpoint(w.Context(), "default", id)
	if err != nil {
		w.Fatal(err)
	}
	return e
}

func (w *world) delivery(id string) *webhooks.Record {
	w.Helper()
	r, err := w.store.Delivery(w.Context(), "default", id)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// coolingDown gives for how long, to the second.
func (w *world) coolingDown(id string) time.Duration {
	w.Helper()
	return time.Duration(one[float64](w, `select coalesce(round(extract(epoch from open_until - now())), 0)::float8 from endpoint where id = $1`, id)) * time.Second
}

func (w *world) coolDownOver(id string) {
	w.Helper()
	w.exec(`update endpoint set open_until = now() where id = $1`, id)
}

// Fault test 35, the rule: ten failures in a row open the breaker for five
// minutes, one probe closes it or doubles the pause, to an hour at most.
func TestBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	for i := range 4 {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "personal_data=present"))
	}
	for i := range 9 {
		w.failOne("one")
		if e := w.endpoint("one"); e.State() != "enabled" || e.Failures != i+1 || e.FailingSince == nil {
			t.Fatalf("after %d failures: %s, %d counted", i+1, e.State(), e.Failures)
		}
	}
	w.finish(w.claim(1, "two")[0], 200, webhooks.Outcome{State: webhooks.StateDelivered})
	if e := w.endpoint("one"); e.Failures != 0 || e.FailingSince != nil {
		t.Fatalf("a success did not end the count: %d", e.Failures)
	}
	late := w.claim(1, "two")[0] // under way while the breaker opens
	for range 10 {
		w.failOne("one")
	}
	if got := w.coolingDown("one"); got != 5*time.Minute {
		t.Fatalf("cooling down for %s, want 5m", got)
	}
	w.finish(late, 500, webhooks.Outcome{State: webhooks.StateRetry})
	if got := w.coolingDown("one"); got != 5*time.Minute {
		t.Errorf("a late failure made it %s", got)
	}
	if ds := w.claim(10, "two"); len(ds) != 0 {
		t.Errorf("claimed while open: %+v", ds)
	}
	if ds := w.claim(10, "one"); len(ds) == 0 {
		t.Error("another endpoint waits too")
	}
	for i, want := range []time.Duration{10, 20, 40, 60, 60} {
		w.coolDownOver("one")
		probe := w.claim(10, "two")
		if len(probe) != 1 || !probe[0].Probe {
			t.Fatalf("probe %d: claimed %+v", i+1, probe)
		}
		if more := w.claim(10, "two"); len(more) != 0 {
			t.Fatalf("beside probe %d: %+v", i+1, more)
		}
		w.finish(probe[0], 500, webhooks.Outcome{State: webhooks.StateRetry})
		if got := w.coolingDown("one"); got != want*time.Minute {
			t.Errorf("after failed probe %d: %s, want %dm", i+1, got, want)
		}
	}
	w.coolDownOver("one")
	w.finish(w.claim(10, "two")[0], 200, webhooks.Outcome{State: webhooks.StateDelivered})
	if e := w.endpoint("one"); e.State() != "enabled" || e.Failures != 0 {
		t.Errorf("after a good probe: %s, %d failures", e.State(), e.Failures)
	}
	if ds := w.claim(10, "two"); len(ds) == 0 || ds[0].Probe {
		t.Errorf("after a good probe: %+v", ds)
	}
}

// A probe whose process died, or that was given back, does not keep the breaker open for ever.
func TestProbeIsLost(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{Breaker: webhooks.Breaker{Failures: 1}})
	w.declare("one")
	w.submit("bo", spec("r", "", "violent=present"))
	w.submit("bo", spec("s", "", "violent=present"))
	w.failOne("one")
	w.coolDownOver("one")
	if ds := w.claim(10); len(ds) != 1 || !ds[0].Probe {
		t.Fatalf("%+v", ds)
	}
	if got := w.coolingDown("one"); got != lease {
		t.Errorf("a probe keeps others away for %s, want a lease", got)
	}
	w.leaseOver()
	w.coolDownOver("one") // as a lease later
	again := w.claim(10)
	if len(again) != 1 || !again[0].Probe {
		t.Fatalf("after the lease: %+v", again)
	}
	if err := w.store.Outbox().Release(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if ds := w.claim(10); len(ds) != 1 || !ds[0].Probe {
		t.Errorf("after it was given back: %+v", ds)
	}
}

// Two replicas that ask at once get one probe between them.
func TestOneProbe(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{Breaker: webhooks.Breaker{Failures: 1}})
	w.declare("one")
	for i := range 8 {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "violent=present"))
	}
	w.failOne("one")
	for round := range 10 {
		w.coolDownOver("one")
		got := make(chan []webhooks.Delivery, 8)
		for range cap(got) {
			go func() {
				ds, err := w.store.Outbox().Claim(t.Context(), 2, lease, []string{"one"})
				if err != nil {
					t.Error(err)
				}
				got <- ds
			}()
		}
		var all []webhooks.Delivery
		for range cap(got) {
			all = append(all, <-got...)
		}
		if len(all) != 1 {
			t.Fatalf("round %d: %d probes", round, len(all))
		}
		w.finish(all[0], 500, webhooks.Outcome{State: webhooks.StateRetry})
	}
}

// After five days of nothing but failures an endpoint is given up: what waits is
// held, the others are told, and enabling it releases all.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two", "three")
	for i := range 3 {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "violent=present"))
	}
	for range 9 {
		w.failOne("one")
	}
	w.exec(`update endpoint set failing_since = now() - interval '6 days' where id = 'one'`)
	if e := w.endpoint("one"); e.State() != "enabled" {
		t.Fatalf("nine failures, however long: %s", e.State())
	}
	w.failOne("one")
	e := w.endpoint("one")
	if e.State() != "disabled" || e.DisabledBy != "weir" || e.DisabledWhy != "nothing but failures for 5 days" || e.Held != 3 || e.Waiting != 0 {
		t.Fatalf("%+v", e)
	}
	told := []string{}
	for _, d := range w.claimFrom("one", "two", "three") {
		told = append(told, d.EndpointID+" "+d.Type)
		var body struct{ Data map[string]any }
		if err := json.Unmarshal(d.Body, &body); err != nil || body.Data["endpoint"] != "one" || body.Data["by"] != "weir" || body.Data["reason"] != e.DisabledWhy {
			t.Errorf("%s (%v)", d.Body, err)
		}
	}
	if diff := cmp.Diff([]string{"three endpoint.disabled", "two endpoint.disabled"}, sorted(told)); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}
	if err := w.store.EnableEndpoint(t.Context(), "one", chi); err != nil {
		t.Fatal(err)
	}
	if ds := w.claimFrom("one"); len(ds) != 3 {
		t.Errorf("%d released, want 3", len(ds))
	}
	var events []string
	for _, ev := range w.endpoint("one").Events {
		events = append(events, ev.Type+" "+ev.Actor+": "+ev.Reason)
	}
	want := []string{"enabled chi: looked into it", "disabled weir: nothing but failures for 5 days", "declared weir: policies.yaml declares it"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	for _, sql := range []string{`update endpoint_event set actor = 'x'`, `delete from endpoint_event`, `truncate endpoint_event cascade`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

func (w *world) claimFrom(endpoints ...string) []webhooks.Delivery {
	w.Helper()
	ds, err := w.store.Outbox().Claim(w.Context(), 100, lease, endpoints)
	if err != nil {
		w.Fatal(err)
	}
	return ds
}

// A person stops an endpoint: an attempt under way may end, and if it fails its
// delivery is held with the others.
func TestDisable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "violent=present"))
	w.submit("bo", spec("s", "", "violent=present"))
	under := w.claim(1)[0]
	if err := w.store.DisableEndpoint(t.Context(), "one", chi); err != nil {
		t.Fatal(err)
	}
	w.finish(under, 500, webhooks.Outcome{State: webhooks.StateRetry, RetryIn: time.Second})
	if e := w.endpoint("one"); e.State() != "disabled" || e.DisabledBy != "chi" || e.DisabledWhy != chi.Reason || e.Held != 2 || e.Waiting != 0 {
		t.Errorf("%+v", e)
	}
	if err := w.store.DisableEndpoint(t.Context(), "one", webhooks.Order{Actor: "bo", Reason: "me too"}); err != nil {
		t.Fatal(err)
	}
	if e := w.endpoint("one"); e.DisabledBy != "chi" {
		t.Errorf("disabled again by %s", e.DisabledBy)
	}
	if n := one[int](w, `select count(*) from delivery where type = 'endpoint.disabled'`); n != 1 {
		t.Errorf("%d messages about it, want 1", n)
	}
	for _, err := range []error{w.store.DisableEndpoint(t.Context(), "none", chi), w.store.EnableEndpoint(t.Context(), "none", chi)} {
		if !errors.Is(err, review.ErrNotFound) || errors.Is(err, review.ErrUnavailable) {
			t.Errorf("an endpoint that is not there: %v", err)
		}
	}
}

// What slipped in while an endpoint was being disabled, or was under way in a
// process that died, is held at the next look.
func TestDeclareHoldsWhatSlippedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "violent=present"))
	w.submit("bo", spec("s", "", "violent=present"))
	w.claim(1)
	w.exec(`update endpoint set disabled_at = now(), disabled_by = 'x', disabled_why = 'y' where id = 'one'`)
	w.declare("one", "two")
	if got := sorted(states(w, "state")); !slices.Equal(got, []string{"one delivering", "one held"}) {
		t.Errorf("%v", got)
	}
	w.leaseOver()
	w.declare("one", "two")
	if got := states(w, "state"); !slices.Equal(got, []string{"one held", "one held"}) {
		t.Errorf("%v", got)
	}
}

// A message that was held while its endpoint was being enabled is released at the
// next look: nobody would enable what is enabled.
func TestDeclareReleasesWhatSlippedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desk, _ := w.patient()
	w.declare("one")
	w.ok("disable", w.store.DisableEndpoint(t.Context(), "one", chi))
	letGo := w.hold("insert on spec")
	submitted := make(chan error, 1)
	go func() {
		_, _, err := desk.Submit(t.Context(), principal("bo"), spec("r", "", "violent=present"), nil)
		submitted <- err
	}()
	w.until(somebodyWaits)
	w.ok("enable", w.store.EnableEndpoint(t.Context(), "one", chi))
	letGo()
	w.ok("submit", <-submitted)
	w.declare("one")
	if ds := w.claimFrom("one"); len(ds) != 1 {
		t.Errorf("%d to be sent, want 1; %v", len(ds), states(w, "state"))
	}
}

// An endpoint that nobody declares any more is removed after a while, and what
// waits for it ends: nobody will ever take it.
func TestRemovedEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one", "two")
	w.submit("bo", spec("r", "", "personal_data=present"))
	w.declare("two") // a replica with a newer file
	if got := sorted(states(w, "state")); !slices.Equal(got, []string{"one pending", "two pending"}) {
		t.Fatalf("during a rolling restart: %v", got)
	}
	w.exec(`update endpoint set seen_at = now() - interval '11 minutes' where id = 'one'`)
	w.declare("two")
	if got := sorted(states(w, "state || ' ' || (finished_at is not null)")); !slices.Equal(got, []string{"one cancelled true", "two pending false"}) {
		t.Errorf("%v", got)
	}
	if list, err := w.store.Endpoints(t.Context(), "default"); err != nil || len(list) != 1 || list[0].ID != "two" {
		t.Errorf("endpoints %+v, %v", list, err)
	}
	if _, err := w.store.Endpoint(t.Context(), "default", "one"); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("one: %v", err)
	}
	w.declare("one", "two")
	w.submit("bo", spec("s", "", "violent=present"))
	if ds := w.claimFrom("one"); len(ds) != 1 {
		t.Errorf("declared again: %d claimable", len(ds))
	}
	if n := one[int](w, `select count(*) from endpoint_event where endpoint = 'one'`); n != 3 {
		t.Errorf("%d events, want declared, removed, declared", n)
	}
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

// A ping goes out whatever the endpoint's state, once, and a failed one says
// nothing about an outage.
func TestPingEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{Breaker: webhooks.Breaker{Failures: 1}})
	w.declare("one//review.decided", "two")
	w.submit("bo", spec("r", "", "personal_data=present"))
	ping := func() webhooks.Delivery {
		t.Helper()
		id, err := w.store.PingEndpoint(t.Context(), "one", chi)
		if err != nil {
			t.Fatal(err)
		}
		ds := w.claimFrom("one")
		if len(ds) != 1 || ds[0].ID != id || ds[0].Type != webhooks.TypePing || ds[0].Request == "" {
			t.Fatalf("claimed %+v", ds)
		}
		return ds[0]
	}
	w.finish(ping(), 500, webhooks.Outcome{State: webhooks.StateDead})
	if e := w.endpoint("one"); e.State() != "enabled" || e.Failures != 0 {
		t.Errorf("a failed ping: %s, %d failures", e.State(), e.Failures)
	}
	w.exec(`update endpoint set trips = 1, open_until = now() + interval '1 hour' where id = 'one'`)
	ping()
	if err := w.store.DisableEndpoint(t.Context(), "one", chi); err != nil {
		t.Fatal(err)
	}
	w.finish(ping(), 200, webhooks.Outcome{State: webhooks.StateDelivered})
	if e := w.endpoint("one"); e.State() != "disabled" {
		t.Errorf("a good ping enabled it: %s", e.State())
	}
	if _, err := w.store.PingEndpoint(t.Context(), "none", chi); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("an endpoint that is not there: %v", err)
	}
}

func TestTypesOfAnEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one//review.decided,review.expired", "two")
	s := w.submit("dee", spec("r", "", "violent=present"))
	if n := one[int](w, `select count(*) from delivery`); n != 0 {
		t.Errorf("told of what it does not want: %d", n)
	}
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	if got := states(w, "type"); !slices.Equal(got, []string{"one review.decided"}) {
		t.Errorf("%v", got)
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

// Every type in every format: small, signed bytes of ids, digests and terms.
// What a submitter chose cannot become markup, and no text of a spec is there.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{BaseURL: "https://weir.example"})
	w.declare("standard", "chat/chat", "ticket/ticket", "events/cloudevents")
	const hostile = "https://evil.example/@channel"
	s := w.submit("bo", spec(hostile, "secret-marker", "violent=present"))
	terms := make([]string, 500)
	for i := range terms {
		terms[i] = fmt.Sprintf("ethics:%03d_%s", i, strings.Repeat("x", 120))
	}
	for _, typ := range append(webhooks.Types(), webhooks.TypePing) {
		about := strings.HasPrefix(typ, "endpoint.")
		if _, err := w.pool.Exec(t.Context(), `with message as (
				select e as endpoint, @type::text as type, case when @about then 'legal' end as about, case when @about then 'chi' end as actor,
					case when @about then 'because' end as reason, s.project, s.id as screening_id, r.id as review_id, s.spec_sha256, 'escalate' as outcome,
					r.version, r.due_at, @terms::text[] as terms, @terms::text[] as policies
				from screening s join review r on r.screening_id = s.id, unnest(array['standard', 'chat', 'ticket', 'events']) e
			) `+store.InsertDeliverySQL, pgx.StrictNamedArgs{"type": typ, "about": about, "terms": terms, "base_url": "https://weir.example"}); err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
	}
	forbidden := []string{"secret-marker", "sft", "disclosures", "structured", "basis"}
	seen := 0
	for _, d := range w.claimFrom("standard", "chat", "ticket", "events") {
		seen++
		name := d.EndpointID + " " + d.Type
		if len(d.Body) > webhooks.MaxBodyBytes {
			t.Errorf("%s: %d bytes", name, len(d.Body))
		}
		for _, f := range forbidden {
			if strings.Contains(string(d.Body), f) {
				t.Errorf("%s holds %q: %s", name, f, d.Body)
			}
		}
		var body struct {
			Type, Timestamp string
			Data            map[string]any
			Text            string
			Title, Body     string
			Labels          []string
		}
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch d.EndpointID {
		case "standard":
			if body.Type != d.Type || body.Timestamp == "" || len(body.Data["terms"].([]any)) != 50 || body.Data["terms_left_out"] != 450.0 {
				t.Errorf("%s: %.300s", name, d.Body)
			}
			if got := body.Data["url"]; got != "https://weir.example/console/reviews/"+s.Review.ID {
				t.Errorf("%s: url %v", name, got)
			}
			continue
		case "events":
			checkCloudEvent(t, d, "https://weir.example", s.Review.ID)
			continue
		case "ticket":
			if !slices.Equal(body.Labels, []string{"weir", d.Type}) || body.Title == "" {
				t.Errorf("%s: %.300s", name, d.Body)
			}
			body.Text = body.Title + "\n" + body.Body
		}
		subject := "`" + hostile + "`"
		if strings.HasPrefix(d.Type, "endpoint.") {
			subject = "`legal`"
		}
		if !strings.Contains(body.Text, subject) || strings.Contains(strings.ReplaceAll(body.Text, subject, ""), "evil") {
			t.Errorf("%s: %s", name, body.Text)
		}
		if strings.Contains(body.Text, "because") {
			t.Errorf("%s: a reason, which is anybody's text: %s", name, body.Text)
		}
	}
	if want := 4 * (len(webhooks.Types()) + 1); seen != want {
		t.Errorf("%d bodies, want %d", seen, want)
	}
}

// What is enqueued may be about an admission, without a review, and with columns
// that are null or not there.
func TestBodiesOfFewColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("standard", "chat/chat", "ticket/ticket", "events/cloudevents")
	if _, err := w.pool.Exec(t.Context(), `with message as (
			select e as endpoint, 'admission.revoked' as type, null::text as project, null::text[] as terms, null::timestamptz as due_at
			from unnest(array['standard', 'chat', 'ticket', 'events']) e
		) `+store.InsertDeliverySQL, pgx.StrictNamedArgs{"base_url": ""}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"standard": `"data": {}`, "chat": "{\"text\": \"Admission revoked: `?`\"}", "ticket": "\"body\": \"Admission revoked: `?`\"",
		"events": `"source": "urn:weir"`}
	ds := w.claimFrom("standard", "chat", "ticket", "events")
	for _, d := range ds {
		if !strings.Contains(string(d.Body), want[d.EndpointID]) {
			t.Errorf("%s: %s, want %s in it", d.EndpointID, d.Body, want[d.EndpointID])
		}
	}
	if len(ds) != 4 {
		t.Errorf("%d messages, want 4", len(ds))
	}
	for _, d := range ds {
		if d.EndpointID == "events" {
			checkCloudEvent(t, d, "urn:weir", "")
		}
	}
}

// The real messages carry the run's name in formats for people. Were the run_ref
// ever to hold more than it may today, it still could not leave its span.
func TestChatMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one/chat", "two/ticket")
	s := w.submit("dee", spec("nlp/bot@2026", "", "violent=present", "personal_data=present"))
	text := func(endpoint, typ string) string {
		t.Helper()
		return one[string](w, `select convert_from(body, 'UTF8') from delivery where endpoint = $1 and type = $2 order by created_at desc limit 1`, endpoint, typ)
	}
	if got := text("one", "review.opened"); !strings.Contains(got, "Review needed: `nlp/bot@2026`") || !strings.Contains(got, "ethics:violent_inside") {
		t.Error(got)
	}
	if got := text("two", "review.opened"); !strings.Contains(got, `"title": "Review needed: `+"`nlp/bot@2026`") {
		t.Error(got)
	}
	w.exec("update screening set run_ref = e'a` <!channel> [x](http://evil) \u202e\\n@here'")
	w.overdue(s)
	if _, err := w.desk.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := text("one", "review.expired"); !strings.Contains(got, "`a????channel???x??http://evil????@here`") {
		t.Error(got)
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
