package screening

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// checkRead holds the short way to the long one: what it accepts, that one accepts with the same result.
func checkRead(t interface{ Fatalf(string, ...any) }, doc []byte) (ok bool) {
	fast := &ParsedSpec{Spec: new(Spec), Raw: doc}
	if bytesProblem(doc) != nil || !looksLikeJSON(doc) || !fast.read() {
		return false
	}
	slow := &ParsedSpec{Spec: new(Spec), Raw: doc}
	if err := slow.decode(); err != nil {
		t.Fatalf("%q is accepted, but %v", doc, err)
	}
	if diff := cmp.Diff(slow.Spec, fast.Spec); diff != "" {
		t.Fatalf("%q: (-decoder +reader)\n%s", doc, diff)
	}
	if slow.CanonicalSHA256 != fast.CanonicalSHA256 {
		t.Fatalf("%q: the canonical forms differ", doc)
	}
	return true
}

var readSeeds = []string{
	`{}`, `{"owner":"ana"}`, ` { "owner" : "ana" , "inputs" : [ ] } `, `{"owner":"a\u00e4\n\"\\\/\ud83d\ude00","team":"ü"}`, `{"owner":"\u0000"}`, `{"owner":"\ud800"}`,
	`{"inputs":[{"id":"a","kind":"dataset","trust_remote_code":true,"lineage":{},"uris":[],"shape":{"modalities":["text"]}}]}`,
	`{"inputs":[{"trust_remote_code":null}]}`, `{"inputs":null}`, `{"inputs":[null]}`, `{"inputs":[{},{}],"disclosures":[{"tag":"t","state":"s"}]}`,
	`{"evidence":{"context":{"alignment_score":0.910,"hedge_threshold_soft":1e-2,"presented_options_count":3,"hedge_emitted":false}}}`,
	`{"evidence":{"context":{"alignment_score":-0,"presented_options_count":-3}}}`, `{"evidence":{"context":{"alignment_score":1E400}}}`,
	`{"evidence":{"examples":{"sha256":"","count":10,"hits":0,"ids":["a","b"]}}}`, `{"evidence":{"examples":{"count":01}}}`, `{"evidence":{"examples":{"count":9007199254740993}}}`,
	`{"owner":"a","owner":"b"}`, `{"OWNER":"a"}`, `{"x":1}`, `{"owner":"a"} {}`, `{"owner":"a",}`, `{"owner":"a"`, `{"owner":"a` + "\t" + `"}`, `{"owner" "a"}`, `[]`, `{"owner":1}`, `{,}`,
	`{"inputs":[{"id":"a"},]}`, `{"own\u0065r":"a"}`, `{"owner":"a","team":tru}`, `{"objective":{"purposes":["a","b"],"kind":"k"}}`,
}

func TestReadSpec(t *testing.T) {
	t.Parallel()
	accepted := 0
	for _, doc := range readSeeds {
		if checkRead(t, []byte(doc)) {
			accepted++
		}
	}
	if accepted < 9 {
		t.Errorf("only %d of %d documents take the short way", accepted, len(readSeeds))
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := specJSON(t, drawSpec(t))
		if rapid.Bool().Draw(t, "shuffled") {
			doc = shuffled(t, doc)
		}
		if rapid.Bool().Draw(t, "indented") {
			var b bytes.Buffer
			if err := json.Indent(&b, doc, "", "  "); err != nil {
				t.Fatal(err)
			}
			doc = b.Bytes()
		}
		if !checkRead(t, doc) {
			t.Fatalf("%s does not take the short way", doc)
		}
		// And damaged in one place.
		at := rapid.IntRange(0, len(doc)-1).Draw(t, "at")
		doc[at] = rapid.SampledFrom([]byte(`"\,:{}[]0eE.- anul`+"\x00\t\x80")).Draw(t, "byte")
		checkRead(t, doc)
	})
}

func FuzzReadSpec(f *testing.F) {
	for _, doc := range readSeeds {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { checkRead(t, doc) })
}

// A spec that is cut off anywhere, or goes on with something else, is read as the
// decoder reads it: refused, and never a panic.
func TestReadSpecOfEveryPrefix(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "specs", "admitted_hedged.json"))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		for _, tail := range []string{"", `"`, `\`, `{`, `:`} {
			checkRead(t, append(data[:cut:cut], tail...))
		}
	}
}

// TestPlansAreTheStructs: a plan has the members of its struct. That each is read
// into its field is what TestReadSpec compares.
func TestPlansAreTheStructs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		plan *readPlan
		of   any
	}{
		{specPlan, Spec{}}, {objectivePlan, Objective{}}, {inputPlan, Input{}}, {digestPlan, Digest{}}, {sourcePlan, Source{}}, {collectionPlan, Collection{}},
		{partyPlan, Party{}}, {licensePlan, License{}}, {declaredPlan, DeclaredLicense{}}, {consentPlan, Consent{}}, {datesPlan, Dates{}}, {lineagePlan, Lineage{}},
		{refPlan, LineageRef{}}, {shapePlan, Shape{}}, {residencyPlan, Residency{}}, {disclosurePlan, Disclosure{}}, {evidencePlan, SpecEvidence{}},
		{contextPlan, Context{}}, {examplesPlan, Examples{}}, {sourceFilePlan, SourceFile{}}, {openPointPlan, OpenPoint{}},
	} {
		of := reflect.TypeOf(tt.of)
		var want, got, values []string
		for i := range of.NumField() {
			want = append(want, of.Field(i).Tag.Get("json"))
		}
		for _, m := range tt.plan.members {
			got = append(got, m.name)
			values = append(values, fmt.Sprintf("%q:%s", m.name, exampleValue(of, len(got)-1)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-struct +plan)\n%s", of, diff)
			continue
		}
		// One member at a time, read by plan and by the decoder.
		for i, value := range values {
			doc := "{" + value + "}"
			fast, slow := reflect.New(of), reflect.New(of)
			r := specReader{text: doc}
			if !r.object(tt.plan, fast.Interface()) {
				t.Errorf("%s: %s is not read", of, doc)
				continue
			}
			if err := json.Unmarshal([]byte(doc), slow.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(slow.Interface(), fast.Interface()); diff != "" || slow.Elem().Field(i).IsZero() {
				t.Errorf("%s: %s: (-decoder +plan)\n%s", of, doc, diff)
			}
		}
	}
}

// exampleValue gives JSON for a field that is not its zero value.
func exampleValue(of reflect.Type, field int) string {
	kind := of.Field(field).Type
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.Kind() {
	case reflect.String:
		return `"x"`
	case reflect.Bool:
		return "true"
	case reflect.Int64:
		return "3"
	case reflect.Float64:
		return "0.5"
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.String {
			return `["x","y"]`
		}
		return "[" + exampleObject(kind.Elem()) + "]"
	}
	return exampleObject(kind)
}

func exampleObject(of reflect.Type) string {
	return fmt.Sprintf("{%q:%s}", of.Field(0).Tag.Get("json"), exampleValue(of, 0))
}
