package schemas_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"weir/docs/schemas"
	"weir/docs/schemas/schematest"
	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	data, err := schemas.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance reads a file as an editor does: every plain scalar that is no truth
// value and no number is text. The error says that there is no one document.
func instance(data []byte) (any, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if dec.Decode(&more) == nil {
		return nil, errors.New("more than one document")
	}
	v, err := fromNode(doc.Content[0])
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

func fromNode(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := m[key.Value]; twice || key.Tag == "!!merge" {
				return nil, fmt.Errorf("key %s", key.Value)
			}
			v, err := fromNode(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			v, err := fromNode(item)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!bool", "!!int", "!!float", "!!null":
			var v any
			err := n.Decode(&v)
			return v, err
		}
		return n.Value, nil
	}
	return nil, errors.New("an alias")
}

// Whatever loads, the schema accepts: every fixture, example and shipped pack.
func TestSchemasAcceptWhatLoads(t *testing.T) {
	t.Parallel()
	for name, patterns := range map[string][]string{
		schemas.Spec:     {"../../testdata/specs/*"},
		schemas.Pack:     {"../../testdata/packs/working_*", "../../screening/packs/[a-z]*[a-z].yaml"},
		schemas.Policies: {"../../testdata/declarations/working_policies*", "../../deploy/example/policies.yaml"},
		schemas.People:   {"../../testdata/declarations/working_people*", "../../deploy/example/people.yaml"},
		schemas.Access:   {"../../testdata/access/working_*"},
	} {
		schema := compile(t, name)
		for _, pattern := range patterns {
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %d files, %v", pattern, len(files), err)
			}
			for _, file := range files {
				if strings.HasSuffix(file, ".cases.yaml") {
					continue
				}
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				v, err := instance(data)
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if err := schema.Validate(v); err != nil {
					t.Errorf("%s loads, and %s refuses it: %v", file, name, err)
				}
			}
		}
	}
}

// The examples of the manual are read by people with an editor beside them.
func TestSchemasAcceptTheManual(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	first := map[string]string{"schema: weir/spec/v1": schemas.Spec, "schema: weir/pack/v1": schemas.Pack, "schema_version:": schemas.Pack}
	found := map[string]int{}
	for _, page := range []string{"../spec.md", "../packs.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatch(text, -1) {
			for begin, name := range first {
				if !bytes.HasPrefix(m[1], []byte(begin)) {
					continue
				}
				found[begin]++
				v, err := instance(m[1])
				if err == nil {
					err = compile(t, name).Validate(v)
				}
				if err != nil {
					t.Errorf("%s: %v in\n%s", page, err, m[1])
				}
			}
		}
	}
	if len(found) != len(first) {
		t.Errorf("found only %v", found)
	}
}

// The conformance vectors of commitment lists: what loads is accepted.
func TestPackSchemaAcceptsTheVectors(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../testdata/conformance/pack_load.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	schema, loads := compile(t, schemas.Pack), 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, err := jsonschema.UnmarshalJSON(bytes.NewReader(lines.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		vector := line.(map[string]any)
		if vector["loads"] != true {
			continue
		}
		loads++
		if err := schema.Validate(vector["pack"]); err != nil {
			t.Errorf("%v: %v", vector["id"], err)
		}
	}
	if loads < 5 {
		t.Errorf("only %d vectors load", loads)
	}
}

// beyond are the bad fixtures whose fault no JSON Schema can see, by reason.
// A fixture that the schema does refuse must not be here.
var beyond = map[string][]string{
	"refers to something else in the file, or must differ from it": {"date_sunset_before", "date_sunset_same_day", "duplicate_term", "list_reference_of_nothing",
		"profile_extends_itself", "profile_extends_twice", "profile_raises_own", "profile_raises_twice", "policies_duplicate_id", "policies_endpoint_twice",
		"policies_empty_match_lists", "policies_matches_nothing", "policies_project_twice", "policies_then_cycle", "policies_then_itself", "policies_then_unknown",
		"policies_unknown_default", "policies_unknown_endpoint", "people_alias_of_another", "people_duplicate_person", "people_duplicate_service",
		"people_member_twice_by_alias", "people_same_alias", "people_same_subject", "people_service_in_group", "people_service_is_a_person", "people_stranger_in_group",
		"people_service_subject_of_a_person", "issuer_twice", "issuer_url_twice"},
	"refers to another file": {"profile_base_a_profile", "profile_base_absent", "profile_base_changed", "profile_base_safety", "profile_lowers_response",
		"profile_raises_to_the_same", "profile_unknown_term", "policies_quorum_too_large", "policies_then_group", "policies_unknown_group",
		"issuer_slash_too_much", "issuer_no_ca_file", "issuer_no_jwks_file", "issuer_empty_ca_file", "login_secret_missing", "login_secret_file_missing", "login_secret_empty",
		"grant_stranger", "grant_service_as_person", "grant_person_as_service", "grant_no_group", "grant_two_projects"},
	"is a fault within a text":                 {"bad_cel", "cel_constant", "cel_gives_number", "cel_unknown_fact", "policies_bad_pattern", "policies_due_too_long", "policies_due_too_short"},
	"has something that nobody can see":        {"blank_title", "issuer_blank_audience"},
	"depends on what the term is over":         {"fact_of_an_input", "fact_of_the_spec"},
	"is a matter of YAML, not of what it says": {"custom_tag"},
}

// Every bad fixture is refused, unless its fault is one that a schema cannot see.
func TestSchemasRefuseWhatDoesNotLoad(t *testing.T) {
	t.Parallel()
	excused := map[string]string{}
	for why, names := range beyond {
		for _, name := range names {
			excused[name] = why
		}
	}
	refused := 0
	for name, pattern := range map[string]string{
		schemas.Pack:     "../../testdata/packs/busted_*",
		schemas.Policies: "../../testdata/declarations/busted_policies*",
		schemas.People:   "../../testdata/declarations/busted_people*",
		schemas.Access:   "../../testdata/access/busted_*",
	} {
		schema := compile(t, name)
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 10 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			base := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "busted_"), filepath.Ext(file))
			v, err := instance(data)
			if err == nil {
				err = schema.Validate(v)
			}
			why, ok := excused[base]
			delete(excused, base)
			switch {
			case err == nil && !ok:
				first, _, _ := strings.Cut(string(data), "\n")
				t.Errorf("%s is accepted: %s", file, first)
			case err != nil && ok:
				t.Errorf("%s is said to be beyond a schema (%s), and is refused: %v", file, why, err)
			case err != nil:
				refused++
			}
		}
	}
	for name := range excused {
		t.Errorf("no fixture is called busted_%s", name)
	}
	if refused < 90 {
		t.Errorf("only %d fixtures are refused", refused)
	}
}

