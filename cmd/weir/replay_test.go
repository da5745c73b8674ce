package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
	"weir/store"
)

// storedSpecs submits specs through the desk of the shipped floor and the pledge.
func storedSpecs(t testing.TB, d testDatabase, project string, specs ...[]byte) {
	t.Helper()
	v, err := loadVocabulary([]string{pledge(t)}, false, false)
	if err != nil {
		t.Fatal(err)
	}
	dep, err := loadDeployment(configFor(t, ""), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	desk, err := review.NewDesk(d.store, review.Setup{Vocabulary: v, People: dep.people, Policies: dep.policies}, review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := review.Principal{Subject: "bo", Project: project, Scopes: review.Scopes}
	for _, raw := range specs {
		if _, _, err := desk.Submit(t.Context(), p, raw, nil); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// A replay leaves out the last minute, and a window that is over is the same at every run.
	if _, err := conn.Exec(t.Context(), `update screening set created_at = timestamptz '2026-01-02 12:00Z' + (created_at - (select min(created_at) from screening where project = $1))
		where project = $1`, project); err != nil {
		t.Fatal(err)
	}
}

// raised is the pledge with a second term that nobody was asked about, and the first one blocking.
func raised(t *testing.T) (path string) {
	t.Helper()
	text := strings.Replace(pledgeYAML, "response: escalate", "response: block", 1)
	text += `  - id: violent_inside
    title: Violence
    description: An input holds violent content.
    severity: high
    over: [dataset]
    violated_if: {tag: {violent: present}}
    response: escalate
    remedy: State that there is none.
`
	return writeFile(t, []byte(text), t.TempDir(), "candidate.yaml")
}

// What differs from run to run, and with every change of the floor.
var (
	uuids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	shortDigest = regexp.MustCompile(`\([0-9a-f]{12}\)`)
)

const violentAbsent = "disclosures: → disclosures:\n  - {tag: violent, state: absent, basis: structured}"

func TestReplayTable(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	storedSpecs(t, d, "default", spec("nlp/support-bot@2026-11"), spec("vision/"+strings.Repeat("a-very-long-name-", 8)), spec("said", violentAbsent),
		spec("people", escalates), spec("people-and-said", escalates, violentAbsent), spec("prohibited", blocks))
	storedSpecs(t, d, "other", spec("of-another-project", escalates))
	conn, err := pgx.Connect(t.Context(), d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// A spec that was taken by rules of old, and a decision of another engine.
	for _, sql := range []string{
		`update screening set created_at = created_at - interval '1 year', as_of = as_of - 365, engine = '0' where run_ref = 'said'`,
		`alter table payload disable trigger payload_unchanged`,
		`update payload set spec = spec || '\x0a7a3a2031'::bytea
			where screening_id = (select id from screening where run_ref = 'prohibited')`,
		`with old as (insert into spec (project, sha256, canonical_sha256) select project, sha256(spec_of(s)), canonical_sha256
			from screening s where run_ref = 'prohibited' returning project, sha256)
		 update screening set spec_sha256 = old.sha256 from old where run_ref = 'prohibited' and screening.project = old.project`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"pack", "replay", "--database", "--since", "2020-01-01", "--until", "2026-02-01", "--packs", raised(t)}
	r := weirEnv(t, []string{d.env()}, args...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for line := range strings.Lines(r.stdout) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("wider than %d: %s", width, line)
		}
	}
	if strings.Contains(r.stdout, "another-project") {
		t.Error("another project's spec appears")
	}
	got := shortDigest.ReplaceAllString(uuids.ReplaceAllString(r.stdout, "00000000-0000-0000-0000-000000000000"), "(000000000000)")
	golden(t, "replay.text", got)

	// The exit code is another one only when a flag asks for it.
	if r := weirEnv(t, []string{d.env()}, append(args, "--fail-on-difference")...); r.code != exitDiffers {
		t.Errorf("--fail-on-difference: exit %d, want %d", r.code, exitDiffers)
	}
	same := []string{"pack", "replay", "--database", "--since", "2020-01-01", "--packs", pledge(t), "--fail-on-difference", "--output", "json"}
	r = weirEnv(t, []string{d.env()}, same...)
	var sum struct {
		Replayed    int
		Unratified  bool
		Differences []review.Replayed
	}
	if err := json.Unmarshal([]byte(r.stdout), &sum); err != nil || r.code != exitDiffers || sum.Replayed != 6 || sum.Unratified || len(sum.Differences) != 1 ||
		sum.Differences[0].Now != review.ReplayRefused {
		t.Errorf("the packs that decided: exit %d, %v: %s %s", r.code, err, r.stdout, r.stderr)
	}
	// Nothing decided is never "nothing differs".
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"no spec in the window":       {[]string{"--since", "2020-01-01", "--until", "2020-01-02"}, 0},
		"no spec, to fail on":         {[]string{"--since", "2020-01-01", "--until", "2020-01-02", "--fail-on-difference"}, exitNothing},
		"no such project":             {[]string{"--since", "1d", "--project", "nosuch", "--fail-on-difference"}, exitNothing},
		"an inverted window":          {[]string{"--since", "30d", "--until", "60d"}, exitUsage},
		"a window without length":     {[]string{"--since", "2026-01-01", "--until", "2026-01-01"}, exitUsage},
		"a window that begins later":  {[]string{"--since", "2100-01-01", "--fail-on-difference"}, exitUsage},
		"a window that is all future": {[]string{"--since", "2100-01-01", "--until", "2101-01-01"}, exitUsage},
	} {
		r := weirEnv(t, []string{d.env()}, append([]string{"pack", "replay", "--database"}, tt.args...)...)
		says := strings.HasPrefix(r.stdout, "Nothing was decided again") && !strings.Contains(r.stdout, "0 of 0")
		if r.code != tt.code || (tt.code == exitUsage) != (r.stdout == "") || tt.code != exitUsage && !says || tt.code != 0 && r.stderr == "" {
			t.Errorf("%s: exit %d, want %d: %s%s", name, r.code, tt.code, r.stdout, r.stderr)
		}
	}
}

func TestReplayThroughTheGate(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	storedSpecs(t, d, "default", spec("a"), spec("b", escalates), spec("c", blocks))
	g := startGate(t, []string{d.env()}, "--config", configFor(t, "")).ready()
	env := []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + d.token}
	dir := filepath.Dir(raised(t))
	window := []string{"pack", "replay", "--since", "2020-01-01", "--until", "2026-02-01", "--packs", dir, "--output", "json"}
	through := weirEnv(t, env, window...)
	beside := weirEnv(t, []string{d.env()}, append(window, "--database")...)
	if through.code != 0 || through.stdout != beside.stdout || !strings.Contains(through.stdout, `"unratified": true`) {
		t.Errorf("exit %d: %s%s", through.code, cmp.Diff(beside.stdout, through.stdout), through.stderr)
	}
	if r := weirEnv(t, env, "pack", "replay", "--since", "2026-01-01", "--packs", "pledge"); r.code != 0 || !strings.HasPrefix(r.stdout, "0 of 3 specs") {
		t.Errorf("the pack in force: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, env, "pack", "replay", "--since", "2026-01-01", "--packs", "plegde"); r.code != exitPackInvalid || !strings.Contains(r.stderr, "/packs/0") {
		t.Errorf("a pack that is not there: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	broken := writeFile(t, []byte(strings.Replace(pledgeYAML, "severity: medium", "severity: huge", 1)), t.TempDir(), "broken.yaml")
	for _, more := range [][]string{nil, {"--database"}} {
		r := weirEnv(t, append(env, d.env()), append([]string{"pack", "replay", "--since", "1d", "--packs", broken}, more...)...)
		if r.code != exitPackInvalid || !strings.Contains(r.stderr, "line 11: /terms/0/severity") {
			t.Errorf("a broken candidate %v: exit %d: %s", more, r.code, r.stderr)
		}
	}
}

// Results that are kept are shown, and gone on with, only as the gate answers now:
// with the key of the same project, by the same packs.
func TestReplayKeptResultsAreAskedFor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	storedSpecs(t, d, "default", spec("a"), spec("b", escalates))
	other, key, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.store.CreateKey(t.Context(), store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: "other", Subject: "bo", Scopes: review.Scopes}); err != nil {
		t.Fatal(err)
	}
	g := startGate(t, []string{d.env()}, "--config", configFor(t, "")).ready()
	dir := t.TempDir()
	file := filepath.Join(dir, "whole.ndjson")
	replay := func(token, file string) result {
		return weirEnv(t, []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + token}, "pack", "replay", "--since", "2026-01-01", "--packs", "pledge", "--resume", file)
	}
	first := replay(d.token, file)
	if first.code != 0 || !strings.HasPrefix(first.stdout, "0 of 2 specs") {
		t.Fatalf("exit %d: %s%s", first.code, first.stdout, first.stderr)
	}
	if again := replay(d.token, file); again != first {
		t.Errorf("the same again: exit %d: %s%s", again.code, again.stdout, again.stderr)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	packs := regexp.MustCompile(`"sha256":"[0-9a-f]{8}`).ReplaceAllString(lines[1], `"sha256":"00000000`)
	for name, tt := range map[string]struct {
		token, kept, says string
		code              int
	}{
		"another project's key": {other, string(whole), "another project", exitUsage},
		"a key that is none":    {"weir_nonsense", string(whole), "", replay("weir_nonsense", "").code},
		"packs that changed":    {d.token, lines[0] + packs, "the packs changed", exitUsage},
	} {
		file := writeFile(t, []byte(tt.kept), dir, "kept.ndjson")
		r := replay(tt.token, file)
		if after, err := os.ReadFile(file); err != nil || r.code == 0 || r.code != tt.code || r.stdout != "" || !strings.Contains(r.stderr, tt.says) || string(after) != tt.kept {
			t.Errorf("%s: exit %d, want %d: %s%s", name, r.code, tt.code, r.stdout, r.stderr)
		}
	}
	// Of a replay that is not complete, the place is another project's too.
	cursor, err := json.Marshal(map[string]any{"at": "2026-01-01T00:00:00Z", "id": "018f0000-0000-7000-8000-000000000000"})
	if err != nil {
		t.Fatal(err)
	}
	half := strings.Replace(lines[1], `"differences":[]`, `"differences":[],"next":"`+base64.RawURLEncoding.EncodeToString(cursor)+`"`, 1)
	if r := replay(other, writeFile(t, []byte(lines[0]+half), dir, "half.ndjson")); half == lines[1] || r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, "/cursor") {
		t.Errorf("half of a replay: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// An interrupted replay that goes on gives the same bytes as one that ran
// through, wherever it was cut; and it goes on with nothing but the same replay.
func TestReplayResumes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	storedSpecs(t, d, "default", spec("clean"), spec("people", escalates))
	conn, err := pgx.Connect(t.Context(), d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// 500 more specs that differ in a comment: three pages.
	if _, err := conn.Exec(t.Context(), `with base as (select s.*, spec_of(s) as raw, decision_of(s) as decision from screening s),
		bytes as (select b.*, gen_random_uuid() as new_id, n, b.raw || convert_to('# ' || n || e'\n', 'UTF8') as bytes from base b, generate_series(1, 250) n),
		new_spec as (insert into spec (project, sha256, canonical_sha256) select project, sha256(bytes), canonical_sha256 from bytes),
		new_payload as (insert into payload (screening_id, project, outcome, month, spec, decision) select new_id, project, outcome, month, bytes, decision from bytes)
		insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome, decision_sha256,
			packs_sha256, findings_sha256, status, decided_by, admitted_until, created_at)
		select new_id, project, sha256(bytes), canonical_sha256, run_ref || n, team, submitter, owner, on_behalf_of, as_of, engine, outcome, decision_sha256,
			packs_sha256, findings_sha256, case status when 'pending' then 'withdrawn' else status end, decided_by, admitted_until, created_at - n * interval '1 minute'
		from bytes`); err != nil {
		t.Fatal(err)
	}
	dir, candidate := t.TempDir(), raised(t)
	replay := func(file string, more ...string) result {
		args := append([]string{"pack", "replay", "--database", "--since", "2020-01-01", "--until", "2026-02-01", "--resume", file}, more...)
		if !slices.Contains(more, "--packs") {
			args = append(args, "--packs", candidate)
		}
		return weirEnv(t, []string{d.env()}, args...)
	}
	whole := filepath.Join(dir, "whole.ndjson")
	want := replay(whole)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	if want.code != 0 || len(lines) != 4 || !strings.Contains(want.stdout, "502 of 502 specs") {
		t.Fatalf("exit %d, %d lines: %.300s%s", want.code, len(lines), want.stdout, want.stderr)
	}
	head, first := len(lines[0]), len(lines[0])+len(lines[1])
	for _, cut := range []int{0, 1, head - 1, head, head + 1, first - 1, first, first + 100, len(data) - 1, len(data)} {
		file := writeFile(t, data[:cut], dir, fmt.Sprintf("cut-%d.ndjson", cut))
		got := replay(file)
		after, err := os.ReadFile(file)
		if err != nil || got != want || string(after) != string(data) {
			t.Errorf("cut after %d bytes: exit %d, output the same: %t, file the same: %t; %s", cut, got.code, got.stdout == want.stdout, string(after) == string(data), got.stderr)
		}
	}
	half := data[:first+7]
	for name, more := range map[string][]string{
		"other packs":    {"--packs", pledge(t)},
		"other window":   {"--since", "2020-01-02"},
		"other day":      {"--as-of", "today"},
		"other project":  {"--project", "other"},
		"another reader": {"--database=false"},
	} {
		file := writeFile(t, half, dir, "other.ndjson")
		r := replay(file, more...)
		after, err := os.ReadFile(file)
		if err != nil || r.code != exitUsage || r.stdout != "" || string(after) != string(half) {
			t.Errorf("%s: exit %d, %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	for name, text := range map[string]string{
		"a spec": string(spec("r")), "a text without end": "notes", "JSON": "{}\n", "a page twice": string(data[:first]) + lines[1],
		"a page lost": lines[0] + lines[2], "after the end": string(data) + lines[3] + "\n", "a broken line": string(data[:first]) + "{}}\n",
	} {
		file := writeFile(t, []byte(text), dir, "alien.ndjson")
		r := replay(file)
		after, err := os.ReadFile(file)
		if err != nil || r.code != exitUsage || string(after) != text {
			t.Errorf("%s: exit %d, %s; the file was changed: %t", name, r.code, r.stderr, string(after) != text)
		}
	}
}

// What was done is kept when the source fails, and the next run asks for nothing twice.
func TestReplayKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	name, head := filepath.Join(t.TempDir(), "r.ndjson"), replayHead{Schema: replaySchema, Packs: []string{"p"}}
	pages := map[string]client.ReplayPage{}
	for i, next := range []string{"1", "2", "3", ""} {
		at := fmt.Sprint(i)
		if i == 0 {
			at = ""
		}
		pages[at] = client.ReplayPage{Packs: []screening.PackRef{{ID: "p"}}, Since: time.Unix(0, 0).UTC(), Next: next, ReplayPage: review.ReplayPage{Replayed: i + 1}}
	}
	down := errors.New("down")
	asked := map[string]int{}
	for failAt, want := range map[int]error{0: down, 1: down, 2: down, 3: down, 9: nil} {
		_ = os.Remove(name)
		clear(asked)
		for try, left := 0, failAt; ; try++ {
			f, err := openReplayFile(name, head)
			if err != nil {
				t.Fatal(err)
			}
			err = f.fill(t.Context(), os.Stderr, func(_ context.Context, cursor string, first *client.ReplayPage) (*client.ReplayPage, error) {
				if left--; left == -1 && try == 0 {
					return nil, want
				}
				if (cursor != "") != (first != nil) {
					t.Errorf("at %q, with a first page: %t", cursor, first != nil)
				}
				asked[cursor]++
				p := pages[cursor]
				return &p, nil
			})
			replayed := f.replayed
			f.close()
			if err == nil {
				if replayed != 10 {
					t.Errorf("failed at %d: %d replayed, want 10", failAt, replayed)
				}
				break
			}
			if !errors.Is(err, want) || try > 0 {
				t.Fatalf("failed at %d: %v", failAt, err)
			}
		}
		for at, n := range asked {
			if n != 1 || len(asked) != 4 {
				t.Errorf("failed at %d: page %q asked %d times", failAt, at, n)
			}
		}
	}
}

func TestReplayUsage(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, args := range [][]string{{}, {"--since", "soon"}, {"--since", "0d"}, {"--since", "1d", "--until", "x"}, {"--since", "1d", "--until", "2d", "--database"}, {"--since", "1d", "--as-of", "x"},
		{"--since", "1d", "--project", "x"}, {"--since", "1d", "--audit-only"}, {"--since", "1d", "--output", "xml"}, {"--since", "1d", "x"},
		{"--since", "1d", "--packs", empty, "--database"}, {"--since", "1d", "--packs", filepath.Join(empty, "none.yaml"), "--database"}} {
		if r := weir(t, append([]string{"pack", "replay"}, args...)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%v: exit %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}
