package screening

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func problemsOf(t *testing.T, err error) []Problem {
	t.Helper()
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	return invalid.Problems
}

const sumOfHello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func sourceFile(name, format, sha256, bytes, open string) string {
	return fmt.Sprintf("sources:\n- {name: %q, format: %q, sha256: %q, bytes: %s, open: [%s]}", name, format, sha256, bytes, open)
}

// TestSourceFiles: the bytes of a file may come in parts, or be left out; open points are a fact of the spec.
func TestSourceFiles(t *testing.T) {
	t.Parallel()
	for _, bytes := range []string{`["aGVsbG8="]`, `["aG", "VsbG8="]`, "[]"} {
		for open, want := range map[string]State{"": Upheld, "{code: checksum, pointer: /a, detail: d}": Upheld,
			"{code: checksum}, {code: contradiction}, {code: contradiction}": Violated} {
			spec := parseSpec(t, sourceFile("f", "x", sumOfHello, bytes, open))
			f := findingOf(t, termText("x", Escalate, "violated_if: {fact: sources.open, has: contradiction}"), spec)
			if f.State != want {
				t.Errorf("%s, open %q: got %+v", bytes, open, f)
			}
		}
	}
	if f := findingOf(t, termText("x", Escalate, "violated_if: {fact: sources.open, has: unresolved}"), parseSpec(t, "")); f.State != Upheld {
		t.Errorf("nothing imported: got %+v", f)
	}
}

