package screening

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A small pack that passes every gate, with its cases.
const (
	smallPack = `schema: weir/pack/v1   # comments and layout survive sealing
id: small
version: "1"
layer: ethics
title: Small
description: D
x-note: kept
terms:
  - {id: kids, title: Kids, description: D, severity: high, response: block, remedy: State it., over: [dataset],
     violated_if: {tag: {minors: present}}}
`
	smallCases = `schema: weir/cases/v1
pack: small
cases:
- name: bad
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: present, basis: structured}]}]}
  expect: {kids: violated}
- name: good
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: absent, basis: structured}]}]}
  expect: {kids: upheld}
complete:
- name: eight
  spec:
    disclosures: [{tag: minors, state: absent, basis: structured}]
    inputs: [{id: a, kind: dataset}, {id: b, kind: dataset}, {id: c, kind: dataset}, {id: d, kind: dataset},
      {id: e, kind: dataset}, {id: f, kind: dataset}, {id: g, kind: code}, {id: h, kind: tokenizer}]
`
)

func loadCases(t testing.TB, p *Pack, text string) *Cases {
	t.Helper()
	c, err := LoadCases("cases.yaml", []byte(text), p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ratified gives the texts of a bundle as ratification writes them.
func ratified(t testing.TB, pack, cases string) (sealed, report []byte) {
	t.Helper()
	p := loadPack(t, pack)
	b := Bundle{Pack: p, Cases: loadCases(t, p, cases)}
	r, err := b.Ratify(NewRegistry(), testFloor(t), testDay)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Ratified {
		t.Fatalf("not ratified: %v", r.FailureReasons)
	}
	if sealed, err = SealPack([]byte(pack), r.SHA256); err != nil {
		t.Fatal(err)
	}
	if report, err = MarshalReport(r); err != nil {
		t.Fatal(err)
	}
	return sealed, report
}

// inForce loads the three texts and asks whether they are in force. The first
// error tells that they do not even load.
func inForce(pack, cases, report []byte, floor *Pack) error {
	reg := NewRegistry()
	p, err := LoadPack("small.yaml", pack, reg)
	if err != nil {
		return err
	}
	c, err := LoadCases("small.cases.yaml", cases, p)
	if err != nil {
		return err
	}
	r, err := LoadReport("small.report.json", report)
	if err != nil {
		return err
	}
	return (&Bundle{Pack: p, Cases: c, Report: r}).InForce(reg, floor)
}

func TestRatifiedBundleIsInForce(t *testing.T) {
	t.Parallel()
	pack, report := ratified(t, smallPack, smallCases)
	if err := inForce(pack, []byte(smallCases), report, testFloor(t)); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(string(pack), smallPack) {
		t.Errorf("sealing changed the text: %s", pack)
	}
	again, err := SealPack(pack, Sum(nil).String())
	if err != nil || bytes.Count(again, []byte("mastery_report_sha256")) != 1 {
		t.Errorf("sealed again: %v\n%s", err, again)
	}
	var notInForce *NotInForceError
	if err := inForce(again, []byte(smallCases), report, testFloor(t)); !errors.As(err, &notInForce) || notInForce.Pack != "small" {
		t.Errorf("under the seal of another report: %v", err)
	}
	if err := inForce([]byte(smallPack), []byte(smallCases), report, testFloor(t)); err == nil {
		t.Error("in force without a seal")
	}
	otherReport := bytes.Replace(report, []byte(`"ratified": true`), []byte(`"ratified": false`), 1)
	if err := inForce(pack, []byte(smallCases), otherReport, testFloor(t)); err == nil {
		t.Error("in force with a report that says no")
	}
}

// TestAnyChangeEndsForce changes every character of pack, cases and report in
// several ways: what still means the same stays in force, everything else is not.
func TestAnyChangeEndsForce(t *testing.T) {
	t.Parallel()
	packText, reportText := ratified(t, smallPack, smallCases)
	floor, reg := testFloor(t), NewRegistry()
	pack := loadPack(t, string(packText))
	cases := loadCases(t, pack, smallCases)
	report, err := LoadReport("r", reportText)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		text []byte
		load func(text []byte) (*Bundle, error)
	}{
		{"pack", packText, func(text []byte) (*Bundle, error) {
			p, err := LoadPack("p", text, reg)
			return &Bundle{Pack: p, Cases: cases, Report: report}, err
		}},
		{"cases", []byte(smallCases), func(text []byte) (*Bundle, error) {
			c, err := LoadCases("c", text, pack)
			return &Bundle{Pack: pack, Cases: c, Report: report}, err
		}},
		{"report", reportText, func(text []byte) (*Bundle, error) {
			r, err := LoadReport("r", text)
			return &Bundle{Pack: pack, Cases: cases, Report: r}, err
		}},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			meaning := func(text []byte) string {
				d, err := parseDocument(part.name, "", text)
				if err != nil {
					return "nothing"
				}
				canonical, err := Canonical(d.json)
				if err != nil {
					t.Fatal(err)
				}
				return string(canonical)
			}
			meant, kept := meaning(part.text), 0
			for i := range part.text {
				for _, change := range []func([]byte) []byte{
					func(b []byte) []byte { b[i] ^= 1; return b },
					func(b []byte) []byte { b[i] ^= 0x20; return b },
					func(b []byte) []byte { b[i] = '0' + (b[i]+1)%10; return b },
					func(b []byte) []byte { return append(b[:i], b[i+1:]...) },
					func(b []byte) []byte { return append(b[:i], append([]byte{b[i]}, b[i:]...)...) },
				} {
					changed := change(bytes.Clone(part.text))
					same := meaning(changed) == meant
					if same {
						if kept++; kept%50 != 1 { // each of these runs the gates
							continue
						}
					}
					b, err := part.load(changed)
					if err == nil {
						err = b.InForce(reg, floor)
					}
					if same != (err == nil) {
						t.Fatalf("means the same: %t, in force: %v\n%s", same, err, changed)
					}
				}
			}
			if kept == 0 {
				t.Error("no change of layout was tried")
			}
		})
	}
}

