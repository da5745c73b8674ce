package screening

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const marker = "S3CRET-VALUE" // stands in submitted values; no error may show it

// soon is far below what a bomb takes and far above what a slow machine needs.
const soon = 15 * time.Second

const jsonHead = `{"schema":"weir/spec/v1","run_ref":"r","owner":"ana","objective":{"kind":"sft"}`

func nested(open, closing string, n int) string {
	return strings.Repeat(open, n) + strings.Repeat(closing, n)
}

// TestStrictDecoding: every way in which two readers could see two documents in
// the same bytes, or in which bytes cannot be kept, is refused with its place.
func TestStrictDecoding(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxStringBytes+1)
	for _, tt := range []struct {
		name, doc string
		pointer   string
		line      int
		detail    string
	}{
		// the bytes
		{"nothing", "", "", 0, "is empty"},
		{"white space", " \n\t ", "", 0, "is empty"},
		{"byte order mark", "\ufeff" + jsonHead + "}", "", 1, "byte order mark"},
		{"byte order mark before YAML", "\ufeff" + specText(""), "", 1, "byte order mark"},
		{"bad UTF-8", jsonHead + ",\n\"team\":\"" + marker + "\xff\"}", "", 2, "not valid UTF-8"},
		{"overlong UTF-8", jsonHead + ",\"team\":\"\xc0\x80\"}", "", 1, "not valid UTF-8"},
		{"encoded surrogate", jsonHead + ",\"team\":\"\xed\xa0\x80\"}", "", 1, "not valid UTF-8"},
		{"bad UTF-8 in YAML", specText("team: \xff"), "", 6, "not valid UTF-8"},
		{"UTF-16", "s\x00c\x00h\x00e\x00m\x00a\x00:\x00", "", 0, "not well-formed YAML"},
		{"too large", `{"owner":"` + strings.Repeat("x", MaxDocumentBytes) + `"}`, "", 0, "larger than 1 MiB"},
		// JSON: one document
		{"second object", jsonHead + "}\n{\"owner\":\"" + marker + "\"}", "", 2, "one document"},
		{"second list", jsonHead + "}\n\n[]", "", 3, "one document"},
		{"second text", jsonHead + `}"x"`, "", 1, "one document"},
		{"second number", jsonHead + "}\n1", "", 2, "one document"},
		{"rubbish after the end", jsonHead + "}\nx" + marker, "", 1, "one document"},
		{"comma after the end", jsonHead + "},", "", 1, "one document"},
		{"cut off", jsonHead + ",\n\"team\":\"" + marker, "/team", 2, "cut off"},
		{"cut off after a key", jsonHead + ",\n\"team\"", "/team", 2, "cut off"},
		{"comment", jsonHead + ",\n// x\n\"team\":\"t\"}", "", 2, "not well-formed JSON"},
		{"trailing comma", jsonHead + ",\n}", "", 1, "not well-formed JSON"},
		{"bare word", jsonHead + ",\n\"team\":" + marker + "}", "/team", 2, "not well-formed JSON"},
		{"NaN", jsonHead + ",\n\"team\":NaN}", "/team", 2, "not well-formed JSON"},
		{"single quotes", `{'owner':'ana'}`, "", 1, "not well-formed JSON"},
		{"key without quotes", "{\nowner:\"ana\"}", "", 2, "not well-formed JSON"},
		{"number as key", "{\n1:\"ana\"}", "", 2, "key that is not text"},
		{"control character", jsonHead + ",\"team\":\"a\tb\"}", "/team", 1, "not well-formed JSON"},
		// JSON: duplicate and variant keys
		{"duplicate", jsonHead + ",\n\"owner\":\"" + marker + "\"}", "/owner", 2, "given twice"},
		{"duplicate, escaped", jsonHead + ",\n\"\\u006fwner\":\"bo\"}", "/owner", 2, "given twice"},
		{"duplicate deep", jsonHead + ",\"inputs\":[\n{\"id\":\"a\",\n\"id\":\"b\"}]}", "/inputs/0/id", 3, "given twice"},
		{"duplicate unknown key", jsonHead + ",\"a\":1,\n\"a\":1}", "/a", 2, "given twice"},
		{"upper case", jsonHead + ",\n\"TEAM\":\"t\"}", "/TEAM", 2, "not a known key"},
		{"long s", jsonHead + ",\n\"discloſures\":[]}", "/discloſures", 2, "not a known key"},
		{"kelvin sign", jsonHead + ",\"inputs\":[{\"id\":\"a\",\n\"\u212aind\":\"dataset\"}]}", "/inputs/0/\u212aind", 2, "not a known key"},
		{"both spellings", jsonHead + ",\"disclosures\":[],\n\"Disclosures\":[]}", "/Disclosures", 2, "not a known key"},
		{"unknown key", jsonHead + ",\n\"disclosure\":[]}", "/disclosure", 2, "not a known key"},
		{"unknown key deep", jsonHead + ",\"inputs\":[{\"id\":\"a\",\n\"license\":{\"sdpx\":\"" + marker + "\"}}]}", "/inputs/0/license/sdpx", 2, "not a known key"},
		{"key with slash and tilde", jsonHead + ",\n\"a/b~c\":1}", "/a~1b~0c", 2, "not a known key"},
		{"empty key", jsonHead + ",\n\"\":1}", "/", 2, "not a known key"},
		{"note in a spec", jsonHead + ",\n\"x-note\":1}", "/x-note", 2, "not a known key"},
		{"huge key", jsonHead + ",\n\"" + strings.Repeat("k", 5000) + "\":1}", "", 2, "not a known key"},
		// JSON: texts
		{"lone high surrogate", jsonHead + ",\n\"team\":\"\\ud800\"}", "/team", 2, "not well-formed JSON"},
		{"lone low surrogate", jsonHead + ",\n\"team\":\"\\udc00\"}", "/team", 2, "not well-formed JSON"},
		{"reversed surrogates", jsonHead + ",\"team\":\"\\udc00\\ud800\"}", "/team", 1, "not well-formed JSON"},
		{"lone surrogate in a key", jsonHead + ",\n\"\\ud800\":1}", "", 2, "not well-formed JSON"},
		{"NUL", jsonHead + ",\n\"team\":\"" + marker + "\\u0000\"}", "/team", 2, "NUL"},
		{"NUL in a key", jsonHead + ",\n\"te\\u0000am\":1}", "/te\x00am", 2, "NUL"},
		{"raw NUL", jsonHead + ",\"team\":\"\x00\"}", "/team", 1, "not well-formed JSON"},
		{"long text", jsonHead + ",\n\"team\":\"" + long + "\"}", "/team", 2, "longer than 64 KiB"},
		{"long key", jsonHead + ",\n\"" + long + "\":1}", "", 2, "longer than 64 KiB"},
		// JSON: size of parts
		{"depth 33", `{"x":` + nested("[", "]", 32) + "}", "/x" + strings.Repeat("/0", 31), 1, "deeper than 32"},
		{"depth 100,000", strings.Repeat("[", 100_000), "" + strings.Repeat("/0", 32), 1, "deeper than 32"},
		{"20,001 tokens", `{"x":[` + strings.Repeat("1,", 19_997) + "1]}", "/x/19997", 1, "20,000 values"},
		{"a million empty objects", "[" + strings.Repeat("{},", 300_000) + "{}]", "/9999", 1, "20,000 values"},
		// JSON: numbers
		{"2^53+1", jsonHead + ",\n\"x\":9007199254740993}", "/x", 2, "kept exactly"},
		{"-(2^53+1)", jsonHead + ",\n\"x\":-9007199254740993}", "/x", 2, "kept exactly"},
		{"1e131071", jsonHead + ",\n\"x\":1e131071}", "/x", 2, "kept exactly"},
		{"1e309", jsonHead + ",\"x\":1e309}", "/x", 1, "kept exactly"},
		{"1e-309", jsonHead + ",\"x\":1e-309}", "/x", 1, "kept exactly"},
		{"1e-99999999999999999999", jsonHead + ",\"x\":1e-99999999999999999999}", "/x", 1, "kept exactly"},
		{"long number", jsonHead + ",\"x\":0." + strings.Repeat("0", 40) + "1}", "/x", 1, "kept exactly"},
		{"too many digits", jsonHead + ",\"x\":0.12345678901234567}", "/x", 1, "kept exactly"},
		{"leading zero", jsonHead + ",\"x\":010}", "", 1, "not well-formed JSON"},
		{"plus sign", jsonHead + ",\"x\":+1}", "/x", 1, "not well-formed JSON"},
		// YAML
		{"YAML: second document", specText("---\nowner: " + marker), "", 5, "one document"},
		{"YAML: second document after an end mark", specText("...\n---\nowner: bo"), "", 6, "one document"},
		{"YAML: empty second document", specText("---"), "", 6, "one document"},
		{"YAML: comments only", "# nothing\n", "", 0, "is empty"},
		{"YAML: duplicate", specText("team: t\nowner2: x\nteam: " + marker), "/team", 8, "given twice"},
		{"YAML: duplicate, quoted", specText("\"owner\": bo"), "/owner", 6, "given twice"},
		{"YAML: case variant", specText("Team: t"), "/Team", 6, "not a known key"},
		{"YAML: long s", specText("discloſures: []"), "/discloſures", 6, "not a known key"},
		{"YAML: alias", specText("team: &t x\nowner2: *t"), "/owner2", 7, "alias"},
		{"YAML: alias as key", specText("team: &t x\n*t : y"), "", 7, "not plain text"},
		{"YAML: merge key", specText("<<: {team: t}"), "", 6, "not plain text"},
		{"YAML: tag", specText("team: !secret " + marker), "/team", 6, "YAML tag"},
		{"YAML: core tag", specText("team: !!str 12"), "/team", 6, "YAML tag"},
		{"YAML: binary", specText("team: !!binary aGk="), "/team", 6, "YAML tag"},
		{"YAML: null tag hides a value", specText("disclosures: !!null [{tag: minors}]"), "/disclosures", 6, "YAML tag"},
		{"YAML: tagged map", specText("evidence: !x {}"), "/evidence", 6, "YAML tag"},
		{"YAML: tagged key", specText("!!str team: t"), "", 6, "not plain text"},
		{"YAML: octal", specText("team: 010"), "/team", 6, "plain decimal number"},
		{"YAML: new octal", specText("team: 0o10"), "/team", 6, "plain decimal number"},
		{"YAML: hexadecimal", specText("team: 0x1F"), "/team", 6, "plain decimal number"},
		{"YAML: underscores", specText("team: 1_000"), "/team", 6, "plain decimal number"},
		{"YAML: infinity", specText("team: .inf"), "/team", 6, "plain decimal number"},
		{"YAML: not a number", specText("team: .nan"), "/team", 6, "plain decimal number"},
		{"YAML: plus sign", specText("team: +1"), "/team", 6, "plain decimal number"},
		{"YAML: version is a number", specText("inputs:\n- {id: a, kind: dataset, version: 1.10}"), "/inputs/0/version", 7, "expected text (in YAML, put it in quotes)"},
		{"YAML: True", specText("inputs:\n- {id: a, kind: dataset, trust_remote_code: True}"), "/inputs/0/trust_remote_code", 7, "true or false"},
		{"YAML: no is text", specText("inputs:\n- {id: a, kind: dataset, trust_remote_code: no}"), "/inputs/0/trust_remote_code", 7, "found text, expected true or false"},
		{"YAML: on is text", specText("evidence: {context: {hedge_emitted: on}}"), "/evidence/context/hedge_emitted", 6, "found text, expected true or false"},
		{"YAML: number as key", specText("1: x"), "", 6, "not plain text"},
		{"YAML: truth as key", specText("true: x"), "", 6, "not plain text"},
		{"YAML: date as key", specText("2026-01-01: x"), "", 6, "not plain text"},
		{"YAML: empty key", specText(": x"), "", 5, "not well-formed YAML"},
		{"YAML: null as key", specText("~: x"), "", 6, "not plain text"},
		{"YAML: list as key", specText("? [a]\n: x"), "", 6, "not plain text"},
		{"YAML: NUL", specText("team: \"\\0\""), "/team", 6, "NUL"},
		{"YAML: lone surrogate", specText("team: \"\\ud800\""), "", 6, "not well-formed YAML"},
		{"YAML: 2^53+1", specText("team: 9007199254740993"), "/team", 6, "kept exactly"},
		{"YAML: long text", specText("team: " + long), "/team", 6, "longer than 64 KiB"},
		{"YAML: depth 33", specText("x: " + nested("[", "]", 32)), "/x" + strings.Repeat("/0", 31), 6, "deeper than 32"},
		{"YAML: tab", "schema: weir/spec/v1\n\towner: " + marker, "", 2, "not well-formed YAML"},
		{"YAML: unclosed", "schema: [a", "", 1, "not well-formed YAML"},
		{"YAML: text only", marker, "", 1, "found text, expected an object"},
		{"YAML: list only", "- a\n- b", "", 1, "found a list, expected an object"},
		// null in lists
		{"null in a list of texts", jsonHead + ",\"inputs\":[{\"id\":\"a\",\"uris\":[\n\"u\",\nnull]}]}", "/inputs/0/uris/1", 3, "null inside a list"},
		{"null in a list of objects", jsonHead + ",\n\"disclosures\":[null]}", "/disclosures/0", 2, "null inside a list"},
		{"YAML: null in a list", specText("disclosures:\n- {tag: health, state: absent, basis: structured}\n- "), "/disclosures/1", 8, "null inside a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := ParseSpec([]byte(tt.doc))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			p := invalid.Problems[0]
			if p.Pointer != tt.pointer || p.Line != tt.line || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("got %q line %d %q, want %q line %d %q", p.Pointer, p.Line, p.Detail, tt.pointer, tt.line, tt.detail)
			}
			if strings.Contains(err.Error(), marker) || len(err.Error()) > 2000 {
				t.Errorf("the error shows what was submitted: %.300q", err)
			}
			if took := time.Since(start); took > soon {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		doc              string
		syntax, tooLarge bool
	}{
		{"{", true, false},
		{`{"a":1,"a":1}`, true, false},
		{strings.Repeat(" ", MaxDocumentBytes+1), true, true},
		{jsonHead + `,"nope":1}`, false, false},
		{`{}`, false, false},
	} {
		_, err := ParseSpec([]byte(tt.doc))
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Syntax != tt.syntax || invalid.TooLarge != tt.tooLarge {
			t.Errorf("%.20q: got %+v", tt.doc, invalid)
		}
	}
}