func TestSpecRules(t *testing.T) {
	t.Parallel()
	input := func(rest string) string { return "inputs:\n- id: a\n  kind: dataset\n  " + rest }
	for _, tt := range []struct {
		name, doc, pointer string
		line               int
		detail             string
	}{
		{"schema of another thing", specText("schema: weir/pack/v1"), "/schema", 5, `must be "weir/spec/v1"`},
		{"no run_ref", specText(`run_ref: ""`), "/run_ref", 5, "must name the run"},
		{"run_ref with a space", specText(`run_ref: "a b"`), "/run_ref", 5, "must name the run"},
		{"run_ref beyond ASCII", specText(`run_ref: "ä"`), "/run_ref", 5, "must name the run"},
		{"long run_ref", specText("run_ref: " + strings.Repeat("r", 257)), "/run_ref", 5, "must name the run"},
		{"no owner", specText(`owner: ""`), "/owner", 5, ""},
		{"null owner", specText("owner: null"), "/owner", 5, ""},
		{"team with a slash", specText("team: a/b"), "/team", 6, "must be 1 to 128"},
		{"unknown objective", specText("objective: {kind: SFT}"), "/objective/kind", 5, "must be one of pretrain,"},
		{"no objective", specText("objective: {}"), "/objective/kind", 5, "must be one of pretrain,"},
		{"unknown purpose", specText("objective:\n  kind: sft\n  purposes:\n  - research\n  - resaerch"), "/objective/purposes/1", 9, "must be one of customer_support,"},
		{"market in lower case", specText("objective:\n  kind: sft\n  markets: [de]"), "/objective/markets/0", 7, "must be a two-letter"},
		{"no input id", specText("inputs:\n- {kind: dataset}"), "/inputs/0/id", 7, "must be 1 to 128"},
		{"duplicate input ids", specText("inputs:\n- {id: a, kind: dataset}\n- {id: b, kind: code}\n- id: a\n  kind: code"), "/inputs/2/id", 9, "also the id of /inputs/0"},
		{"unknown input kind", specText("inputs:\n- {id: a, kind: data}"), "/inputs/0/kind", 7, "must be one of dataset,"},
		{"base_model names no input", specText("base_model: m"), "/base_model", 6, "names no input"},
		{"base_model names a dataset", specText("base_model: a\ninputs:\n- {id: a, kind: dataset}"), "/base_model", 6, "not of kind base_model"},
		{"unknown digest algorithm", specText(input("digests: [{alg: crc32, value: aa}]")), "/inputs/0/digests/0/alg", 9, "must be one of sha256"},
		{"unknown source kind", specText(input("sources: [{kind: web}]")), "/inputs/0/sources/0/kind", 9, "must be one of web_crawl"},
		{"unknown restriction", specText(input("license:\n    restrictions: [NC]")), "/inputs/0/license/restrictions/0", 10, "must be one of nc"},
		{"unknown tdm", specText(input("license: {tdm: yes}")), "/inputs/0/license/tdm", 9, "must be one of reserved"},
		{"unknown consent", specText(input("consent: {status: given}")), "/inputs/0/consent/status", 9, "must be one of documented"},
		{"unknown split", specText(input("split: dev")), "/inputs/0/split", 9, "must be one of train"},
		{"unknown modality", specText(input("shape: {modalities: [pictures]}")), "/inputs/0/shape/modalities/0", 9, "must be one of text"},
		{"region in words", specText(input("residency: {stored_in: [Germany]}")), "/inputs/0/residency/stored_in/0", 9, "must be a two-letter"},
		{"processed in", specText(input("residency: {processed_in: [d1]}")), "/inputs/0/residency/processed_in/0", 9, "must be a two-letter"},
		{"excluded", specText(input("residency: {excluded: [\"\"]}")), "/inputs/0/residency/excluded/0", 9, "must be a two-letter"},
		{"unknown tag", specText("disclosures:\n- {tag: minor, state: absent, basis: structured}"), "/disclosures/0/tag", 7, "must be one of biometric,"},
		{"unknown state", specText("disclosures:\n- {tag: minors, state: \"no\", basis: structured}"), "/disclosures/0/state", 7, "must be one of present"},
		{"no basis", specText("disclosures:\n- {tag: minors, state: absent}"), "/disclosures/0/basis", 7, "must be one of structured"},
		{"unknown tag of an input", specText(input("disclosures: [{tag: x, state: absent, basis: structured}]")), "/inputs/0/disclosures/0/tag", 9, "must be one of biometric,"},
		{"examples digest", specText("evidence: {examples: {sha256: abc, count: 1, hits: 0}}"), "/evidence/examples/sha256", 6, "64 lower-case hex"},
		{"more hits than examples", specText("evidence: {examples: {sha256: " + strings.Repeat("a", 64) + ", count: 1, hits: 2}}"), "/evidence/examples/hits", 6, "between 0 and count"},
		{"source file without a name", specText(sourceFile("", "x", sumOfHello, `["aGVsbG8="]`, "")), "/sources/0/name", 7, "must name the file"},
		{"source file of no format", specText(sourceFile("f", "a/b", sumOfHello, `["aGVsbG8="]`, "")), "/sources/0/format", 7, "must be 1 to 128"},
		{"source file without a digest", specText(sourceFile("f", "x", "", `["aGVsbG8="]`, "")), "/sources/0/sha256", 7, "64 lower-case hex"},
		{"source file with another digest", specText(sourceFile("f", "x", sumOfHello, `["aGVsbG8h"]`, "")), "/sources/0/sha256", 7, "not the digest of the bytes"},
		{"source file that is not base64", specText(sourceFile("f", "x", sumOfHello, `["aGVsbG8"]`, "")), "/sources/0/bytes", 7, "standard base64"},
		{"source file with an unknown open point", specText(sourceFile("f", "x", sumOfHello, "[]", "{code: gap}")), "/sources/0/open/0/code", 7, "must be one of unresolved"},
		{"negative hits", specText("evidence: {examples: {sha256: " + strings.Repeat("a", 64) + ", count: 1, hits: -1}}"), "/evidence/examples/hits", 6, "between 0 and count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSpec([]byte(tt.doc))
			ps := problemsOf(t, err)
			p := ps[0]
			if len(ps) != 1 || p.Pointer != tt.pointer || p.Line != tt.line || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("got %+v\nwant %q line %d %q", ps, tt.pointer, tt.line, tt.detail)
			}
		})
	}
}

func TestSpecTellsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := ParseSpec([]byte("{}"))
	var pointers []string
	for _, p := range problemsOf(t, err) {
		pointers = append(pointers, p.Pointer)
	}
	if diff := cmp.Diff([]string{"/schema", "/run_ref", "/owner", "/objective/kind"}, pointers); diff != "" {
		t.Error(diff)
	}
	var many strings.Builder
	for range 400 {
		many.WriteString("- {id: same, kind: x}\n")
	}
	_, err = ParseSpec([]byte(specText("inputs:\n" + many.String())))
	if n := len(problemsOf(t, err)); n != 50 {
		t.Errorf("got %d problems, want the first 50", n)
	}
}

