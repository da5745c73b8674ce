package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/webhooks/witness/witnesstest"
)

// notPaths are the settings whose texts name no file. A new one goes here or gets
// a path in the table: a file that weir.yaml names is looked for beside it.
var notPaths = []string{"listen", "base-url", "tls-min-version", "webhook-resolver", "hooks-listen", "hooks-client-names", "hooks-service", "hooks-project",
	"hooks-controllers", "server", "witness"}

func TestSettingsAreTheFlagsOfServe(t *testing.T) {
	t.Parallel()
	root := newRoot(&bytes.Buffer{}, &bytes.Buffer{})
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	serve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	inTable := []string{}
	for _, s := range settingTable {
		if s.name != "server" && s.name != "key-file" { // of commands that ask a gate
			inTable = append(inTable, s.name)
		}
	}
	slices.Sort(inTable)
	if diff := cmp.Diff(names, inTable); diff != "" {
		t.Errorf("flags of weir serve (-) and settingTable (+):\n%s", diff)
	}
	flags := settingFlags(root)
	for _, s := range settingTable {
		f := flags[s.name]
		if f == nil {
			t.Errorf("no command has a setting --%s", s.name)
			continue
		}
		if typ := f.Value.Type(); !slices.Contains([]string{"string", "stringSlice", "bool", "int", "duration", "durations"}, typ) {
			t.Errorf("--%s is of the type %s, which parseValue does not know", s.name, typ)
		} else if texts := strings.HasPrefix(typ, "string"); texts && (s.path == nil) != slices.Contains(notPaths, s.name) {
			t.Errorf("--%s: say whether it is a path, with path in settingTable or in notPaths", s.name)
		}
		if otherVariables.MatchString(s.env()) {
			t.Errorf("%s is a name that a Kubernetes service may take, or that something else reads", s.env())
		}
	}
	everyCommand(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if first := flags[f.Name]; f.Annotations[isSetting] != nil && (first.Value.Type() != f.Value.Type() || f.Shorthand != "") {
				t.Errorf("%s --%s is not the setting that it says it is", cmd.CommandPath(), f.Name)
			}
		})
		if cmd != root && cmd.PersistentPreRunE != nil {
			t.Errorf("%s replaces what gives the settings their values", cmd.CommandPath())
		}
	})
}

func everyCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		everyCommand(c, do)
	}
}