// What specs break, in words that name the place: for each rule one change to a
// spec that the gate refuses for it.
func TestSpecSchemaRefusesWhatTheGateRefuses(t *testing.T) {
	t.Parallel()
	schema := compile(t, schemas.Spec)
	good := `{"schema": "weir/spec/v1", "run_ref": "a/b@1", "owner": "ana", "objective": {"kind": "sft"},
 "inputs": [{"id": "d1", "kind": "dataset", "license": {"declared": [{"spdx": "MIT"}]}}],
 "disclosures": [{"tag": "minors", "state": "absent", "basis": "structured"}]}`
	check := func(text string) (bySchema, byGate error) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_, byGate = screening.ParseSpec([]byte(text))
		return schema.Validate(v), byGate
	}
	if s, g := check(good); s != nil || g != nil {
		t.Fatalf("a good spec: schema %v, gate %v", s, g)
	}
	for _, change := range []string{
		`weir/spec/v1 → weir/spec/v2`, `a/b@1 → a b`, `"owner": "ana", → `, `"kind": "sft" → "kind": "SFT"`, `"kind": "sft" → `,
		`"id": "d1" → "id": "-d"`, `"kind": "dataset" → "kind": "data"`, `"kind": "dataset", → `, `MIT"} → MIT", "x-note": 1}`,
		`"minors" → "minor"`, `"absent" → "no"`, `"structured" → "guess"`, `"inputs" → "Inputs"`, `"sft" → "sft", "markets": ["eu"]`,
		`"sft" → "sft", "purposes": ["play"]`, `"id": "d1" → "id": 1`, `"owner" → "x-note": "", "owner"`, `"kind": "dataset" → "kind": "dataset", "split": "part"`,
		`"kind": "dataset" → "kind": "dataset", "digests": [{"alg": "crc", "value": "00"}]`, `"kind": "dataset" → "kind": "dataset", "trust_remote_code": "no"`,
		`"objective" → "evidence": {"examples": {"sha256": "00", "count": 1, "hits": 0, "ids": []}}, "objective"`,
		`"objective" → "evidence": {"context": {"presented_options_count": 1.5}}, "objective"`,
		`"objective" → "sources": [{"name": "a", "format": "b"}], "objective"`,
	} {
		old, new, _ := strings.Cut(change, " → ")
		text := strings.Replace(good, old, new, 1)
		if text == good {
			t.Fatalf("%s changes nothing", change)
		}
		s, g := check(text)
		if s == nil || g == nil {
			t.Errorf("%s: the schema says %v, the gate %v", change, s, g)
		}
	}
}

// The codes that package webhooks has.
func TestEndpointSchemaFollowsWebhooks(t *testing.T) {
	t.Parallel()
	data, err := schemas.Read(schemas.Policies)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schematest.New(data, true)
	if err != nil {
		t.Fatal(err)
	}
	var formats []string
	for _, f := range webhooks.Formats() {
		formats = append(formats, string(f))
	}
	for at, want := range map[string][]string{"/$defs/endpoint/properties/format": formats, "/$defs/endpoint/properties/types/items": webhooks.Types()} {
		if got := s.Codes()[at]; !slices.Equal(got, want) {
			t.Errorf("%s has %v, package webhooks %v", at, got, want)
		}
	}
}

// Bounds that stand in a pattern or a number agree with the loaders'.
func TestSchemaBounds(t *testing.T) {
	t.Parallel()
	people, err := review.LoadPeople("people.yaml", []byte("people: [{id: ana}]\ngroups: {general: [ana]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	schema := compile(t, schemas.Policies)
	policy := func(id, due string) string {
		return "policies: [{id: " + id + ", group: general, quorum: 1, due: " + due + "}]\ndefault: " + id + "\n"
	}
	for _, file := range []string{policy(strings.Repeat("a", 128), "1h30m"), policy(strings.Repeat("a", 129), "48h"), policy("a", "2d"), policy("_a", "48h"),
		policy("a", "1.5h"), policy("a", "48h") + "retention: {admit: 90d}\n", policy("a", "48h") + "retention: {admit: 0d}\n", policy("a", "48h") + "retention: {admit: 90}\n"} {
		v, err := instance([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		_, loader := review.LoadPolicies("policies.yaml", []byte(file), people)
		if got := schema.Validate(v); (got == nil) != (loader == nil) {
			t.Errorf("%s: the schema says %v, the loader %v", strconv.Quote(file), got, loader)
		}
	}
}
