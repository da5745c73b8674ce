package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/store"
	"weir/webhooks"
)

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

// What waits for an endpoint that cools down is not gone through again and again.
func TestBacklogOfACoolingEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("one")
	w.submit("bo", spec("r", "", "violent=present"))
	w.exec(`insert into delivery (message_id, endpoint, type, project, screening_id, review_id, body, due_at)
		select 'msg_' || n, endpoint, type, project, screening_id, review_id, body, now() - n * interval '1 second' from delivery, generate_series(1, 3000) n`)
	w.exec(`analyze delivery`)
	w.exec(`update endpoint set failures = 10, failing_since = now(), trips = 1, open_until = now() + interval '1 hour'`)
	claim := func() map[string]int {
		t.Helper()
		var plan []byte
		w.ok("explain", w.pool.QueryRow(t.Context(), "explain (analyze, format json) "+store.ClaimSQL,
			pgx.StrictNamedArgs{"limit": 2, "lease": 30.0, "endpoints": []string{"one"}}).Scan(&plan))
		return rowsRead(t, plan)
	}
	for node, rows := range claim() {
		if rows > 10 {
			t.Errorf("%s reads %d rows", node, rows)
		}
	}
	_, err := w.store.PingEndpoint(t.Context(), "one", chi)
	w.ok("ping", err)
	if ds := w.claimFrom("one"); len(ds) != 1 || ds[0].Type != webhooks.TypePing {
		t.Errorf("claimed %+v, want the ping", ds)
	}
}