// TestHostileSizes: what grows when it is read is refused quickly.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	aliases := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 30; i++ {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	var steps strings.Builder
	for i := range 1000 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, doc := range map[string]string{
		"alias bomb":             aliases,
		"flow depth bomb":        "a: " + strings.Repeat("[", 500_000),
		"flow map depth bomb":    "a: " + strings.Repeat("{a: ", 200_000),
		"block depth bomb":       steps.String(),
		"sequence depth bomb":    strings.Repeat("- ", 500_000) + "x",
		"question marks":         strings.Repeat("? ", 500_000),
		"many keys":              strings.Repeat("? x\n", 250_000),
		"many anchors":           "a: " + strings.Repeat("&a ", 300_000),
		"many documents":         strings.Repeat("---\n", 250_000),
		"many comments":          "a: b\n" + strings.Repeat("#\n", 500_000),
		"many directives":        strings.Repeat("%YAML 1.1\n", 100_000),
		"long plain text":        "a: " + strings.Repeat("b ", 500_000),
		"long quoted lines":      "a: \"" + strings.Repeat("b\n\n", 300_000) + "\"",
		"JSON depth bomb":        strings.Repeat(`{"a":`, 200_000),
		"JSON list bomb":         strings.Repeat(`[`, 1_000_000),
		"JSON long number":       `{"a":` + strings.Repeat("9", 1_000_000) + `}`,
		"JSON many problems":     jsonHead + `,"disclosures":[` + strings.TrimSuffix(strings.Repeat("{},", 9_000), ",") + "]}",
		"JSON many wrong inputs": jsonHead + `,"inputs":[` + strings.TrimSuffix(strings.Repeat("{},", 500), ",") + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := ParseSpec([]byte(doc))
			if err == nil {
				t.Error("it was read")
			}
			if took := time.Since(start); took > soon {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestWrongTypes gives every field of a spec every wrong JSON type.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	values := map[string]string{"text": `"` + marker + `"`, "number": "7.5", "true or false": "true", "a list": "[1]", "an object": `{"q":1}`}
	wrap := func(path, value string) string {
		doc := value
		parts := strings.Split(path, ".")
		for i := len(parts) - 1; i >= 0; i-- {
			if parts[i] == "0" {
				doc = "[" + doc + "]"
			} else {
				doc = fmt.Sprintf("{%q:%s}", parts[i], doc)
			}
		}
		return doc
	}
	for path, accepts := range map[string]string{
		"schema": "text", "run_ref": "text", "owner": "text", "on_behalf_of": "text", "team": "text", "base_model": "text",
		"disclosure_statement": "text", "objective": "an object", "objective.kind": "text", "objective.purpose": "text",
		"objective.purposes": "a list", "objective.purposes.0": "text", "objective.markets": "a list", "objective.out_of_scope": "a list",
		"inputs": "a list", "inputs.0": "an object", "inputs.0.id": "text", "inputs.0.kind": "text", "inputs.0.name": "text",
		"inputs.0.version": "text", "inputs.0.revision": "text", "inputs.0.uris": "a list", "inputs.0.uris.0": "text",
		"inputs.0.digests": "a list", "inputs.0.digests.0": "an object", "inputs.0.digests.0.value": "text",
		"inputs.0.sources": "a list", "inputs.0.sources.0": "an object", "inputs.0.sources.0.kind": "text",
		"inputs.0.collection": "an object", "inputs.0.collection.geography": "a list",
		"inputs.0.creators": "a list", "inputs.0.publisher": "an object", "inputs.0.license": "an object",
		"inputs.0.license.declared": "a list", "inputs.0.license.declared.0": "an object", "inputs.0.license.declared.0.spdx": "text",
		"inputs.0.license.concluded": "text", "inputs.0.license.restrictions": "a list", "inputs.0.license.tdm": "text",
		"inputs.0.consent": "an object", "inputs.0.consent.status": "text", "inputs.0.consent.docs": "a list",
		"inputs.0.dates": "an object", "inputs.0.dates.created": "text", "inputs.0.lineage": "an object",
		"inputs.0.lineage.derived_from": "a list", "inputs.0.lineage.derived_from.0": "an object", "inputs.0.lineage.derived_from.0.ref": "text",
		"inputs.0.shape": "an object", "inputs.0.shape.records": "text", "inputs.0.shape.modalities": "a list",
		"inputs.0.residency": "an object", "inputs.0.residency.stored_in": "a list", "inputs.0.split": "text",
		"inputs.0.trust_remote_code": "true or false", "inputs.0.disclosures": "a list",
		"disclosures": "a list", "disclosures.0": "an object", "disclosures.0.tag": "text", "disclosures.0.state": "text", "disclosures.0.basis": "text",
		"evidence": "an object", "evidence.context": "an object", "evidence.context.alignment_score": "number",
		"evidence.context.hedge_emitted": "true or false", "evidence.context.presented_options_count": "number",
		"evidence.examples": "an object", "evidence.examples.count": "number", "evidence.examples.ids": "a list",
	} {
		for is, value := range values {
			if is == accepts && path != "evidence.context.presented_options_count" && path != "evidence.examples.count" {
				continue
			}
			_, err := ParseSpec([]byte(wrap(path, value)))
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Errorf("%s as %s: got %v", path, is, err)
				continue
			}
			p := invalid.Problems[0]
			wantPointer := "/" + strings.ReplaceAll(path, ".", "/")
			if p.Pointer != wantPointer || !strings.HasPrefix(p.Detail, "has the wrong type: found ") || strings.Contains(p.Detail, "another type") {
				t.Errorf("%s as %s: got %q %q", path, is, p.Pointer, p.Detail)
			}
			if strings.Contains(err.Error(), marker) || strings.Contains(err.Error(), "7.5") {
				t.Errorf("%s as %s: the error shows the value: %v", path, is, err)
			}
		}
	}
}

