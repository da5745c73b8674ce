package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/store"
	"weir/webhooks"
)

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

func (w *world) endpoint(id string) *webhooks.EndpointStatus {
	w.Helper()
	e, err := w.store.Endpoint(w.Context(), "default", id)
	if err != nil {
		w.Fatal(err)
	}
	return e
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