const (
	settingsBegin = "<!-- settings: written by go test ./cmd/weir -run SettingsPage -update -->\n"
	settingsEnd   = "<!-- end of settings -->\n"
)

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/operations.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := weirEnv(t, nil, "config", "show", "--output", "markdown", "--config", t.TempDir())
	before, rest, found := strings.Cut(string(page), settingsBegin)
	table, after, ended := strings.Cut(rest, settingsEnd)
	if got.code != 0 || !found || !ended {
		t.Fatalf("exit %d, markers %t %t: %s", got.code, found, ended, got.stderr)
	}
	if *update {
		table = got.stdout
		if err := os.WriteFile(path, []byte(before+settingsBegin+table+settingsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(got.stdout, table); diff != "" {
		t.Errorf("docs/operations.md is stale; run this test with -update:\n%s", diff)
	}
}

// shown runs weir config show and gives "value | source" by setting.
func shown(t *testing.T, env []string, args ...string) map[string]string {
	t.Helper()
	got := weirEnv(t, env, append([]string{"config", "show", "--output", "json"}, args...)...)
	var list []shownSetting
	if err := json.Unmarshal([]byte(got.stdout), &list); got.code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", got.code, err, got.stdout, got.stderr)
	}
	out := map[string]string{}
	for _, s := range list {
		out[s.Name] = fmt.Sprintf("%v | %s", s.Value, s.Source)
	}
	return out
}

// Every setting can be given in each form, and the first of them decides.
func TestSettingsPrecedence(t *testing.T) {
	t.Parallel()
	flags := settingFlags(newRoot(&bytes.Buffer{}, &bytes.Buffer{}))
	dir := t.TempDir()
	name := filepath.Join(dir, "weir.yaml")
	file, env, args := "", []string{}, []string{"--config", dir}
	defaults := map[string]string{}
	want := map[string]map[string]string{"file": {}, "env": {}, "flag": {}}
	for i, s := range settingTable {
		// A value for each form, how it is written there, and how it is shown.
		var text, written [3]string
		var show [3]string
		for form := range 3 {
			switch typ := flags[s.name].Value.Type(); typ {
			case "bool":
				text[form] = fmt.Sprint(form != 1)
				written[form], show[form] = text[form], text[form]
			case "int":
				text[form] = fmt.Sprint(100 + form)
				written[form], show[form] = text[form], text[form]
			case "duration", "durations":
				text[form] = fmt.Sprintf("%dh0m0s", form+1)
				written[form], show[form] = text[form], text[form]
				if typ == "durations" {
					written[form], show[form] = "["+text[form]+"]", "["+text[form]+"]"
				}
			case "stringSlice":
				text[form] = fmt.Sprintf("/a%d,/b%d", form, form)
				written[form], show[form] = "["+text[form]+"]", strings.ReplaceAll("["+text[form]+"]", ",", " ")
			default:
				text[form] = fmt.Sprintf("/v%d", form)
				written[form], show[form] = text[form], text[form]
			}
		}
		file += fmt.Sprintf("%s: %s\n", s.key(), written[0])
		env = append(env, s.env()+"="+text[1])
		args = append(args, "--"+s.name+"="+text[2])
		want["file"][s.name] = fmt.Sprintf("%s | %s:%d", show[0], name, i+1)
		want["env"][s.name] = show[1] + " | " + s.env()
		want["flag"][s.name] = show[2] + " | flag"
		defaults[s.name] = "default"
	}
	for s, v := range shown(t, nil, "--config", dir) {
		if _, source, _ := strings.Cut(v, " | "); source != defaults[s] {
			t.Errorf("%s without anything: %s", s, v)
		}
	}
	writeFile(t, []byte(file), name)
	for form, got := range map[string]map[string]string{
		"file": shown(t, nil, "--config", dir),
		"env":  shown(t, env, "--config", dir),
		"flag": shown(t, env, args...),
	} {
		if diff := cmp.Diff(want[form], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
	if got := shown(t, []string{"WEIR_CONFIG=" + dir}); got["listen"] != want["file"]["listen"] {
		t.Errorf("WEIR_CONFIG does not lead to the file: %s", got["listen"])
	}
}

func TestSettingsFileIsStrict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, file, want string }{
		{"unknown key", "listen: ':1'\nlistne: ':1'\n", "line 2: /listne is not a setting; weir config show lists them"},
		{"case variant", "Listen: ':1'\n", "line 1: /Listen is not a setting"},
		{"a flag's name", "base-url: https://weir.example\n", "line 1: /base-url is not a setting"},
		{"duplicate", "verbose: true\nverbose: false\n", "line 2: /verbose is given twice; keep one"},
		{"a list for a text", "\nlisten: [a]\n", "line 2: /listen must be a text; put it in quotes"},
		{"a number for a text", "listen: 8080\n", "line 1: /listen must be a text; put it in quotes"},
		{"a text for a list", "packs: a,b\n", "line 1: /packs must be a list of texts"},
		{"a text for true", "verbose: \"yes\"\n", "line 1: /verbose must be true or false"},
		{"a number for a duration", "database_wait: 30\n", "line 1: /database_wait must be a duration such as 30s, 5m or 24h"},
		{"no duration", "webhook_schedule: [0s, soon]\n", "line 1: /webhook_schedule must be durations such as 0s,30s,5m"},
		{"null", "packs: null\n", "line 1: /packs must not be null or hold an empty text; leave it out"},
		{"empty", "server: ''\n", "line 1: /server must not be empty; leave it out"},
		{"the directory itself", "config: /etc/weir\n", "line 1: /config is not a setting"},
		{"a secret", "key: weir_abc\n", "line 1: /key is not a setting"},
		{"no map", "- a\n", "it has the wrong type: found a list, expected an object"},
		{"two documents", "verbose: true\n---\nverbose: true\n", "line 2: it has more after its end; send one document"},
		{"all of them", "listne: 1\nverbose: 1\n", "line 2: /verbose must be true or false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := writeFile(t, []byte(tc.file), dir, "weir.yaml")
			for _, args := range [][]string{{"config", "show"}, {"config", "check"}, {"serve"}, {"serve", "--verbose", "--listen", "127.0.0.1:0"}} {
				got := weirEnv(t, nil, append(args, "--config", dir)...)
				if got.code != exitUsage || !strings.Contains(got.stderr, tc.want) || !strings.Contains(got.stderr, path) {
					t.Errorf("%v: exit %d, want %q in:\n%s", args, got.code, tc.want, got.stderr)
				}
			}
		})
	}
}

