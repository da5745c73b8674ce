package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/webhooks"
)

// What the gate really sends verifies in the example receivers, by both kinds of
// signature, whatever comes first.
func TestExampleReceivers(t *testing.T) {
	t.Parallel()
	private, public, err := webhooks.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "receiver")
	if out, err := exec.Command("go", "build", "-o", program, "../../deploy/receiver").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the example receiver in Python needs Python 3: apt-get install python3, or make test, which does that (%v)", err)
	}
	inGo := startReceiver(t, exec.Command(program, "-listen", "127.0.0.1:0"), public)
	inPython := startReceiver(t, exec.Command(python, "../../deploy/receiver/receiver.py", "--listen", "127.0.0.1:0"), "")
	secrets := "secrets: [{file: hook.key}, {file: hook.secret}]"
	config := endpointsConfig(t, endpoint("go", inGo.url, secrets), endpoint("python", inPython.url, secrets))
	writeFile(t, []byte(private), config, "hook.key")
	f := startFleet(t, 1, "--config", config)
	s := f.escalate("r")
	for name, r := range map[string]*exampleReceiver{"Go": inGo, "Python": inPython} {
		f.await(name, func() bool {
			return strings.Contains(r.out.String(), "\nVERIFIED review.opened screening="+s.text("id"))
		})
		if strings.Contains(r.out.String(), "REFUSED") {
			t.Errorf("%s: %s", name, r.out)
		}
	}
	d := f.settled("python", "delivered")[0]
	if r := f.ask("POST", "/v1/deliveries/"+d.ID+"/redeliver", ""); r.status != 202 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	f.await("the repetition is known as one", func() bool { return strings.Contains(inPython.out.String(), "\nREPEATED "+d.MessageID) })
	if r := weir(t, append([]string{"endpoint", "ping", "go"}, asking(t, f.gates[0].url, f.token)...)...); r.code != 0 {
		t.Errorf("ping: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

type exampleReceiver struct {
	url string
	out *output
}

func startReceiver(t *testing.T, cmd *exec.Cmd, public string) *exampleReceiver {
	t.Helper()
	r := &exampleReceiver{out: &output{}}
	cmd.Env = append(environment(), "RECEIVER_SECRET="+secret, "RECEIVER_PUBLIC_KEY="+public)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(r.out.String(), "\n") {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("the receiver does not start: %s", r.out)
		}
	}
	line, _, _ := strings.Cut(r.out.String(), "\n")
	r.url = "http://" + strings.TrimPrefix(line, "listening on ") + "/hooks/weir"
	return r
}
