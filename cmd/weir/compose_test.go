package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The compose file's services as processes: what setup.sh makes, the environment,
// the declarations and the receiver's command are those of the file, and only names
// of hosts and directories are this machine's. That Compose itself takes the file is
// tested in deploy/operations.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/compose")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secrets", ".env"} { // of who tried it here
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(dir, "secrets") + "/"
	made := map[string]string{}
	for range 2 { // the second changes nothing
		if out, err := exec.Command(filepath.Join(dir, "setup.sh")).CombinedOutput(); err != nil {
			t.Fatalf("setup.sh: %v: %s", err, out)
		}
		for _, name := range []string{"database_password", "database_url", "signing_key", "signing_key.pub", "receiver_secret"} {
			info, err := os.Stat(secrets + name)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(secrets + name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
			if was, again := made[name]; again && was != string(data) {
				t.Errorf("%s is another after the second run", name)
			}
			made[name] = string(data)
		}
	}
	if u, err := url.Parse(strings.TrimSpace(made["database_url"])); err != nil || u.Host != "database" || u.User.String() != "weir:"+strings.TrimSpace(made["database_password"]) {
		t.Errorf("the database is at %v (%v)", u, err)
	}

	type service struct {
		Environment map[string]string
		Command     []string
	}
	var file struct{ Services map[string]service }
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/run/secrets/", secrets, "$$", "$", "/receiver.py", "../../deploy/receiver/receiver.py", "0.0.0.0:8099", "127.0.0.1:0")
	command := file.Services["receiver"].Command
	for i := range command {
		command[i] = here.Replace(command[i])
	}
	receiver := startReceiver(t, exec.Command(command[0], command[1:]...), "")

	db := newDatabase(t)
	writeFile(t, []byte(db.dsn+"\n"), secrets, "database_url")
	for name, host := range map[string]string{"people.yaml": "", "policies.yaml": "http://receiver:8099/hooks/weir"} {
		data, err := os.ReadFile(filepath.Join(dir, "config", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), host) {
			t.Fatalf("%s does not tell %s", name, host)
		}
		writeFile(t, []byte(strings.NewReplacer("http://receiver:8099/hooks/weir", receiver.url, "/run/secrets/", secrets).Replace(string(data))), dir, "config", name)
	}
	var gates []*gate
	for _, name := range []string{"weir-a", "weir-b"} {
		var env []string
		for key, value := range file.Services[name].Environment {
			env = append(env, key+"="+here.Replace(value))
		}
		gates = append(gates, startGate(t, env, "--config", filepath.Join(dir, "config")).ready())
	}
	s, err := post(t.Context(), gates[0].url, db.token, "one", spec("r", escalates))
	if err != nil || s.status != 202 {
		t.Fatalf("status %d (%v): %s", s.status, err, s.body)
	}
	gates[0].await("the receiver verified the message", func() bool {
		return strings.Contains(receiver.out.String(), "\nVERIFIED review.opened screening="+s.text("id"))
	})
	if r, err := send(t.Context(), "POST", gates[1].url+"/v1/gate/check", db.token, spec("r", escalates), "Content-Type", "application/yaml"); err != nil || r.status != 409 {
		t.Errorf("the other replica: status %d (%v): %s", r.status, err, r.body)
	}
}