// TestResealing: who changes pack or cases and repairs the digests still fails on the gates.
func TestResealing(t *testing.T) {
	t.Parallel()
	p := loadPack(t, smallPack)
	c := loadCases(t, p, smallCases)
	b := Bundle{Pack: p, Cases: c}
	r, err := b.Ratify(NewRegistry(), testFloor(t), testDay)
	if err != nil {
		t.Fatal(err)
	}
	wrong := loadCases(t, p, strings.Replace(smallCases, "expect: {kids: upheld}", "expect: {kids: violated}", 1))
	r.CasesSHA256, r.SHA256 = wrong.SHA256, ""
	raw, err := MarshalReport(r)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := reportSeal(raw)
	if err != nil {
		t.Fatal(err)
	}
	r.SHA256 = seal.String()
	if raw, err = MarshalReport(r); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadReport("r", raw)
	if err != nil {
		t.Fatal(err)
	}
	p.Seal = r.SHA256
	err = (&Bundle{Pack: p, Cases: wrong, Report: loaded}).InForce(NewRegistry(), testFloor(t))
	var no *NotInForceError
	if !errors.As(err, &no) || len(no.Reasons) != 1 || !strings.Contains(no.Reasons[0], "gates give other values") {
		t.Errorf("got %v", err)
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	const good = "pass"
	for _, tt := range []struct {
		name        string
		pack, cases func(string) string
		gate, want  string
	}{
		{"all pass", nil, nil, "", good},
		{"a case is wrong", nil, replace("expect: {kids: upheld}", "expect: {kids: violated}"), "cases", `case "good": kids is upheld, expected violated`},
		{"no case violates", nil, replace("expect: {kids: violated}", "expect: {kids: not_checkable}"), "coverage", "0 of 1 checkable terms"},
		{"a promise without a check", replace("violated_if: {tag: {minors: present}}", "structural: elsewhere"), nil, "vacuous", "1 terms act without a predicate: kids"},
		{"a complete case is not admitted", nil, replace("{tag: minors, state: absent, basis: structured}]\n    inputs", "{tag: minors, state: unknown, basis: structured}]\n    inputs"), "complete", "0 of 1 complete cases are admitted: eight"},
		{"no complete case", nil, func(s string) string { return s[:strings.Index(s, "complete:")] }, "complete", "no complete case"},
		{"a statement that is not required", replace("response: block", "response: escalate, unchecked: observe"), nil, "required", "eight without /disclosures/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			packText, casesText := smallPack, smallCases
			if tt.pack != nil {
				packText = tt.pack(packText)
			}
			if tt.cases != nil {
				casesText = tt.cases(casesText)
			}
			p := loadPack(t, packText)
			r, err := (&Bundle{Pack: p, Cases: loadCases(t, p, casesText)}).Ratify(NewRegistry(), testFloor(t), testDay)
			if err != nil {
				t.Fatal(err)
			}
			if r.Ratified != (tt.want == good) || r.Ratified != (len(r.FailureReasons) == 0) {
				t.Errorf("ratified %t: %v", r.Ratified, r.FailureReasons)
			}
			for _, g := range r.Gates {
				if g.Name == tt.gate && (g.Passed || !strings.Contains(g.Detail, tt.want)) {
					t.Errorf("got %+v, want %q", g, tt.want)
				}
			}
		})
	}
}

