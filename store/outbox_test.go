package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/store"
	"weir/webhooks"
)

const lease = time.Minute

// claim takes for the endpoints one and two, but for those to skip.
func (w *world) claim(limit int, skip ...string) []webhooks.Delivery {
	w.Helper()
	from := slices.DeleteFunc([]string{"one", "two"}, func(id string) bool { return slices.Contains(skip, id) })
	ds, err := w.store.Outbox().Claim(w.Context(), limit, lease, from)
	if err != nil {
		w.Fatalf("claim: %v", err)
	}
	return ds
}

func attempt(d webhooks.Delivery, status int) webhooks.Attempt {
	a := webhooks.Attempt{DeliveryID: d.ID, EndpointID: d.EndpointID, Number: d.Attempt, StartedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		Duration: 12 * time.Millisecond, Host: "one.example", IP: netip.MustParseAddr("192.0.2.1"), Status: status, Answer: "ok"}
	if status != 200 {
		a.Class = webhooks.ClassHTTPStatus
	}
	return a
}

func (w *world) finish(d webhooks.Delivery, status int, o webhooks.Outcome) {
	w.Helper()
	if err := w.store.Outbox().Finish(w.Context(), d, attempt(d, status), o); err != nil {
		w.Fatalf("finish: %v", err)
	}
}

// leaseOver lets every lease run out.
func (w *world) leaseOver() {
	w.Helper()
	w.exec(`update delivery set lease_until = now() - interval '1 second' where state = 'delivering'`)
}

func states(w *world, column string) []string {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), `select endpoint || ' ' || `+column+` from delivery order by created_at, endpoint, type`)
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			w.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("a", "", "personal_data=present")) // one delivery each to the endpoints one and two
	w.submit("bo", spec("b", "", "personal_data=present"))
	w.exec(`update delivery set due_at = now() - interval '1 hour' where endpoint = 'two'`)
	w.exec(`update delivery set due_at = now() + interval '1 hour' where review_id = (select id from review order by opened_at limit 1) and endpoint = 'one'`)

	if ds := w.claim(1); len(ds) != 1 || ds[0].EndpointID != "two" || ds[0].Attempt != 1 || ds[0].Claim == "" || ds[0].Type != "review.opened" {
		t.Errorf("the oldest due: %+v", ds)
	}
	if ds := w.claim(10, "two"); len(ds) != 1 || ds[0].EndpointID != "one" {
		t.Errorf("without two: %+v", ds)
	}
	if ds := w.claim(10); len(ds) != 1 || ds[0].EndpointID != "two" {
		t.Errorf("what is left and due: %+v", ds)
	}
	if ds := w.claim(10); len(ds) != 0 {
		t.Errorf("claimed twice: %+v", ds)
	}
}

func TestLeasesAndFencing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("a", "", "violent=present")) // one delivery, to one
	first := w.claim(10)[0]
	if ds := w.claim(10); len(ds) != 0 {
		t.Fatalf("leased and claimed: %+v", ds)
	}
	w.leaseOver()
	second := w.claim(10)
	if len(second) != 1 || second[0].Attempt != 2 || second[0].Claim == first.Claim {
		t.Fatalf("after the lease: %+v", second)
	}
	if second[0].MessageID != first.MessageID || string(second[0].Body) != string(first.Body) {
		t.Error("the message changed between attempts")
	}
	// The worker that was thought dead comes back late, and changes nothing.
	err := w.store.Outbox().Finish(t.Context(), first, attempt(first, 200), webhooks.Outcome{State: webhooks.StateDelivered})
	if !errors.Is(err, webhooks.ErrClaimLost) {
		t.Errorf("late finish: %v, want ErrClaimLost", err)
	}
	if err := w.store.Outbox().Release(t.Context(), []webhooks.Delivery{first}); err != nil {
		t.Errorf("late release: %v", err)
	}
	if got := one[string](w, `select state || ' ' || attempt from delivery`); got != "delivering 2" || one[int](w, `select count(*) from delivery_attempt`) != 0 {
		t.Errorf("a lost claim changed the delivery: %s", got)
	}
	w.finish(second[0], 200, webhooks.Outcome{State: webhooks.StateDelivered})
	err = w.store.Outbox().Finish(t.Context(), second[0], attempt(second[0], 200), webhooks.Outcome{State: webhooks.StateDelivered})
	if !errors.Is(err, webhooks.ErrClaimLost) {
		t.Errorf("finished twice: %v", err)
	}
	w.leaseOver()
	if ds := w.claim(10); len(ds) != 0 {
		t.Errorf("a delivered message is claimed: %+v", ds)
	}
	want := "2 12 one.example (192.0.2.1) 200  ok"
	if got := one[string](w, `select concat_ws(' ', attempt, duration_ms, address, status, class, answer) from delivery_attempt`); got != want {
		t.Errorf("attempt row %q, want %q", got, want)
	}
}

func TestReleaseDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("a", "", "personal_data=present"))
	ds := w.claim(10)
	if err := w.store.Outbox().Release(t.Context(), ds); err != nil {
		t.Fatal(err)
	}
	again := w.claim(10)
	if len(again) != 2 || again[0].Attempt != 1 || again[1].Attempt != 1 {
		t.Errorf("released and claimed again: %+v", again)
	}
	if err := w.store.Outbox().Release(t.Context(), nil); err != nil {
		t.Errorf("nothing released: %v", err)
	}
}

func TestNoDeliveryIsClaimedByTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 60
	for i := range n {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), "", "personal_data=present"))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for {
				ds, err := w.store.Outbox().Claim(t.Context(), 5, lease, []string{"one", "two"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, d := range ds {
					seen[d.ID]++
				}
				mu.Unlock()
				if len(ds) == 0 {
					return
				}
			}
		})
	}
	workers.Wait()
	if len(seen) != 2*n {
		t.Errorf("%d deliveries claimed, want %d", len(seen), 2*n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s claimed %d times", id, times)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		outcome webhooks.Outcome
		want    string // state, finished
		due     bool   // claimable at once
	}{
		{"delivered", webhooks.Outcome{State: webhooks.StateDelivered}, "delivered true", false},
		{"again later", webhooks.Outcome{State: webhooks.StateRetry, RetryIn: time.Hour}, "pending false", false},
		{"again at once", webhooks.Outcome{State: webhooks.StateRetry}, "pending false", true},
		{"dead", webhooks.Outcome{State: webhooks.StateDead}, "dead true", false},
		{"held", webhooks.Outcome{State: webhooks.StateHeld}, "held false", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.submit("bo", spec("a", "", "violent=present"))
			w.finish(w.claim(1)[0], 500, tt.outcome)
			if got := one[string](w, `select state || ' ' || (finished_at is not null) from delivery`); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if ds := w.claim(1); (len(ds) == 1) != tt.due {
				t.Errorf("%d claimable, want %t", len(ds), tt.due)
			}
		})
	}
	t.Run("no outcome", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.submit("bo", spec("a", "", "violent=present"))
		d := w.claim(1)[0]
		if err := w.store.Outbox().Finish(t.Context(), d, attempt(d, 200), webhooks.Outcome{}); err == nil {
			t.Error("finished without an outcome")
		}
	})
	t.Run("unsent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.submit("bo", spec("a", "", "violent=present"))
		d := w.claim(1)[0]
		if err := w.store.Outbox().Finish(t.Context(), d, webhooks.Attempt{}, webhooks.Outcome{State: webhooks.StateHeld}); err != nil {
			t.Fatal(err)
		}
		if n := one[int](w, `select count(*) from delivery_attempt`); n != 0 {
			t.Errorf("%d attempts recorded for what was not sent", n)
		}
	})
}

// A receiver that is gone (410) gets no more, and loses nothing.
func TestGoneEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("a", "", "personal_data=present"))
	w.submit("bo", spec("b", "", "personal_data=present"))
	d := w.claim(1, "two")[0]
	w.finish(d, 410, webhooks.Outcome{State: webhooks.StateHeld, Disable: "gone"})
	if diff := cmp.Diff([]string{"one held", "two pending", "one held", "two pending"}, states(w, "state")); diff != "" {
		t.Errorf("deliveries (-want +got)\n%s", diff)
	}
	w.submit("bo", spec("c", "", "personal_data=present"))
	if n := one[int](w, `select count(*) from delivery where endpoint = 'one' and state = 'held'`); n != 3 {
		t.Errorf("%d held, want the new one too", n)
	}
	for _, d := range w.claim(10) {
		if d.EndpointID == "one" {
			t.Errorf("claimed for a disabled endpoint: %+v", d)
		}
		w.finish(d, 410, webhooks.Outcome{State: webhooks.StateHeld, Disable: "gone"})
	}
	if got := one[int](w, `select count(*) from endpoint where disabled_why = 'gone' and disabled_by = 'weir'`); got != 2 {
		t.Errorf("%d endpoints disabled, want 2", got)
	}
	if err := w.store.EnableEndpoint(t.Context(), "one", webhooks.Order{Actor: "chi", Reason: "it is back"}); err != nil {
		t.Fatal(err)
	}
	if ds := w.claim(10); len(ds) != 3 || ds[0].EndpointID != "one" {
		t.Errorf("after enabling: %+v, want the three that were held", ds)
	}
}