func TestSettingsOfTheEnvironmentAreStrict(t *testing.T) {
	t.Parallel()
	const hidden = "weir_a1b2c3"
	dir := t.TempDir()
	for _, tc := range []struct{ env, want string }{
		{"WEIR_VERBOSE=" + hidden, "WEIR_VERBOSE: must be true or false"},
		{"WEIR_DATABASE_WAIT=" + hidden, "WEIR_DATABASE_WAIT: must be a duration"},
		{"WEIR_WEBHOOK_SCHEDULE=" + hidden, "WEIR_WEBHOOK_SCHEDULE: must be durations"},
		{"WEIR_PACKS=, ,", "WEIR_PACKS: must be a list with commas between"},
	} {
		// Also where a flag overrides it.
		for _, args := range [][]string{{}, {"--verbose", "--database-wait=1s", "--packs=a", "--webhook-schedule=1s"}} {
			got := weirEnv(t, []string{tc.env}, append([]string{"config", "show", "--config", dir}, args...)...)
			if got.code != exitUsage || !strings.Contains(got.stderr, tc.want) || strings.Contains(got.stderr, hidden) {
				t.Errorf("%s: exit %d: %s", tc.env, got.code, got.stderr)
			}
		}
	}
	// Empty is not set.
	if got := shown(t, []string{"WEIR_LISTEN="}, "--config", dir); got["listen"] != "127.0.0.1:8080 | default" {
		t.Errorf("listen = %s", got["listen"])
	}
}