func replace(old, with string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			panic("the text lacks " + old)
		}
		return strings.Replace(s, old, with, 1)
	}
}

// TestAlwaysOpenTermDoesNotMakeEverythingRequired: a term that a complete case
// leaves open anyway says nothing about the statement that was taken out.
func TestAlwaysOpenTermDoesNotMakeEverythingRequired(t *testing.T) {
	t.Parallel()
	packText := smallPack + `  - {id: counts, title: T, description: D, severity: low, response: escalate, unchecked: observe, remedy: R, violated_if: {fact: objective.markets, has: XX}}
`
	casesText := strings.Replace(smallCases, "complete:", `- {name: x, spec: {objective: {kind: sft, markets: [XX]}}, expect: {counts: violated}}
- {name: y, spec: {objective: {kind: sft, markets: [DE]}}, expect: {counts: upheld}}
complete:`, 1)
	p := loadPack(t, packText)
	r, err := (&Bundle{Pack: p, Cases: loadCases(t, p, casesText)}).Ratify(NewRegistry(), testFloor(t), testDay)
	if err != nil || !r.Ratified {
		t.Errorf("%v %v", err, r.FailureReasons)
	}
}

func TestSealPack(t *testing.T) {
	t.Parallel()
	seal := strings.Repeat("ab", 32)
	for _, tt := range []struct{ name, in, want string }{
		{"YAML without", "id: a\n", "id: a\nmastery_report_sha256: \"" + seal + "\"\n"},
		{"YAML without a last line end", "id: a", "id: a\nmastery_report_sha256: \"" + seal + "\"\n"},
		{"YAML with", "mastery_report_sha256: \"\"  # set by weir\nid: a\n", "mastery_report_sha256: \"" + seal + "\"\nid: a\n"},
		{"YAML with line ends of Windows", "mastery_report_sha256: x\r\nid: a\r\n", "mastery_report_sha256: \"" + seal + "\"\nid: a\r\n"},
		{"JSON", `{"id":"a", "mastery_report_sha256" : "" }`, `{"id":"a", "mastery_report_sha256" : "` + seal + `" }`},
		{"JSON without", `{"id":"a"}`, ""},
		{"JSON with null", `{"id":"a","mastery_report_sha256":null}`, ""},
		{"JSON with one more below", `{"id":"a","x-old":{"mastery_report_sha256":"x"},"mastery_report_sha256":""}`, ""},
		{"YAML with a quoted key", "\"mastery_report_sha256\": x\nid: a\n", ""},
		{"YAML with a folded value", "mastery_report_sha256: >-\n  x\nid: a\n", ""},
		{"YAML in the middle of a text", "id: |\n  a\n  mastery_report_sha256: x\n", "id: |\n  a\n  mastery_report_sha256: x\nmastery_report_sha256: \"" + seal + "\"\n"},
		{"not a document", "id: [", ""},
	} {
		got, err := SealPack([]byte(tt.in), seal)
		if (err == nil) != (tt.want != "") || string(got) != tt.want {
			t.Errorf("%s: got %q %v", tt.name, got, err)
		}
	}
}

func TestReportSeal(t *testing.T) {
	t.Parallel()
	// sorted keys, no spaces, non-ASCII kept, report_sha256 emptied
	const canonical = `{"a":"ü<>&\u0001","report_sha256":"","z":[1,{"b":true,"c":null}]}`
	got, err := reportSeal([]byte(`{ "z": [1, {"c": null, "b": true}], "report_sha256": "x", "a": "\u00fc<>&\u0001" }`))
	if err != nil || got != Sum([]byte(canonical)) {
		t.Errorf("got %s %v", got, err)
	}
	for _, bad := range []string{`{"a":1.0}`, `{"a":[{"b":1e2}]}`, `{"a":-0.5}`, `[]`, `{`} {
		if _, err := reportSeal([]byte(bad)); err == nil {
			t.Errorf("%s was sealed", bad)
		}
	}
}