// When a review closes, what was to be said about its opening is not said any
// more, whatever state it is in, and its end is told.
func TestClosingCancels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("dee", spec("r", "", "violent=present", "personal_data=present"))
	w.exec(`update review_panel set quorum = 1`)
	under := w.claim(1, "two")[0] // an attempt to one is under way
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	want := []string{"one review.opened delivering", "two review.opened cancelled", "one review.decided pending", "two review.decided pending"}
	if diff := cmp.Diff(sorted(want), sorted(states(w, "type || ' ' || state"))); diff != "" {
		t.Errorf("deliveries (-want +got)\n%s", diff)
	}
	w.finish(under, 500, webhooks.Outcome{State: webhooks.StateRetry, RetryIn: time.Second})
	if got := one[string](w, `select state || ' ' || (finished_at is not null) from delivery where id = $1`, under.ID); got != "cancelled true" {
		t.Errorf("a failed attempt after the end: %s, want it cancelled", got)
	}
	// The end itself is tried again as usual.
	d := w.claim(1)[0]
	if d.Type != "review.decided" {
		t.Fatalf("claimed %+v", d)
	}
	w.finish(d, 500, webhooks.Outcome{State: webhooks.StateRetry})
	if ds := w.claim(10); len(ds) != 2 {
		t.Errorf("%d claimable, want both messages of the end", len(ds))
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

// The body says what happened by ids, digests and terms, and nothing of the spec's text.
func TestMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "violent=present", "personal_data=present"))
	ids := map[string]bool{}
	for _, d := range w.claim(10) {
		if !regexp.MustCompile(`^msg_[0-9a-f]{32}$`).MatchString(d.MessageID) || ids[d.MessageID] {
			t.Errorf("message id %s", d.MessageID)
		}
		ids[d.MessageID] = true
		var body struct {
			Type      string    `json:"type"`
			Timestamp time.Time `json:"timestamp"`
			Data      map[string]any
		}
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Fatal(err)
		}
		terms := []any{"ethics:personal_data_inside", "ethics:violent_inside"} // one is in both panels
		policies := []any{"general", "violence"}
		if d.EndpointID == "two" {
			terms, policies = terms[:1], policies[:1]
		}
		due, _ := body.Data["due_at"].(string)
		if at, err := time.Parse(time.RFC3339Nano, due); err != nil || !at.Equal(s.Review.DueAt) {
			t.Errorf("due at %q, want %s", due, s.Review.DueAt)
		}
		delete(body.Data, "due_at")
		want := map[string]any{"review_id": s.Review.ID, "screening_id": s.ID, "project": "default", "outcome": "escalate",
			"spec_sha256": s.SpecSHA256.String(), "policies": policies, "terms": terms, "sequence": 1.0}
		if diff := cmp.Diff(want, body.Data); diff != "" || body.Type != "review.opened" || body.Timestamp.IsZero() {
			t.Errorf("to %s: %s (-want +got)\n%s", d.EndpointID, d.Body, diff)
		}
	}
	if len(ids) != 2 {
		t.Errorf("%d messages, want one for each endpoint", len(ids))
	}
}

func TestMessagesLinkToTheReview(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{BaseURL: "https://weir.example"})
	s := w.submit("bo", spec("r", "", "violent=present"))
	if d := w.claim(1)[0]; !strings.Contains(string(d.Body), `"https://weir.example/console/reviews/`+s.Review.ID+`"`) {
		t.Errorf("no link: %s", d.Body)
	}
}

// Whoever sends is woken once for a commit that enqueued.
func TestEnqueuedIsTold(t *testing.T) {
	t.Parallel()
	told := make(chan struct{}, 10)
	w := newWorldWith(t, store.Config{Enqueued: func() { told <- struct{}{} }})
	s := w.submit("dee", spec("r", "", "violent=present"))
	<-told
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	<-told
	s = w.submit("dee", spec("r2", "", "violent=present"))
	<-told
	w.overdue(s)
	if _, err := w.desk.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-told
}
