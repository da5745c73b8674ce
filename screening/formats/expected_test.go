package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/screening"
)

// TestExpected compares with what an independent reader found, a file a line:
// name, outcome, warnings, facts. The differences that are meant are in
// docs/decisions/0015-importers.md.
func TestExpected(t *testing.T) {
	t.Parallel()
	dir := fixtures
	if samples := os.Getenv("WEIR_SAMPLES_DIR"); samples != "" {
		dir = samples
	}
	all := filesBelow(t, dir)
	table, err := os.ReadFile(filepath.Join(dir, "EXPECTED.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) < 4 || cells[0] == "file" {
			continue
		}
		rows++
		name, outcome, warnings, facts := cells[0], cells[1], cells[2], cells[3]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, ok := all[name]
			if !ok {
				t.Fatal("is not there")
			}
			im, err := Read(name, data)
			var refused *RefusedError
			if want := map[string][]Reason{"json-error": {NotJSON, HasComments}, "not-a-map": {NotAMap}, "no-front-matter": {NoFrontMatter}}[outcome]; want != nil {
				if !errors.As(err, &refused) || !slices.Contains(want, refused.Reason) {
					t.Errorf("got %v, want a refusal for %v", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for warning := range strings.SplitSeq(warnings, "; ") {
				if want, ok := expectedFindings[warning]; warning != "" && (!ok || !want(im)) {
					t.Errorf("%s: not found in %+v", warning, im.Findings)
				}
			}
			for fact := range strings.SplitSeq(facts, " | ") {
				if err := expectFact(im, fact); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if rows < 20 {
		t.Errorf("only %d rows", rows)
	}
}

func has(code Code, field string) func(*Import) bool {
	return func(im *Import) bool {
		return slices.ContainsFunc(im.Findings, func(f Finding) bool { return f.Code == code && strings.EqualFold(f.Field, field) })
	}
}

var expectedFindings = map[string]func(*Import) bool{
	"no-license": has(Missing, "license"), "no-datePublished": has(Missing, "datePublished"), "no-conformsTo": has(Missing, "conformsTo"),
	// creators under the plural are creators
	"no-creator":           func(im *Import) bool { return has(Missing, "creator")(im) || len(im.Records[0].Creators) > 0 },
	"no-distribution-list": has(Note, "distribution"), "bom": has(Note, ""), "crlf": func(im *Import) bool {
		return !strings.Contains(im.Records[0].Name+strings.Join(im.Records[0].Shape.Languages, ""), "\r")
	},
	"invalid-utf8": has(Unreadable, "body"), "modelCard-without-modelParameters": has(Missing, "modelParameters"),
}

// expectFact checks the facts that a record has a place for.
func expectFact(im *Import, fact string) error {
	key, text, ok := strings.Cut(fact, "=")
	if !ok || strings.HasSuffix(text, "…") {
		return nil
	}
	var n, good, bad, md5 int
	if _, err := fmt.Sscanf(fact, "fileObjects=%d sha256ok=%d sha256bad=%d md5=%d", &n, &good, &bad, &md5); err == nil {
		got := map[string]int{}
		for _, d := range im.Records[0].Digests {
			_, err := screening.ParseDigest256(strings.ToLower(d.Value))
			got[d.Alg+fmt.Sprint(err == nil)]++
		}
		// equal checksums of a name are one
		if got["sha256true"] != good || got["sha256false"] > bad || bad > 0 && got["sha256false"] == 0 || got["md5false"] != md5 {
			return fmt.Errorf("%s: got %v", fact, got)
		}
		return nil
	}
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		return nil
	}
	one, isText := want.(string)
	var got []string
	switch key {
	case "license", "licenses", "simplelicensing_licenseExpression", "Licenses":
		isText = true
		words := map[string]bool{}
		for _, rec := range im.Records {
			for _, d := range rec.License.Declared {
				words[d.Raw], words[d.URL], words[d.SPDX] = true, true, true
			}
		}
		for _, w := range leaves(want) {
			if !words[w] && w != "" && w != "other" { // "other" gives way to the name it comes with
				return fmt.Errorf("licence %q is lost", w)
			}
		}
		return nil
	case "name":
		got = []string{im.Records[0].Name}
	case "version":
		got = []string{im.Records[0].Input.Version}
	case "datePublished":
		got = []string{im.Records[0].Dates.Issued}
	case "conformsTo":
		got = []string{"http://mlcommons.org/croissant/" + im.Version}
	case "specVersion":
		got = []string{im.Version}
	case "base_model", "model_name_or_path", "dataset_name", "teacher_model_name_or_path":
		for _, rec := range im.Records {
			got = append(got, rec.Name)
		}
	case "stage", "rl":
		code := one
		if known, ok := llamaStages[one]; ok {
			code = known
		} else if known, ok := axolotlObjectives[one]; ok {
			code = known
		} else {
			code = "other"
		}
		one, got = code, []string{im.Objective}
	case "Creators":
		isText = true
		for _, c := range im.Records[0].Creators {
			got = append(got, c.Name)
		}
		one = leaves(want)[0]
	case "ai_useSensitivePersonalInformation":
		for _, rec := range im.Records {
			for _, d := range rec.Disclosures {
				if d.Tag == "sensitive_personal" && d.Basis == "structured" {
					got = append(got, map[string]string{"absent": "no", "present": "yes"}[d.State])
				}
			}
		}
	default:
		return nil
	}
	if !isText || !slices.Contains(got, one) {
		return fmt.Errorf("%s: got %q", fact, got)
	}
	return nil
}

func leaves(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			all = append(all, leaves(x)...)
		}
	case map[string]any:
		for _, x := range v {
			all = append(all, leaves(x)...)
		}
	}
	return all
}