func TestLoadReportRefuses(t *testing.T) {
	t.Parallel()
	_, report := ratified(t, smallPack, smallCases)
	for old, tt := range map[string]struct{ with, want string }{
		`"schema": "weir/report/v1"`: {`"schema": "x"`, `line 2: /schema: must be "weir/report/v1"`},
		`"as_of": "2026-11-30"`:      {`"as_of": "30.11.2026"`, "/as_of: must be a day"},
		`"pack_sha256": "`:           {`"pack_sha256": "zz`, "/pack_sha256: must be a SHA-256 digest"},
		`"ratified": true`:           {`"ratified": "true"`, "/ratified: has the wrong type: found text, expected true or false"},
		`"measured": 3`:              {`"measured": "3"`, "expected a whole number"},
		`"gates"`:                    {`"Gates"`, "/Gates: is not a known key"},
	} {
		_, err := LoadReport("r.json", bytes.Replace(report, []byte(old), []byte(tt.with), 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.with, err, tt.want)
		}
	}
}

func TestInForceNeedsAll(t *testing.T) {
	t.Parallel()
	p := loadPack(t, smallPack)
	c := loadCases(t, p, smallCases)
	for _, tt := range []struct {
		in   Bundle
		want string
	}{
		{Bundle{Pack: p}, "it has no ratification report"},
		{Bundle{Pack: p, Cases: c}, "it has no ratification report"},
		{Bundle{Pack: p, Report: &Report{}}, "it has no cases"},
	} {
		var no *NotInForceError
		if err := tt.in.InForce(NewRegistry(), testFloor(t)); !errors.As(err, &no) || cmp.Diff([]string{tt.want}, no.Reasons) != "" {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	if _, err := (&Bundle{Pack: p}).Ratify(NewRegistry(), testFloor(t), testDay); err == nil {
		t.Error("ratified without cases")
	}
}

// A report that says "ratified" over a failed gate, sealed correctly, is still
// not a pack in force.
func TestForgedReportIsNotInForce(t *testing.T) {
	t.Parallel()
	const cases = "schema: weir/cases/v1\npack: pledge\ncases: [{name: a, spec: {objective: {kind: dpo}}, expect: {tuned: violated}}]\n" // nothing upholds it
	pack := packText("pledge", Ethics, termText("tuned", Observe, "violated_if: {fact: objective.kind, has: dpo}"))
	p := loadPack(t, pack)
	b := Bundle{Pack: p, Cases: loadCases(t, p, cases)}
	r, err := b.Ratify(NewRegistry(), testFloor(t), testDay)
	if err != nil || r.Ratified {
		t.Fatalf("the test needs a pack that fails a gate: %v, %v", r, err)
	}
	forge := func(change func(*Report)) error {
		forged := *r
		forged.Gates = append([]Gate{}, r.Gates...)
		forged.Ratified, forged.SHA256 = true, ""
		change(&forged)
		raw, err := MarshalReport(&forged)
		if err != nil {
			t.Fatal(err)
		}
		seal, err := reportSeal(raw)
		if err != nil {
			t.Fatal(err)
		}
		forged.SHA256 = seal.String()
		if raw, err = MarshalReport(&forged); err != nil {
			t.Fatal(err)
		}
		sealed, err := SealPack([]byte(pack), forged.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		return inForce(sealed, []byte(cases), raw, testFloor(t))
	}
	for name, change := range map[string]func(*Report){
		"only the word":      func(*Report) {},
		"and no reasons":     func(r *Report) { r.FailureReasons = []string{} },
		"and no failed gate": func(r *Report) { r.FailureReasons = []string{}; r.Gates = nil },
		"and every gate green": func(r *Report) {
			r.FailureReasons = []string{}
			for i := range r.Gates {
				r.Gates[i].Passed = true
			}
		},
		"a failed regression": func(r *Report) { r.FailureReasons = []string{}; r.Gates[len(r.Gates)-1].Passed = false },
	} {
		if forge(change) == nil {
			t.Errorf("%s: in force", name)
		}
	}
}
