package store_test

import (
	"encoding/json"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"weir/webhooks"
)

// checkCloudEvent has the format's own library read a body, and compares what it
// read with the delivery. The data is what the standard format has.
func checkCloudEvent(t *testing.T, d webhooks.Delivery, source, review string) {
	t.Helper()
	var e event.Event
	if err := json.Unmarshal(d.Body, &e); err != nil {
		t.Fatalf("%s: %v in %.300s", d.Type, err, d.Body)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("%s: %v", d.Type, err)
	}
	if e.SpecVersion() != "1.0" || e.ID() != d.MessageID || e.Type() != d.Type || e.Source() != source || e.Subject() != review ||
		e.DataContentType() != "application/json" || e.Time().IsZero() || len(e.Extensions()) != 0 {
		t.Errorf("%s: %v", d.Type, e)
	}
	var data map[string]any
	if err := e.DataAs(&data); err != nil {
		t.Errorf("%s: data: %v", d.Type, err)
	}
	if review != "" && (data["review_id"] != review || len(data["terms"].([]any)) != 50) {
		t.Errorf("%s: data %v", d.Type, data)
	}
}
