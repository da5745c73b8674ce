package webhooks

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
)

// A body that is a CloudEvent travels as one, signed like any other; whatever the
// endpoint is declared as now, a body that is none does not.
func TestSendCloudEvents(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "thanks") })
	e := loopback("mesh", r.URL)
	e.Format = FormatCloudEvents
	s := newTestSender(t, e, Config{})
	for body, want := range map[string]string{
		`{"id": "msg_1", "data": {"sequence": 1}, "time": "2026-11-30T18:19:39.241668Z", "type": "review.opened", "source": "https://weir.example", "specversion": "1.0", "datacontenttype": "application/json"}`: event.ApplicationCloudEventsJSON,
		`{"data": {"specversion": "1.0"}, "type": "review.opened"}`: "application/json", // made before the format was declared
		`{"text": "Review needed"}`:                                 "application/json",
	} {
		d := message("mesh")
		d.Body = []byte(body)
		if a := s.send(t.Context(), d); !a.Delivered() {
			t.Fatalf("%+v", a)
		}
		all := r.requests()
		got := all[len(all)-1]
		if got.err != nil || string(got.body) != body {
			t.Errorf("%s: verification %v of %s", body, got.err, got.body)
		}
		if is := got.header.Get("Content-Type"); is != want {
			t.Errorf("%s: sent as %q, want %q", body, is, want)
		}
		if want != event.ApplicationCloudEventsJSON {
			continue
		}
		var ev event.Event
		if err := json.Unmarshal(got.body, &ev); err != nil {
			t.Fatal(err)
		}
		if err := ev.Validate(); err != nil || ev.ID() != "msg_1" || ev.Type() != TypeOpened {
			t.Errorf("%v: %v", ev, err)
		}
	}
}
