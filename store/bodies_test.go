package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/store"
	"weir/webhooks"
)

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