func TestSpecLimits(t *testing.T) {
	t.Parallel()
	inputs := func(n, statements int) string {
		var b strings.Builder
		b.WriteString("inputs:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {id: i%d, kind: code, disclosures: [%s]}\n", i,
				strings.TrimSuffix(strings.Repeat("{tag: health, state: absent, basis: prose}, ", statements), ", "))
		}
		return specText(b.String())
	}
	for _, tt := range []struct {
		inputs, statements int
		pointer            string
	}{{500, 0, ""}, {501, 0, "/inputs"}, {250, 8, ""}, {200, 11, "/disclosures"}} {
		_, err := ParseSpec([]byte(inputs(tt.inputs, tt.statements)))
		switch {
		case tt.pointer == "" && err != nil:
			t.Errorf("%d inputs with %d statements: %v", tt.inputs, tt.statements, err)
		case tt.pointer != "" && problemsOf(t, err)[0].Pointer != tt.pointer:
			t.Errorf("%d inputs with %d statements: %v", tt.inputs, tt.statements, err)
		}
	}
}

// TestNullIsSilence: a member that is null reads like one that is not there.
func TestNullIsSilence(t *testing.T) {
	t.Parallel()
	with := parseSpec(t, `
on_behalf_of: null
base_model:
disclosures: null
evidence: {context: {alignment_score: null}, examples: null}
inputs: [{id: a, kind: dataset, license: null, consent: {status: null, docs: null}, lineage: null, trust_remote_code: null}]`)
	without := parseSpec(t, "inputs: [{id: a, kind: dataset}]")
	if diff := cmp.Diff(without.Spec, with.Spec); diff != "" {
		t.Error(diff)
	}
	if with.CanonicalSHA256 == without.CanonicalSHA256 {
		t.Error("but they are not the same document")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "A-b_c.9": true, "9": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, "-a": false, ".a": false, "a b": false, "a\n": false, "ä": false, "a/b": false, "a\x00": false,
	} {
		if IsID(s) != want {
			t.Errorf("%q: got %t", s, !want)
		}
	}
}

// TestEveryTextIsRead fills every field of a spec: a text is either held to a
// closed form by the checks or it is among those that phrases are looked for in.
func TestEveryTextIsRead(t *testing.T) {
	t.Parallel()
	// Fields with a closed form, or that only name something else of the spec.
	closed := []string{"/schema", "/owner", "/on_behalf_of", "/base_model", "/objective/kind", "/objective/purposes/0",
		"/objective/markets/0", "/evidence/examples/sha256", "/sources/0/format", "/sources/0/sha256", "/sources/0/bytes/0", "/sources/0/open/0/code"}
	closedEnds := []string{"/kind", "/alg", "/tdm", "/status", "/restrictions/0", "/split", "/modalities/0", "/stored_in/0",
		"/processed_in/0", "/excluded/0", "/tag", "/state", "/basis"}
	var s Spec
	want := map[string]string{}
	fillTexts(reflect.ValueOf(&s).Elem(), "", want)
	got := map[string]string{}
	for _, f := range textFields(&s, nil) {
		pointer := f.at.String()
		got[pointer] = f.text
		if wantOwner := wholeSpec; strings.HasPrefix(pointer, "/inputs/0/") {
			wantOwner = 0
			if f.at.input != wantOwner {
				t.Errorf("%s: owner %d", pointer, f.at.input)
			}
		} else if f.at.input != wantOwner {
			t.Errorf("%s: owner %d", pointer, f.at.input)
		}
	}
	for pointer := range want {
		isClosed := slices.Contains(closed, pointer) ||
			slices.ContainsFunc(closedEnds, func(e string) bool { return strings.HasSuffix(pointer, e) && pointer != "/inputs/0/kind/0" })
		if isClosed {
			delete(want, pointer)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// fillTexts sets every string below v to its own pointer, with one element in every list.
func fillTexts(v reflect.Value, pointer string, all map[string]string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text at " + pointer)
		all[pointer] = v.String()
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0), pointer+"/0", all)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), pointer, all)
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fillTexts(v.Field(i), pointer+"/"+name, all)
		}
	}
}

func TestInvalidNamesTheLine(t *testing.T) {
	t.Parallel()
	p := parseSpec(t, "on_behalf_of: bo\nteam: t")
	err := p.Invalid(Problem{Pointer: "/on_behalf_of", Detail: "is nobody"}, Problem{Pointer: "/nowhere/at/all", Detail: "is missing"})
	want := []Problem{{Pointer: "/on_behalf_of", Detail: "is nobody", Line: 6}, {Pointer: "/nowhere/at/all", Detail: "is missing", Line: 1}}
	if diff := cmp.Diff(want, problemsOf(t, err)); diff != "" {
		t.Error(diff)
	}
	if err := p.Invalid(); err != nil {
		t.Errorf("no problem is no error, got %v", err)
	}
}

