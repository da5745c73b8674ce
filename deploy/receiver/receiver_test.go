package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiBhIHRlc3Qgc2VjcmV0"
	forged    = "whsec_Zm9yZ2VkIGZvcmdlZCBmb3JnZWQgZm9yZ2VkIQ=="
)

// python gives the interpreter; without one these tests fail and say what to do.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the example receiver in Python needs Python 3: apt-get install python3, or make test, which does that (%v)", err)
	}
	return path
}

// subject is a receiver under test: where it listens.
type subject struct{ name, url string }

// both starts the receivers in Go and in Python with the same settings.
func both(t *testing.T, secrets, public string) []subject {
	t.Helper()
	r, err := newReceiver(secrets, public, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r.handler())
	t.Cleanup(server.Close)
	return []subject{{"Go", server.URL + "/hooks/weir"}, {"Python", startPython(t, secrets, public)}}
}

func startPython(t *testing.T, secrets, public string) (url string) {
	t.Helper()
	cmd := exec.Command(python(t), "receiver.py", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "RECEIVER_SECRET="+secrets, "RECEIVER_PUBLIC_KEY="+public)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("said %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return "http://" + address + "/hooks/weir"
}

// message is a request that is signed and then, in most tests, spoiled.
type message struct {
	id   string
	at   time.Time
	body string
	sigs []string
}

func (m *message) signV1(t *testing.T, secret string) {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := hook.Sign(m.id, m.at, []byte(m.body))
	if err != nil {
		t.Fatal(err)
	}
	m.sigs = append(m.sigs, sig)
}

func (m *message) signV1a(key ed25519.PrivateKey) {
	sig := ed25519.Sign(key, fmt.Appendf(nil, "%s.%d.%s", m.id, m.at.Unix(), m.body))
	m.sigs = append(m.sigs, "v1a,"+base64.StdEncoding.EncodeToString(sig))
}

func (m *message) post(t *testing.T, url string, change func(http.Header)) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(m.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", m.id)
	req.Header.Set("webhook-timestamp", fmt.Sprint(m.at.Unix()))
	req.Header.Set("webhook-signature", strings.Join(m.sigs, " "))
	if change != nil {
		change(req.Header)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Both receivers take what weir signs and refuse everything else, alike.
func TestReceivers(t *testing.T) {
	t.Parallel()
	subjects := both(t, oldSecret+" "+newSecret, "")
	const body = `{"type": "review.opened", "data": {"review_id": "r", "terms": ["ethics:x"]}}`
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for _, tt := range []struct {
		name   string
		secret string
		offset time.Duration
		body   string // in place of what was signed
		change func(http.Header)
		want   int
	}{
		{name: "old secret", secret: oldSecret, want: 200},
		{name: "new secret", secret: newSecret, want: 200},
		{name: "four minutes old", secret: oldSecret, offset: -4 * time.Minute, want: 200},
		{name: "forged", secret: forged, want: 401},
		{name: "one space more", secret: oldSecret, body: body + " ", want: 401},
		{name: "another id", secret: oldSecret, change: set("webhook-id", "msg_other"), want: 401},
		{name: "another time", secret: oldSecret, change: set("webhook-timestamp", fmt.Sprint(time.Now().Unix()-1)), want: 401},
		{name: "six minutes old", secret: oldSecret, offset: -6 * time.Minute, want: 401},
		{name: "six minutes ahead", secret: oldSecret, offset: 6 * time.Minute, want: 401},
		{name: "no time", secret: oldSecret, change: set("webhook-timestamp", "soon"), want: 401},
		{name: "no id", secret: oldSecret, change: func(h http.Header) { h.Del("webhook-id") }, want: 401},
		{name: "no signature", secret: oldSecret, change: func(h http.Header) { h.Del("webhook-signature") }, want: 401},
		{name: "another version", secret: oldSecret, change: func(h http.Header) {
			h.Set("webhook-signature", "v2"+strings.TrimPrefix(h.Get("webhook-signature"), "v1"))
		}, want: 401},
		{name: "not base64", secret: oldSecret, change: set("webhook-signature", "v1,%%% v1, ,"), want: 401},
		{name: "too large", secret: oldSecret, body: strings.Repeat(" ", 70_000), want: 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects {
				m := message{id: "msg_" + strings.ReplaceAll(tt.name, " ", ""), at: time.Now().Add(tt.offset), body: body}
				m.signV1(t, tt.secret)
				if tt.body != "" {
					m.body = tt.body
				}
				if got := m.post(t, s.url, tt.change); got != tt.want {
					t.Errorf("%s: status %d, want %d", s.name, got, tt.want)
				}
			}
		})
	}
}

// The vectors of the Standard Webhooks libraries and specification.
func TestVectors(t *testing.T) {
	t.Parallel()
	const (
		id, stamp, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`
		v1              = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	)
	hook, err := standardwebhooks.NewWebhook(oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", v1)
	if err := hook.VerifyIgnoringTimestamp([]byte(body), h); err != nil {
		t.Errorf("Go: %v", err)
	}
	runPython(t, fmt.Sprintf(`
import receiver
headers = {"webhook-id": %q, "webhook-timestamp": %q, "webhook-signature": %q}
keys = [receiver.secret_key(%q)]
receiver.verify(keys, None, headers, %q.encode(), %s)
try:
    receiver.verify(keys, None, headers, b"{}", %s)
except receiver.Refused:
    print("good")
`, id, stamp, v1, oldSecret, body, stamp, stamp))
}

func runPython(t *testing.T, program string) {
	t.Helper()
	cmd := exec.Command(python(t), "-c", program)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "good" {
		t.Errorf("Python: %v: %s", err, out)
	}
}

// With a public key, the secret alone is not enough, and the key alone neither.
// Python's standard library has no ed25519: without the package the receiver
// there refuses to start rather than to take less than it was told to ask for.
func TestPublicKey(t *testing.T) {
	t.Parallel()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := "whpk_" + base64.StdEncoding.EncodeToString(pub)
	r, err := newReceiver(oldSecret, public, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r.handler())
	t.Cleanup(server.Close)
	subjects := []subject{{"Go", server.URL + "/hooks/weir"}}
	if exec.Command(python(t), "-c", "import cryptography").Run() == nil {
		subjects = append(subjects, subject{"Python", startPython(t, oldSecret, public)})
	} else {
		cmd := exec.Command(python(t), "receiver.py", "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), "RECEIVER_SECRET="+oldSecret, "RECEIVER_PUBLIC_KEY="+public)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "needs the package cryptography") {
			t.Errorf("Python without the package: %v: %s", err, out)
		}
	}
	for _, s := range subjects {
		for name, tt := range map[string]struct {
			sign func(*message)
			want int
		}{
			"both":        {func(m *message) { m.signV1(t, oldSecret); m.signV1a(key) }, 200},
			"key first":   {func(m *message) { m.signV1a(key); m.signV1(t, oldSecret) }, 200},
			"secret only": {func(m *message) { m.signV1(t, oldSecret) }, 401},
			"key only":    {func(m *message) { m.signV1a(key) }, 401},
			"another key": {func(m *message) { m.signV1(t, oldSecret); m.signV1a(other) }, 401},
		} {
			m := message{id: "msg_" + strings.ReplaceAll(name, " ", ""), at: time.Now(), body: `{"type": "review.opened"}`}
			tt.sign(&m)
			if got := m.post(t, s.url, nil); got != tt.want {
				t.Errorf("%s, %s: status %d, want %d", s.name, name, got, tt.want)
			}
		}
	}
}

// A receiver that was set up wrongly does not start.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ secrets, public string }{
		"no secret":          {"", ""},
		"empty secret":       {"whsec_", ""},
		"no prefix":          {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ""},
		"second is no good":  {oldSecret + " whsec_%%", ""},
		"a private key":      {oldSecret, "whsk_AAAA"},
		"a short public key": {oldSecret, "whpk_AAAA"},
	} {
		if _, err := newReceiver(tt.secrets, tt.public, io.Discard); err == nil {
			t.Errorf("%s: the receiver in Go starts", name)
		}
		cmd := exec.Command(python(t), "receiver.py", "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), "RECEIVER_SECRET="+tt.secrets, "RECEIVER_PUBLIC_KEY="+tt.public)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "receiver: RECEIVER_") {
			t.Errorf("%s: the receiver in Python: %v: %s", name, err, out)
		}
	}
}
