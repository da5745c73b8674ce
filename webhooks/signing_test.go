package webhooks

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func TestSignRotation(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys, err := newSigner([]Secret{{Key: testSecret}, {Key: otherSecret, ExpiresAt: now}})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"a":1}`)
	verifies := func(secret string, at time.Time) bool {
		sig, err := keys.sign("msg_1", at, body)
		if err != nil {
			t.Fatal(err)
		}
		v, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set("webhook-id", "msg_1")
		h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		h.Set("webhook-signature", sig)
		return v.Verify(body, h) == nil
	}
	tests := []struct {
		name     string
		at       time.Time
		new, old bool
	}{
		{"during the overlap", now.Add(-time.Second), true, true},
		{"at the expiry", now, true, false},
		{"after it", now.Add(time.Second), true, false},
	}
	for _, tt := range tests {
		if got := verifies(testSecret, tt.at); got != tt.new {
			t.Errorf("%s: the new secret verifies: %t", tt.name, got)
		}
		if got := verifies(otherSecret, tt.at); got != tt.old {
			t.Errorf("%s: the old secret verifies: %t", tt.name, got)
		}
	}
}

func TestSignRefusals(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lasting, err := newSigner([]Secret{{Key: testSecret}})
	if err != nil {
		t.Fatal(err)
	}
	expired, err := newSigner([]Secret{{Key: testSecret, ExpiresAt: now}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "msg_1.2", "msg 1", "msg\r\n1", "msg_é", strings.Repeat("m", 129)} {
		if sig, err := lasting.sign(id, now, nil); err == nil {
			t.Errorf("signed id %q: %s", id, sig)
		}
	}
	if sig, err := expired.sign("msg_1", now, nil); err == nil {
		t.Errorf("signed with an expired secret: %s", sig)
	}
}
