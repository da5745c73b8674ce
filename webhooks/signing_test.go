package webhooks

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
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

// The example of the Standard Webhooks specification, which was signed by
// another implementation with this key.
func TestSignV1aVector(t *testing.T) {
	t.Parallel()
	const key = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	keys, err := newSigner([]Secret{{Key: key}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	const want = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// What is made here is taken here, and the public half verifies.
func TestNewSecrets(t *testing.T) {
	t.Parallel()
	private, public, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := newSigner([]Secret{{Key: NewSecret()}, {Key: private}})
	if err != nil {
		t.Fatal(err)
	}
	now, body := time.Now(), []byte(`{"a":1}`)
	header, err := keys.sign("msg_1", now, body)
	if err != nil {
		t.Fatal(err)
	}
	v1, v1a, ok := strings.Cut(header, " ")
	if !ok || !strings.HasPrefix(v1, "v1,") || !strings.HasPrefix(v1a, "v1a,") {
		t.Fatalf("signatures %q, want a v1 and a v1a", header)
	}
	pub, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(v1a, "v1a,"))
	if err != nil || !ed25519.Verify(pub, fmt.Appendf(nil, "msg_1.%d.%s", now.Unix(), body), sig) {
		t.Errorf("v1a does not verify with the public key (%v)", err)
	}
	if one, two := NewSecret(), NewSecret(); one == two {
		t.Error("two secrets are the same")
	}
}

func TestSecretForms(t *testing.T) {
	t.Parallel()
	private, public, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(private, "whsk_"))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	other := append([]byte(nil), raw...)
	other[40]++
	for name, tt := range map[string]struct{ key, want string }{
		"private":             {private, ""},
		"public":              {public, "public key"},
		"only the seed":       {"whsk_" + encode(raw[:32]), "not an ed25519 key"},
		"halves do not match": {"whsk_" + encode(other), "not an ed25519 key"},
		"empty":               {"whsk_", "not an ed25519 key"},
		"HMAC secret as whsk": {"whsk_" + strings.TrimPrefix(testSecret, "whsec_"), "not an ed25519 key"},
		"not base64":          {"whsk_s3cr3t!", "not standard base64"},
		"neither":             {"s3cr3t", `"whsec_" or "whsk_"`},
	} {
		_, err := parseSecret(tt.key)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := checkSecrets([]Secret{{Key: private}}); err == nil {
		t.Error("an endpoint without a lasting whsec_ passes: a receiver that knows v1 only could verify nothing")
	}
}