func TestDecodeLeavesNotesOut(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string `json:"name"`
	}
	type doc struct {
		Title string `json:"title"`
		Parts []part `json:"parts"`
	}
	for _, tt := range []struct{ name, text, err string }{
		{"YAML", "title: t\nx-why: {a: [1, {b: 2}]}\nparts:\n- {name: a, x-note: n}\n- {x-note: n, name: b}\n", ""},
		{"JSON", `{"x-why":{"a":[1,{"b":2}]},"title":"t","parts":[{"name":"a","x-note":"n"},{"x-note":null,"name":"b"}]}`, ""},
		{"escaped", `{"\u0078-why":1,"title":"t","parts":[{"name":"a"},{"name":"b"}]}`, ""},
		{"text that looks like one", `{"title":"t","parts":[{"name":"a"},{"name":"b"}],"x-":"\"x-\""}`, ""},
		{"duplicate note", `{"x-a":1,"x-a":2,"title":"t"}`, "/x-a: is given twice"},
		{"capital", "X-why: 1\ntitle: t\n", "line 1: /X-why: is not a known key"},
		{"wrong type after a note", "x-a: 1\nparts:\n- {x-b: 1, name: a}\n- {name: [1]}\n", "line 4: /parts/1/name: has the wrong type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got doc
			err := Decode("sheet", "s.yaml", []byte(tt.text), &got)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "sheet s.yaml: ") {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(doc{"t", []part{{"a"}, {"b"}}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestYAMLMeansWhatItSays(t *testing.T) {
	t.Parallel()
	const text = `
date: 2026-11-30
time: 2001-12-14t21:59:43.10-05:00
country: NO
answer: no
version: "1.10"
folded: >-
  a
  b
anchor: &a x
quoted: '010'
empty: ""
nothing:
tilde: ~
list: [y, n, on, off]
number: 1.5
exponent: 1e3
neg: -3
truth: true
`
	d, err := parseDocument("x", "", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"date":"2026-11-30","time":"2001-12-14t21:59:43.10-05:00","country":"NO","answer":"no","version":"1.10",` +
		`"folded":"a b","anchor":"x","quoted":"010","empty":"","nothing":null,"tilde":null,"list":["y","n","on","off"],` +
		`"number":1.5,"exponent":1e3,"neg":-3,"truth":true}`
	if diff := cmp.Diff(want, string(d.json)); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersAreKept(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0": true, "-0": true, "1": true, "0.1": true, "1.10": true, "0.0": true, "1e2": true, "1E+2": true, "123456789012345": true,
		"0.5e-3": true, "100": true, "1000000000000000000": false, "9007199254740992": true, "9007199254740993": false,
		"-9007199254740992": true, "9007199254740994": false, "0.30000000000000004": true, "0.300000000000000041": false,
		"0.1000000000000000000000": true, "1e-300": true, "5e-324": false, "0e99999999999999999999": true, "0.65": true,
		"1e22": false, "2251799813685248.5": true, "2251799813685248.3": false,
	} {
		if got := keptExactly(text); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

// TestOneDigestInBothForms: JSON in any order and YAML of one spec are one canonical document.
func TestOneDigestInBothForms(t *testing.T) {
	t.Parallel()
	forms := []string{
		specText("inputs:\n- {id: d1, kind: dataset, name: \"Grüße\", trust_remote_code: false}\nevidence: {context: {alignment_score: 0.50}}"),
		`{"schema":"weir/spec/v1","run_ref":"team/run@1","owner":"ana","objective":{"kind":"sft"},"disclosure_statement":"It may err.",
		  "inputs":[{"id":"d1","kind":"dataset","name":"Gr\u00fc\u00dfe","trust_remote_code":false}],"evidence":{"context":{"alignment_score":5e-1}}}`,
		`{"evidence":{"context":{"alignment_score":0.5}},"inputs":[{"trust_remote_code":false,"name":"Grüße","kind":"dataset","id":"d1"}],
		  "disclosure_statement":"It may err.","objective":{"kind":"sft"},"owner":"ana","run_ref":"team/run@1","schema":"weir/spec/v1"}`,
	}
	first, err := ParseSpec([]byte(forms[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range forms {
		p, err := ParseSpec([]byte(form))
		if err != nil {
			t.Fatal(err)
		}
		if p.CanonicalSHA256 != first.CanonicalSHA256 {
			t.Errorf("another canonical digest for\n%s", form)
		}
		if p.SHA256 != Sum([]byte(form)) || string(p.Raw) != form {
			t.Error("the identity is not that of the received bytes")
		}
		if diff := cmp.Diff(first.Spec, p.Spec, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
}