// FuzzParseSpec: whatever comes in, the parser answers with a spec that can be
// read again from its own forms, or with problems that name a place.
func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{
		specText(""), specText("inputs: [{id: a, kind: dataset, license: {declared: [{raw: MIT}]}}]"), jsonHead + "}", jsonHead + `,"x":1}`,
		"a: &a [*a]", "? [a]\n: b", "a: |\n  x\n---\n", "{\"a\":\"\\ud800\"}", "a: !!binary x", "a: 1_0", "\ufeffa: b", "a:\n- b\n -c", "<<: {a: b}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		p, err := ParseSpec(data)
		if time.Since(start) > soon/3 {
			t.Fatalf("took %s", time.Since(start))
		}
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			for _, problem := range invalid.Problems {
				if problem.Detail == "" || problem.Pointer != "" && problem.Pointer[0] != '/' {
					t.Fatalf("problem %+v", problem)
				}
			}
			return
		}
		again, err := ParseSpec(p.JSON())
		if err != nil || again.CanonicalSHA256 != p.CanonicalSHA256 || !reflect.DeepEqual(again.Spec, p.Spec) {
			t.Fatalf("the JSON form reads differently: %v", err)
		}
	})
}

// realisticSpec is about 6 KB with eight inputs.
func realisticSpec(tb testing.TB) []byte {
	tb.Helper()
	yes := false
	s := Spec{Schema: SpecSchema, RunRef: "nlp/support-bot@2026-11", Owner: "ana", Team: "nlp", BaseModel: "m1",
		Objective:           Objective{Kind: "sft", Purpose: "answer customers", Purposes: []string{"customer_support"}, Markets: []string{"EU"}},
		DisclosureStatement: "This assistant may be wrong; ask a person about contracts."}
	for _, tag := range []string{"personal_data", "minors", "health", "biometric", "sexual_content", "violent"} {
		s.Disclosures = append(s.Disclosures, Disclosure{Tag: tag, State: "absent", Basis: "structured"})
	}
	for i := range 8 {
		in := Input{ID: "d" + strconv.Itoa(i), Kind: "dataset", Name: "Tickets, part " + strconv.Itoa(i), Version: "2026.1",
			Description: "Tickets of the help desk with answers, cleaned of names and addresses by the data team.",
			URIs:        []string{"s3://data/tickets/" + strconv.Itoa(i)}, TrustRemoteCode: &yes, Split: "train",
			Digests:  []Digest{{Alg: "sha256", Value: Sum([]byte{byte(i)}).String(), Of: "part-0.parquet"}},
			Sources:  []Source{{Kind: "licensed"}},
			Creators: []Party{{Name: "Help desk", Type: "Organization"}},
			License:  License{Declared: []DeclaredLicense{{Raw: "CC BY 4.0", SPDX: "CC-BY-4.0", Scope: "whole"}}, TDM: "not_reserved"},
			Consent:  Consent{Status: "documented", Docs: []string{"https://example.org/consent"}},
			Lineage:  &Lineage{}, Shape: &Shape{Records: "12000", Languages: []string{"en", "de"}, Modalities: []string{"text"}},
			Residency: &Residency{StoredIn: []string{"DE"}, ProcessedIn: []string{"DE"}, Excluded: []string{}}}
		if i == 0 {
			in.ID, in.Kind = "m1", "base_model"
		}
		s.Inputs = append(s.Inputs, in)
	}
	data, err := json.Marshal(&s, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func BenchmarkParseSpec(b *testing.B) {
	data := realisticSpec(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSpec(data); err != nil {
			b.Fatal(err)
		}
	}
}

func TestIsBlank(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, " \t\n": true, "\u200b\u2060\ufeff": true, "\u3164": true, "\u2800\u2800": true, // invisible, a filler, a symbol that is blank
		"\u0301\u0308": true, "\u200b\u3164\u2800": true, // marks with nothing under them
		"a": false, "\u200ba": false, ".": false, "é": false, "字": false, "🙂": false,
	} {
		if got := IsBlank(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