// A secret is in the environment or in a file that a setting names, and is never shown.
func TestSettingsHideSecrets(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	dir := t.TempDir()
	url := "DATABASE_URL=postgres://weir:" + hidden + "@db/weir"
	env := []string{url, "WEIR_KEY=" + hidden, "WEIR_SERVER=https://me:" + hidden + "@weir.example"}
	for _, output := range []string{"text", "json", "markdown"} {
		got := weirEnv(t, env, "config", "show", "--config", dir, "--output", output)
		if got.code != 0 || strings.Contains(got.stdout+got.stderr, hidden) {
			t.Errorf("%s: exit %d\n%s%s", output, got.code, got.stdout, got.stderr)
		}
	}
	got := shown(t, env, "--config", dir)
	if got["database-url-file"] != "(secret) | DATABASE_URL" || got["key-file"] != "(secret) | WEIR_KEY" {
		t.Errorf("database-url-file = %s, key-file = %s", got["database-url-file"], got["key-file"])
	}
	writeFile(t, []byte("database_url_file: db.url\nkey_file: key\n"), dir, "weir.yaml")
	got = shown(t, nil, "--config", dir)
	if want := filepath.Join(dir, "db.url") + " | " + filepath.Join(dir, "weir.yaml") + ":1"; got["database-url-file"] != want {
		t.Errorf("database-url-file = %s, want %s", got["database-url-file"], want)
	}
	if got = shown(t, env, "--config", dir); got["key-file"] != "(secret) | WEIR_KEY" {
		t.Errorf("the environment does not go before the file: %s", got["key-file"])
	}
	if got := weirEnv(t, []string{url, "WEIR_DATABASE_URL_FILE=/x"}, "config", "show", "--config", dir); got.code != exitUsage ||
		!strings.Contains(got.stderr, "WEIR_DATABASE_URL_FILE and DATABASE_URL are both set; unset one") {
		t.Errorf("both: exit %d: %s", got.code, got.stderr)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	check := func(dir string, args ...string) result {
		return weirEnv(t, nil, append([]string{"config", "check", "--config", dir, "--packs", pledge(t)}, args...)...)
	}
	if got := check(configFor(t, "http://127.0.0.1:1/hook")); got.code != 0 || !strings.Contains(got.stdout, "1 endpoint") || strings.Contains(got.stdout, "fault") {
		t.Errorf("a good one: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	cert, key := selfSigned(t, "hook")
	hookFiles := string(cert) + string(key)
	hook := []string{"--hooks-listen", "127.0.0.1:0", "--hooks-cert", "DIR/hook.pem", "--hooks-key", "DIR/hook.pem", "--hooks-client-ca", "DIR/hook.pem"}
	w := witnesstest.New(t, "w.example")
	for _, tc := range []struct {
		name, file, text string
		args             []string
		code             int
		want             string
	}{
		{"people", "people.yaml", "people: [{id: ana}, {id: ana}]\n", nil, exitUsage, "declared twice"},
		{"policies", "policies.yaml", "policies: []\n", nil, exitUsage, "policies.yaml"},
		{"pack", "house.yaml", "schema: weir/pack/v1\n", []string{"--packs", "DIR/house.yaml"}, exitPackInvalid, "house.yaml"},
		{"no such pack", "x", "", []string{"--packs", "nope"}, exitUsage, "no shipped pack"},
		{"signing key", "signing.key", "no key", []string{"--signing-key", "DIR/signing.key"}, exitUsage, "signing key"},
		{"resolver", "x", "", []string{"--webhook-resolver", "nameserver"}, exitUsage, "HOST:PORT"},
		{"hook without an address", "x", "", []string{"--hooks-cert", "DIR/x"}, exitUsage, "--hooks-listen"},
		{"hook's certificate", "x", "", []string{"--hooks-listen", ":0", "--hooks-cert", "DIR/x", "--hooks-key", "DIR/x", "--hooks-client-ca", "DIR/x"}, exitUsage, "certificate"},
		{"hook without a service", "hook.pem", hookFiles, hook, exitUsage, "needs a service"},
		{"hook for a person", "hook.pem", hookFiles, append(hook[:len(hook):len(hook)], "--hooks-service", "ana"), exitUsage, "not a service declared"},
		{"lease", "x", "", []string{"--webhook-lease", "-1s"}, exitUsage, "lease is -1s"},
		{"schedule", "x", "", []string{"--webhook-schedule", "0s,-5s"}, exitUsage, "schedule entry 2 is negative"},
		{"base URL", "x", "", []string{"--base-url", "weir.example"}, exitUsage, "must be like https://weir.example"},
		{"base URL of nothing that browsers ask", "x", "", []string{"--base-url", "ftp://weir.example"}, exitUsage, "must be like https://weir.example"},
		{"witness of what is not signed", "db.url", "postgres://127.0.0.1:1/x", []string{"--database-url-file", "DIR/db.url", "--witness", w.Declared(), "--witness-allow-private"},
			exitUsage, "needs --signing-key"},
		{"database URL", "db.url", "postgres://:x:y", []string{"--database-url-file", "DIR/db.url"}, exitUsage, "database URL cannot be read"},
		{"no database URL", "x", "", []string{"--database-url-file", "DIR/nope"}, exitUsage, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := configFor(t, "")
			writeFile(t, []byte(tc.text), dir, tc.file)
			args := make([]string, len(tc.args))
			for i, a := range tc.args {
				args[i] = strings.ReplaceAll(a, "DIR", dir)
			}
			got := check(dir, args...)
			oneLine := strings.Join(strings.Fields(got.stdout), " ")
			if got.code != tc.code || strings.Count(got.stdout, "  fault  ") != 1 || !strings.Contains(oneLine, tc.want) {
				t.Errorf("exit %d, want %d and %q\n%s%s", got.code, tc.code, tc.want, got.stdout, got.stderr)
			}
			// What it refuses, weir serve refuses with the same code.
			if started := weirEnv(t, nil, append([]string{"serve", "--config", dir, "--listen", "127.0.0.1:0", "--packs", pledge(t)}, args...)...); started.code != tc.code {
				t.Errorf("weir serve exits %d: %s", started.code, started.stderr)
			}
		})
	}
}

func TestConfigCheckNotesMisspeltVariables(t *testing.T) {
	t.Parallel()
	got := misspelt([]string{"WEIR_LISTN=x", "WEIR_LISTEN=x", "WEIR_KEY=x", "WEIR_PORT=tcp://10.0.0.1:80", "WEIR_PORT_80_TCP_ADDR=10.0.0.1",
		"WEIR_SERVICE_HOST=10.0.0.1", "WEIR_HOOKS_SERVICE_PORT_WEB=1", "HOME=/", "WEIR_PG_BIN=/x"})
	if diff := cmp.Diff([]string{"WEIR_LISTN"}, got); diff != "" {
		t.Error(diff)
	}
}

// A gate and the commands on its machine find the same database by the same file.
func TestSettingsLeadToTheDatabase(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	dir := configFor(t, "")
	writeFile(t, []byte("database_url_file: db.url\nverbose: true\n"), dir, "weir.yaml")
	writeFile(t, []byte(db.dsn+"\n"), dir, "db.url")
	g := startGate(t, nil, "--config", dir).ready()
	if g.log.event("request")["route"] != "/readyz" { // logged only with verbose
		t.Errorf("verbose: true is not in use\n%s", g.log)
	}
	got := weirEnv(t, []string{"WEIR_CONFIG=" + dir}, "key", "list")
	if got.code != 0 || !regexp.MustCompile(`(?m) bo +`).MatchString(got.stdout) {
		t.Errorf("weir key list: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
