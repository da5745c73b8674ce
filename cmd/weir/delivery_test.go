package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The command line sends again what an outage left behind.
func TestRedeliverByCommand(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	code := 503
	h := newHook(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(code)
	})
	config := endpointsConfig(t, endpoint("hook", h.URL))
	f := startFleet(t, 3, "--config", config, "--webhook-schedule", "0s")
	for i := range 4 {
		f.escalate(fmt.Sprintf("r%d", i))
	}
	dead := f.settled("hook", "dead")
	to := asking(t, f.gates[0].url, f.token)
	run := func(want int, args ...string) string {
		t.Helper()
		r := weir(t, append(args, to...)...)
		if r.code != want {
			t.Fatalf("weir %s: exit %d: %s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
		}
		for line := range strings.Lines(r.stdout) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
				t.Errorf("weir %s: a line of more than 80 columns: %s", strings.Join(args, " "), line)
			}
		}
		return r.stdout
	}
	if out := run(0, "delivery", "list", "--state", "dead", "--endpoint", "hook"); strings.Count(out, "review.opened to hook") != 4 || !strings.Contains(out, "503") {
		t.Error(out)
	}
	mu.Lock()
	code = 200
	mu.Unlock()
	if out := run(0, "delivery", "redeliver", dead[0].ID); !strings.Contains(out, "sent again") {
		t.Error(out)
	}
	f.await("one delivered", func() bool { return f.deliveries("hook")[0].State == "delivered" })
	if out := run(0, "delivery", "redeliver", "--endpoint", "hook", "--since", "1h"); !strings.Contains(out, "3 deliveries are sent again") {
		t.Error(out)
	}
	f.settled("hook", "delivered")
	out := run(0, "delivery", "show", dead[0].ID)
	for _, want := range []string{"attempt 1", "attempt 2", "asked for by hand", dead[0].MessageID, `"type": "review.opened"`} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	marked := 0
	for _, r := range h.requests() {
		if r.header.Get("weir-redelivery") == "manual" {
			marked++
		}
	}
	if marked != 4 {
		t.Errorf("%d requests marked as asked for, want 4", marked)
	}
	if out := run(0, "endpoint", "list"); !strings.Contains(out, "hook  enabled") {
		t.Error(out)
	}
	run(0, "endpoint", "disable", "hook", "--reason", "it moves")
	run(exitUsage, "delivery", "redeliver", dead[0].ID)
	run(exitUsage, "delivery", "redeliver")
	run(exitUsage, "delivery", "redeliver", "--endpoint", "hook", "--since", "yesterday")
	run(exitUsage, "delivery", "list", "--state", "gone")
	run(exitUsage, "endpoint", "show", "none")
	if out := run(0, "endpoint", "show", "hook"); !strings.Contains(out, "disabled by bo: it moves") {
		t.Error(out)
	}
	r := weirEnv(t, []string{f.env()}, "doctor", "--config", config, "--packs", pledge(t))
	if out := strings.Join(strings.Fields(r.stdout), " "); !strings.Contains(out, "endpoint hook is disabled") || !strings.Contains(out, "by bo: it moves") {
		t.Errorf("doctor says nothing of it: %s%s", r.stdout, r.stderr)
	}
}

// Settings that cannot work end the start at once, before any database.
func TestWebhookFlags(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--webhook-cooldown=-1s", "--webhook-resolver=10.0.0.53", "--webhook-schedule=soon"} {
		r := weirEnv(t, nil, "serve", "--listen", "127.0.0.1:0", "--packs", pledge(t), "--state-dir", filepath.Join(t.TempDir(), "none"), "--config", configFor(t, ""), flag)
		if r.code != exitUsage || !strings.Contains(r.stderr, "webhook") {
			t.Errorf("%s: exit %d: %s", flag, r.code, r.stderr)
		}
	}
}

func TestEndpointSecretCommand(t *testing.T) {
	t.Parallel()
	if r := weir(t, "endpoint", "secret"); r.code != 0 || !strings.HasPrefix(r.stdout, "whsec_") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("exit %d: %s", r.code, r.stdout)
	}
	if r := weir(t, "endpoint", "secret", "--ed25519"); r.code != 0 || !strings.HasPrefix(r.stdout, "whsk_") || !strings.Contains(r.stdout, "\nwhpk_") {
		t.Errorf("exit %d: %s", r.code, r.stdout)
	}
}
