package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// marker stands where a submitted value is wrong; no answer may repeat it.
const marker = "zq9secretmarker"

// Every way to send something that is not one good document: 4xx with a
// pointer, nothing stored, nothing repeated, at once.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := string(spec("r"))
	with := func(old, new string) []byte {
		if !strings.Contains(good, old) {
			t.Fatalf("the good spec has no %s", old)
		}
		return []byte(strings.Replace(good, old, new, 1))
	}
	add := func(member string) []byte { return with(`{"schema"`, `{`+member+`, "schema"`) }
	yamlSpec := "schema: weir/spec/v1\nrun_ref: r\nowner: ana\nobjective: {kind: sft}\ninputs: [{id: d1, kind: dataset}]\n"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	const yaml = "application/yaml"
	tests := []struct {
		name    string
		media   string // "" is application/json
		body    []byte
		status  int
		pointer string // of some problem; "-" where there is no place to point at
	}{
		// JSON that other parsers read differently.
		{"duplicate key", "", add(`"schema": "` + marker + `"`), 400, "/schema"},
		{"duplicate key, the other order", "", with(`"owner": "ana"`, `"owner": "ana", "owner": "`+marker+`"`), 400, "/owner"},
		{"duplicate key inside an input", "", with(`"id": "d1"`, `"id": "d1", "id": "d1"`), 400, "/inputs/0/id"},
		{"duplicate key by an escape", "", add(`"\u006fwner": "` + marker + `"`), 400, "/owner"},
		{"duplicate disclosures, harmless last", "", add(`"disclosures": [{"tag": "minors", "state": "present", "basis": "structured"}]`), 400, "/disclosures"},
		{"case variant", "", with(`"disclosures"`, `"Disclosures"`), 422, "/Disclosures"},
		{"case variant beside the real key", "", add(`"Disclosures": []`), 422, "/Disclosures"},
		{"long s for s", "", add(`"diſcloſures": []`), 422, "/diſcloſures"},
		{"long s escaped", "", add(`"di\u017fclo\u017fures": []`), 422, "/diſcloſures"},
		{"Kelvin sign for k", "", with(`"kind": "dataset"`, "\"\u212aind\": \"dataset\""), 422, "/inputs/0/\u212aind"},
		{"unknown key", "", add(`"approved": true`), 422, "/approved"},
		{"unknown key inside", "", with(`"id": "d1"`, `"id": "d1", "approved": true`), 422, "/inputs/0/approved"},
		{"bad UTF-8", "", with("ana", "ana\xff"+marker), 400, "-"},
		{"overlong UTF-8", "", with("ana", "an\xc0\xaf"), 400, "-"},
		{"UTF-8 surrogate", "", with("ana", "an\xed\xa0\x80"), 400, "-"},
		{"lone high surrogate", "", with("ana", `an\ud800`+marker), 400, "/owner"},
		{"lone low surrogate", "", with("ana", `an\udc00`), 400, "/owner"},
		{"surrogates the wrong way round", "", with("ana", `an\udc00\ud800`), 400, "/owner"},
		{"raw NUL", "", with("ana", "an\x00a"), 400, "/owner"},
		{"escaped NUL", "", with("ana", `an\u0000a`), 400, "/owner"},
		{"escaped NUL in a key", "", add(`"a\u0000b": 1`), 400, ""},
		{"NUL after the end", "", []byte(good + "\x00"), 400, "-"},
		{"second document", "", []byte(good + good), 400, "-"},
		{"second document after a newline", "", []byte(good + "\n" + `{"owner": "` + marker + `"}`), 400, "-"},
		{"comma after the end", "", []byte(good + ","), 400, "-"},
		{"byte order mark", "", []byte("\ufeff" + good), 400, "-"},
		{"UTF-16", "", utf16(good), 400, "-"},
		{"comment", "", []byte("/* " + marker + " */" + good), 400, "-"},
		{"trailing comma", "", with(`"kind": "sft"}`, `"kind": "sft",}`), 400, "/objective"},
		{"single quotes", "", with(`"ana"`, `'ana'`), 400, "/owner"},
		{"cut off", "", []byte(good[:len(good)/2]), 400, ""},
		{"NaN", "", add(`"evidence": {"context": {"alignment_score": NaN}}`), 400, "/evidence/context/alignment_score"},
		{"empty body", "", []byte{}, 400, "-"},
		{"white space only", "", []byte(" \n\t"), 400, "-"},
		{"a list of specs", "", []byte("[" + good + "]"), 422, "-"},
		{"null", "", []byte("null"), 422, "-"},
		{"a text", "", []byte(`"` + marker + `"`), 422, "-"},
		// Size and depth.
		{"deep lists", "", add(`"inputs2": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), 400, ""},
		{"deep objects", "", add(`"x": ` + strings.Repeat(`{"a":`, 200_000/6) + "1" + strings.Repeat("}", 200_000/6)), 400, ""},
		{"33 levels", "", with(`"kind": "sft"`, `"kind": `+strings.Repeat("[", 31)+strings.Repeat("]", 31)), 400, ""},
		{"too many values", "", add(`"n": [` + strings.Repeat("1,", 20_000) + "1]"), 400, ""},
		{"a million empty objects", "", []byte("[" + strings.Repeat("{},", 340_000) + "{}]"), 400, ""},
		{"long text", "", with("ana", strings.Repeat("a", 64<<10+1)), 400, "/owner"},
		{"larger than 1 MiB", "", []byte(good + strings.Repeat(" ", 1<<20)), 413, "-"},
		{"501 inputs", "", with(`[{"id": "d1"`, "["+strings.Repeat(`{"id":"x","kind":"dataset"},`, 500)+`{"id": "d1"`), 422, "/inputs"},
		// Numbers that would not stay what they are.
		{"2^53+1", "", add(`"evidence": {"context": {"alignment_score": 9007199254740993}}`), 400, "/evidence/context/alignment_score"},
		{"1e309", "", add(`"evidence": {"context": {"alignment_score": 1e309}}`), 400, "/evidence/context/alignment_score"},
		{"1e131071", "", add(`"evidence": {"context": {"alignment_score": 1e131071}}`), 400, "/evidence/context/alignment_score"},
		{"41 digits", "", add(`"evidence": {"context": {"alignment_score": 0.` + strings.Repeat("1", 41) + `}}`), 400, "/evidence/context/alignment_score"},
		{"leading zero", "", add(`"evidence": {"context": {"presented_options_count": 010}}`), 400, "/evidence/context"},
		{"fraction for a count", "", add(`"evidence": {"context": {"presented_options_count": 1.5}}`), 422, "/evidence/context/presented_options_count"},
		// Wrong types and nulls.
		{"number for a list", "", with(`"disclosures": [`, `"disclosures": 7, "x": [`), 422, "/disclosures"},
		{"text for a flag", "", with(`"id": "d1"`, `"id": "d1", "trust_remote_code": "true"`), 422, "/inputs/0/trust_remote_code"},
		{"object for a text", "", with(`"ana"`, `{"id": "`+marker+`"}`), 422, "/owner"},
		{"list with one null", "", with(`"disclosures": [`, `"disclosures": [null, `), 400, "/disclosures/0"},
		{"null input", "", with(`"inputs": [`, `"inputs": [null, `), 400, "/inputs/0"},
		{"object for the inputs", "", with(`"inputs": [{`, `"inputs": {"d": {`), 400, ""},
		{"null owner", "", with(`"ana"`, `null`), 422, "/owner"},
		// Values.
		{"undeclared owner", "", with("ana", marker), 422, "/owner"},
		{"undeclared person submitted for", "", add(`"on_behalf_of": "` + marker + `"`), 422, "/on_behalf_of"},
		{"unknown tag", "", with(`"minors"`, `"`+marker+`"`), 422, "/disclosures/0/tag"},
		{"tag in capitals", "", with(`"minors"`, `"Minors"`), 422, "/disclosures/0/tag"},
		{"tag with a space", "", with(`"minors"`, `"minors "`), 422, "/disclosures/0/tag"},
		{"unknown state", "", with(`"absent"`, `"`+marker+`"`), 422, "/disclosures/0/state"},
		{"unknown purpose", "", with(`"kind": "sft"`, `"kind": "sft", "purposes": ["`+marker+`"]`), 422, "/objective/purposes/0"},
		{"base model that is no input", "", add(`"base_model": "` + marker + `"`), 422, "/base_model"},
		{"input id twice", "", with(`"inputs": [`, `"inputs": [{"id": "d1", "kind": "dataset"}, `), 422, "/inputs/1/id"},
		{"other schema", "", with("weir/spec/v1", "weir/spec/v2"), 422, "/schema"},
		{"run_ref with a right-to-left override", "", with(`"r"`, "\"r\u202e\""), 422, "/run_ref"},
		// YAML.
		{"alias", yaml, []byte(yamlSpec + "disclosures: &a []\nevidence: *a\n"), 400, ""},
		{"alias bomb", yaml, []byte(yamlSpec + bomb), 400, ""},
		{"merge key", yaml, []byte(yamlSpec + "base: &b {kind: sft}\nobjective2: {<<: *b}\n"), 400, ""},
		{"tag", yaml, []byte(strings.Replace(yamlSpec, "owner: ana", "owner: !!binary YW5h", 1)), 400, "/owner"},
		{"own tag", yaml, []byte(strings.Replace(yamlSpec, "owner: ana", "owner: !person ana", 1)), 400, "/owner"},
		{"second document", yaml, []byte(yamlSpec + "---\n" + yamlSpec), 400, "-"},
		{"duplicate key", yaml, []byte(yamlSpec + "owner: " + marker + "\n"), 400, "/owner"},
		{"case variant", yaml, []byte(yamlSpec + "Owner: " + marker + "\n"), 422, "/Owner"},
		{"a date for a text", yaml, []byte(strings.Replace(yamlSpec, "run_ref: r", "run_ref: 2026-11-01", 1)), 0, ""},
		{"the Norway problem", yaml, []byte(strings.Replace(yamlSpec, "owner: ana", "owner: NO", 1)), 422, "/owner"},
		{"a number for a text", yaml, []byte(strings.Replace(yamlSpec, "run_ref: r", "run_ref: 1.10", 1)), 422, "/run_ref"},
		{"depth bomb in brackets", yaml, []byte("a: " + strings.Repeat("[", 40_000)), 400, "-"},
		{"depth bomb in braces", yaml, []byte("a: " + strings.Repeat("{a: ", 40_000)), 400, "-"},
		{"depth bomb in indents", yaml, depthByIndent(400), 400, ""},
		{"depth bomb in dashes", yaml, []byte(strings.Repeat("- ", 100_000) + "x"), 400, "-"},
		{"many anchors", yaml, []byte("a: [" + strings.Repeat("&a x,", 50_000) + "]"), 400, ""},
		{"tab for indent", yaml, []byte("inputs:\n\t- id: d1\n"), 400, "-"},
		{"a key that is a list", yaml, []byte(yamlSpec + "? [a, b]\n: c\n"), 400, ""},
		{"NUL", yaml, []byte(yamlSpec + "team: \"a\\0b\"\n"), 400, "/team"},
		{"byte order mark", yaml, []byte("\ufeff" + yamlSpec), 400, "-"},
		{"directive", yaml, []byte("%YAML 1.1\n---\n" + yamlSpec), 0, ""},
	}
	for _, tt := range tests {
		name := tt.name + " in JSON"
		media := "application/json"
		if tt.media != "" {
			name, media = tt.name+" in YAML", tt.media
		}
		path := "/v1/screenings"
		if tt.status == 0 {
			path += "?dry_run=true"
		}
		start := time.Now()
		a := w.do("POST", path, "bo", tt.body, header("Content-Type", media), header("Idempotency-Key", "k"))
		if took := time.Since(start); took > 5*time.Second { // about 10 ms; generous for a busy machine
			t.Errorf("%s: took %s", name, took)
		}
		if tt.status == 0 { // refused or read exactly as written; either is fine, a 5xx is not
			if a.status >= 500 {
				t.Errorf("%s: status %d", name, a.status)
			}
			continue
		}
		if a.status != tt.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, a.status, tt.status, a.body)
			continue
		}
		checkProblem(t, name, a)
		if tt.pointer != "-" && tt.status != http.StatusRequestEntityTooLarge && !hasPointer(a, tt.pointer) {
			t.Errorf("%s: no problem at %q: %.300s", name, tt.pointer, a.body)
		}
		if bytes.Contains(a.body, []byte(marker)) {
			t.Errorf("%s: the answer repeats what was sent: %s", name, a.body)
		}
		if len(a.body) > 32<<10 {
			t.Errorf("%s: an answer of %d bytes", name, len(a.body))
		}
	}
	w.nothingStored("after all faults")
	for _, e := range w.log.all() {
		if line, _ := json.Marshal(e); bytes.Contains(line, []byte(marker)) {
			t.Errorf("the log repeats what was sent: %s", line)
		}
	}
}

// hasPointer reports whether some problem points at the place; "" is met by any place at all.
func hasPointer(a answer, want string) bool {
	problems, _ := a.get("errors").([]any)
	for _, p := range problems {
		pointer, ok := p.(map[string]any)["pointer"].(string)
		if ok && (want == "" || pointer == want) {
			return true
		}
	}
	return false
}

func utf16(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, b := range []byte(s) {
		out = append(out, b, 0)
	}
	return out
}

func depthByIndent(levels int) []byte {
	var b bytes.Buffer
	for i := range levels {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.Bytes()
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	for range 100 {
		_, _ = z.Write(make([]byte, 1<<20)) // 100 MiB of nothing in 100 KiB
	}
	_ = z.Close()
	tests := []struct {
		name    string
		body    []byte
		options []option
		status  int
	}{
		{"XML", spec("r"), []option{header("Content-Type", "text/xml")}, 415},
		{"form", []byte("schema=weir%2Fspec%2Fv1"), []option{header("Content-Type", "application/x-www-form-urlencoded")}, 415},
		{"multipart", spec("r"), []option{header("Content-Type", "multipart/form-data; boundary=x")}, 415},
		{"text", spec("r"), []option{header("Content-Type", "text/plain")}, 415},
		{"none", spec("r"), []option{func(r *http.Request) { r.Header.Del("Content-Type") }}, 415},
		{"empty", spec("r"), []option{header("Content-Type", "")}, 415},
		{"malformed", spec("r"), []option{header("Content-Type", "application/json;;=")}, 415},
		{"UTF-16 declared", spec("r"), []option{header("Content-Type", "application/json; charset=utf-16")}, 415},
		{"Latin-1 declared", spec("r"), []option{header("Content-Type", "application/yaml; charset=iso-8859-1")}, 415},
		{"gzip bomb", zipped.Bytes(), []option{header("Content-Encoding", "gzip")}, 415},
		{"gzip in capitals", zipped.Bytes(), []option{header("Content-Encoding", "GZIP")}, 415},
		{"deflate", spec("r"), []option{header("Content-Encoding", "deflate")}, 415},
		{"undeclared gzip", zipped.Bytes(), nil, 400},
		{"UTF-8 declared", spec("a"), []option{header("Content-Type", "application/json; charset=UTF-8")}, 201},
		{"identity", spec("b"), []option{header("Content-Encoding", "identity")}, 201},
		{"YAML", []byte("# note\n" + string(spec("c"))), []option{header("Content-Type", "application/yaml")}, 201},
		{"YAML, older name", []byte("# note\n" + string(spec("d"))), []option{header("Content-Type", "application/x-yaml")}, 201},
	}
	for _, tt := range tests {
		a := w.do("POST", "/v1/screenings", "bo", tt.body, tt.options...)
		if a.status != tt.status {
			t.Errorf("%s: status %d, want %d: %.300s", tt.name, a.status, tt.status, a.body)
		}
		if a.status >= 400 {
			checkProblem(t, tt.name, a)
		}
	}
	if n := w.count("screening"); n != 4 {
		t.Errorf("%d screenings kept, want the 4 good ones", n)
	}
}

// Every value of a rich spec, replaced by values of every other JSON type, is
// refused where it stands (KNOWN_FAULTS 5): a wrong type never makes a rule disappear.
func TestWrongTypesEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var doc any
	if err := json.Unmarshal([]byte(richSpec), &doc); err != nil {
		t.Fatal(err)
	}
	if a := w.do("POST", "/v1/screenings?dry_run=true", "bo", []byte(richSpec)); a.text("decision", "outcome") != "admit" {
		t.Fatalf("the spec itself: %s", a.body)
	}
	wrong := map[string]any{"number": 7.5, "text": marker, "flag": true, "object": map[string]any{"a": marker}, "list": []any{marker}}
	kind := func(v any) string {
		switch v.(type) {
		case float64:
			return "number"
		case string:
			return "text"
		case bool:
			return "flag"
		case map[string]any:
			return "object"
		}
		return "list"
	}
	tried := 0
	var walk func(at string, v any, set func(any))
	walk = func(at string, v any, set func(any)) {
		for name, other := range wrong {
			if name == kind(v) {
				continue
			}
			set(other)
			body, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			a := w.do("POST", "/v1/screenings", "bo", body)
			tried++
			if a.status != http.StatusUnprocessableEntity || !hasPointer(a, at) || bytes.Contains(a.body, []byte(marker)) {
				t.Errorf("%s for the %s at %s: status %d: %.300s", name, kind(v), at, a.status, a.body)
			}
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			for k, child := range v {
				walk(at+"/"+k, child, func(x any) { v[k] = x })
			}
		case []any:
			for i, child := range v {
				walk(fmt.Sprintf("%s/%d", at, i), child, func(x any) { v[i] = x })
			}
		}
	}
	for k, child := range doc.(map[string]any) {
		walk("/"+k, child, func(x any) { doc.(map[string]any)[k] = x })
	}
	if tried < 200 {
		t.Errorf("only %d values tried", tried)
	}
	w.nothingStored("after all wrong types")
}

// A null where a statement should be says nothing, and silence does not admit.
func TestNullsSayNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, change := range []string{
		`"disclosures": [ → "disclosures": null, "x-was": [`,
		`"license": {"declared": [{"spdx": "Apache-2.0"}]} → "license": null`,
		`"declared": [{"spdx": "Apache-2.0"}] → "declared": null`,
		`"spdx": "Apache-2.0" → "spdx": null`,
		`"state": "absent" → "state": null`,
		`"tag": "minors" → "tag": null`,
	} {
		a := w.do("POST", "/v1/screenings", "bo", spec(fmt.Sprintf("r%d", i), change))
		if a.status < 400 && a.text("status") != "pending" || a.status >= 500 {
			t.Errorf("%s: status %d: %.300s", change, a.status, a.body)
		}
	}
}

// A licence that is missing or unknown is never an allowed one (KNOWN_FAULTS 6).
func TestUnknownLicencesDoNotAdmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := map[string]string{ // the SPDX field → the screening's status
		"": "pending", "unknown": "pending", "NOASSERTION": "pending", "noassertion": "pending", "other": "pending", "Other ": "pending",
		"LicenseRef-house": "pending", "MIT WITH nonsense": "pending",
		"CC-BY-NC-4.0": "pending", "cc-by-nc-4.0": "pending", "CC-BY-NC-4.0 ": "pending", "MIT AND CC-BY-NC-4.0": "pending",
		"Apache-2.0": "admitted", "apache-2.0": "admitted", "Apache-2.0 ": "admitted", "MIT OR CC-BY-NC-4.0": "admitted",
		"GPL-3.0-only WITH GCC-exception-3.1": "admitted",
	}
	i := 0
	for spdx, want := range tests {
		i++
		a := w.do("POST", "/v1/screenings", "bo", spec(fmt.Sprintf("r%d", i), `"Apache-2.0" → "`+spdx+`"`))
		if a.text("status") != want {
			t.Errorf("licence %q: %s, want %s", spdx, a.text("status"), want)
		}
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("none", `, "license": {"declared": [{"spdx": "Apache-2.0"}]} → `)); a.text("status") != "pending" {
		t.Errorf("no licence at all: %s, want pending", a.text("status"))
	}
}

// When nothing could be checked, that is said, counted and not green (KNOWN_FAULTS 3).
func TestNothingCheckedIsNotAnAdmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare := []byte(`{"schema": "weir/spec/v1", "run_ref": "r", "owner": "ana", "objective": {"kind": "sft"}, "inputs": [{"id": "t", "kind": "tokenizer"}]}`)
	a := w.do("POST", "/v1/screenings", "bo", bare)
	if a.status != http.StatusAccepted || a.get("decision", "no_policy_matched") != true || a.text("outcome") != "escalate" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	for _, layer := range []string{"safety", "ethics"} {
		for _, v := range a.get("decision", layer).([]any) {
			if n := v.(map[string]any)["runtime_checkable_count"]; n != 0.0 {
				t.Errorf("%s: %v terms checked, want 0", layer, n)
			}
		}
	}
	if g := w.do("POST", "/v1/gate/check", "bo", bare); g.status != http.StatusConflict {
		t.Errorf("the gate answers %d, want 409", g.status)
	}
}

// What is sent beside specs is read as strictly.
func TestBadVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	path := "/v1/reviews/" + s.text("review", "id") + "/votes"
	good := fmt.Sprintf(`{"expected_version": 1, "spec_sha256": %q, "vote": "admit", "reason": "looked", "terms": ["ethics:personal_data_inside"]}`, s.text("spec_sha256"))
	tests := []struct {
		name, old, new string
		status         int
		pointer        string
	}{
		{"duplicate key", `{"exp`, `{"vote": "block", "exp`, 400, "/vote"},
		{"case variant", `"vote"`, `"Vote"`, 422, "/Vote"},
		{"unknown key", `{"exp`, `{"person": "chi", "exp`, 422, "/person"},
		{"no vote", `"vote": "admit", `, ``, 422, "/vote"},
		{"other vote", `"admit"`, `"` + marker + `"`, 422, "/vote"},
		{"vote of another type", `"admit"`, `true`, 422, "/vote"},
		{"no reason", `"looked"`, `""`, 422, "/reason"},
		{"invisible reason", `"looked"`, `"\u200b \u2060"`, 422, "/reason"},
		{"long reason", `"looked"`, `"` + strings.Repeat("a", 10_001) + `"`, 422, "/reason"},
		{"NUL in the reason", `"looked"`, `"a\u0000"`, 400, "/reason"},
		{"version as text", `1,`, `"1",`, 422, "/expected_version"},
		{"version 0", `1,`, `0,`, 422, "/expected_version"},
		{"version beyond", `1,`, `9007199254740993,`, 400, "/expected_version"},
		{"no digest", `"spec_sha256"`, `"x-was"`, 422, "/spec_sha256"},
		{"short digest", `": "`, `": "00`, 422, ""},
		{"no terms", `["ethics:personal_data_inside"]`, `[]`, 422, "/terms"},
		{"unrelated term", `personal_data_inside`, marker, 422, "/terms/0"},
		{"null term", `["`, `[null, "`, 400, "/terms/0"},
		{"second document", `]}`, `]} {}`, 400, "-"},
		{"old version", `1,`, `2,`, 409, "-"},
	}
	for _, tt := range tests {
		body := strings.Replace(good, tt.old, tt.new, 1)
		if body == good {
			t.Fatalf("%s: nothing was changed", tt.name)
		}
		a := w.do("POST", path, "chi", []byte(body))
		if a.status != tt.status || tt.pointer != "-" && !hasPointer(a, tt.pointer) || bytes.Contains(a.body, []byte(marker)) {
			t.Errorf("%s: status %d, want %d at %q: %s", tt.name, a.status, tt.status, tt.pointer, a.body)
			continue
		}
		checkProblem(t, tt.name, a)
	}
	if n := w.count("vote"); n != 0 {
		t.Errorf("%d votes kept, want none", n)
	}
	if a := w.do("POST", path, "chi", []byte(good)); a.status != http.StatusOK || a.text("state") != "decided" {
		t.Errorf("the good vote: status %d: %s", a.status, a.body)
	}
}

// richSpec states about everything that a spec can, and is admitted.
const richSpec = `{
 "schema": "weir/spec/v1", "run_ref": "nlp/bot@2026-11", "owner": "ana", "on_behalf_of": "ana", "team": "nlp",
 "objective": {"kind": "sft", "purpose": "answers questions", "purposes": ["customer_support"], "out_of_scope": ["advice"], "markets": ["CH"]},
 "base_model": "base",
 "inputs": [
  {"id": "base", "kind": "base_model", "name": "Base", "lineage": {"base_models": [{"ref": "older", "label": "Older", "license": "MIT"}]}},
  {"id": "d1", "kind": "dataset", "name": "Tickets", "description": "Old tickets", "version": "1", "revision": "abc", "uris": ["https://data.example/d1"],
   "digests": [{"alg": "sha256", "value": "a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa", "of": "all"}],
   "sources": [{"kind": "human_authored", "detail": "agents"}],
   "collection": {"methods": ["export"], "description": "d", "start": "2024", "end": "2025", "geography": ["CH"], "crawler": "none"},
   "creators": [{"name": "Team", "type": "org", "url": "https://team.example"}], "publisher": {"name": "Team"}, "issuer": {"name": "Team"},
   "license": {"declared": [{"raw": "MIT", "spdx": "MIT", "url": "https://spdx.org/licenses/MIT", "scope": "whole"}], "concluded": "MIT", "copyright": "Team"},
   "consent": {"docs": ["form"]}, "dates": {"created": "2024", "issued": "2024", "modified": "2025", "previous": "2023", "retrieved": "2025", "released": "2025"},
   "lineage": {"derived_from": [{"ref": "d0"}]}, "shape": {"size_raw": "1 GB", "size_band": "small", "records": "10", "languages": ["de"], "modalities": ["text"]},
   "residency": {"stored_in": ["CH"], "processed_in": ["CH"], "excluded": ["US"]}, "split": "train", "trust_remote_code": false,
   "disclosures": [{"tag": "personal_data", "state": "absent", "basis": "structured", "scope": "all", "detail": "removed"}]}],
 "disclosures": [{"tag": "minors", "state": "absent", "basis": "structured"}, {"tag": "sexual_content", "state": "absent", "basis": "structured"}],
 "evidence": {"context": {"alignment_score": 0.5, "high_stakes_topic": false, "presented_options_count": 2},
  "examples": {"sha256": "a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa", "count": 10, "hits": 1, "ids": ["x"]}},
 "disclosure_statement": "May be wrong."}`
