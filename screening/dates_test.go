package screening

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func decideOn(t *testing.T, v *Vocabulary, p *ParsedSpec, day Day) *Decision {
	t.Helper()
	d, err := Classify(p, v, day)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := Decide(p, v, day)
	if err != nil || outcome != d.Outcome {
		t.Errorf("%s: Decide says %s (%v), Classify %s", day, outcome, err, d.Outcome)
	}
	return d
}

// TestDates: a term counts from its effective_from until the day before its sunset.
func TestDates(t *testing.T) {
	t.Parallel()
	always := termText("always", Escalate, "violated_if: {fact: base_model.stated, has: \"yes\"}")
	for _, tt := range []struct {
		dates   string
		day     Day
		want    OutOfForce
		outcome Outcome
	}{
		{"", "2026-11-30", "", OutcomeBlock},
		{", effective_from: 2026-12-01", "2026-11-30", NotYet, OutcomeAdmit},
		{", effective_from: 2026-12-01", "2026-12-01", "", OutcomeBlock},
		{", effective_from: 2026-12-01", "9999-12-31", "", OutcomeBlock},
		{", sunset: 2026-12-01", "0000-01-01", "", OutcomeBlock},
		{", sunset: 2026-12-01", "2026-11-30", "", OutcomeBlock},
		{", sunset: 2026-12-01", "2026-12-01", NoLonger, OutcomeAdmit},
		{", sunset: 2026-12-01", "2027-01-01", NoLonger, OutcomeAdmit},
		{", effective_from: 2026-12-01, sunset: 2026-12-02", "2026-11-30", NotYet, OutcomeAdmit},
		{", effective_from: 2026-12-01, sunset: 2026-12-02", "2026-12-01", "", OutcomeBlock},
		{", effective_from: 2026-12-01, sunset: 2026-12-02", "2026-12-02", NoLonger, OutcomeAdmit},
		{", effective_from: 2026-12-01, sunset: 2026-12-02", "", "", OutcomeBlock}, // no day is no reason to pass
	} {
		v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, always, termText("x", Block, isSFT+tt.dates)))
		d := decideOn(t, v, parseSpec(t, ""), tt.day)
		f, _ := d.Finding("ethics:x")
		verdict := d.Ethics[0]
		if d.Outcome != tt.outcome || f.OutOfForce != tt.want || f.State != Violated {
			t.Errorf("%q on %q: %s, %+v", tt.dates, tt.day, d.Outcome, f)
		}
		in := tt.want == ""
		if verdict.Upheld == in || slices.Contains(verdict.Violated, "x") != in || verdict.RuntimeCheckable != map[bool]int{true: 2, false: 1}[in] || (len(d.Effects()) == 1) != in {
			t.Errorf("%q on %q: verdict %+v, effects %v", tt.dates, tt.day, verdict, d.Effects())
		}
		if said := strings.HasPrefix(f.Reason, "not in force "); said == in || !in && !strings.Contains(f.Reason, "2026-12-0") {
			t.Errorf("%q on %q: reason %q", tt.dates, tt.day, f.Reason)
		}
	}
}

// TestOutOfForceIsNoPolicy: what is not in force does not stand for having checked anything.
func TestOutOfForceIsNoPolicy(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, termText("x", Block, isSFT+", effective_from: 2026-12-01")))
	clean := parseSpec(t, "objective: {kind: dpo}")
	if d := decideOn(t, v, clean, "2026-11-30"); d.Outcome != OutcomeEscalate || !d.NoPolicyMatched {
		t.Errorf("before: %s, no_policy_matched %t", d.Outcome, d.NoPolicyMatched)
	}
	if d := decideOn(t, v, clean, "2026-12-01"); d.Outcome != OutcomeAdmit || d.NoPolicyMatched {
		t.Errorf("from the day: %s, no_policy_matched %t", d.Outcome, d.NoPolicyMatched)
	}
}

// TestDatedHedgeNeedsAStatement only while it is in force.
func TestDatedHedgeNeedsAStatement(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t,
		termText("always", Escalate, isSFT), termText("h", Hedge, isSFT+", effective_from: 2026-12-01, sunset: 2027-01-01")))
	blank := parseSpec(t, `disclosure_statement: " "`)
	for day, refused := range map[Day]bool{"2026-11-30": false, "2026-12-01": true, "2026-12-31": true, "2027-01-01": false} {
		_, err := Classify(blank, v, day)
		_, err2 := Decide(blank, v, day)
		if (err != nil) != refused || (err2 != nil) != refused {
			t.Errorf("%s: %v, %v", day, err, err2)
		}
	}
}

// TestRaiseKeepsTheDates: a profile cannot put a term in force earlier or longer.
func TestRaiseKeepsTheDates(t *testing.T) {
	t.Parallel()
	base := ethicsPack(t, termText("always", Escalate, "violated_if: {fact: base_model.stated, has: \"yes\"}"), termText("x", Observe, isSFT+", effective_from: 2026-12-01, sunset: 2026-12-02"))
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), base, profile(t, "house", base, "{term: x, response: block}"))
	for day, want := range map[Day]Outcome{"2026-11-30": OutcomeAdmit, "2026-12-01": OutcomeBlock, "2026-12-02": OutcomeAdmit} {
		if d := decideOn(t, v, parseSpec(t, ""), day); d.Outcome != want {
			t.Errorf("%s: %s, want %s", day, d.Outcome, want)
		}
	}
}

// TestGatesSeeEveryTerm: the gates hold a term to its cases on any day, also
// while it is not in force, and give the same values on every day.
func TestGatesSeeEveryTerm(t *testing.T) {
	t.Parallel()
	dated := strings.Replace(smallPack, "response: block,", "response: block, effective_from: 2027-01-01, sunset: 2028-01-01,", 1)
	wrong := strings.Replace(smallCases, "expect: {kids: upheld}", "expect: {kids: violated}", 1)
	strict := strings.Replace(smallCases, "{tag: minors, state: absent, basis: structured}]\n    inputs", "{tag: minors, state: present, basis: structured}]\n    inputs", 1)
	var first []Gate
	for _, day := range []Day{"2026-12-31", "2027-01-01", "2028-01-01"} {
		p := loadPack(t, dated)
		for cases, want := range map[string]string{smallCases: "", wrong: "cases", strict: "complete"} {
			r, err := (&Bundle{Pack: p, Cases: loadCases(t, p, cases)}).Ratify(NewRegistry(), testFloor(t), day)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.FailureReasons, "; "); r.Ratified != (want == "") || !strings.HasPrefix(got, want) {
				t.Errorf("%s: want %q to fail, got %q", day, want, got)
			}
			if cases == smallCases {
				if first == nil {
					first = r.Gates
				}
				if diff := cmp.Diff(first, r.Gates); diff != "" {
					t.Errorf("%s: other values than on the first day\n%s", day, diff)
				}
			}
		}
	}
}

// TestOutOfForceIsAsIfAbsent: a term that is not in force decides as if it were
// not in the pack, whatever it is and whatever the spec says.
func TestOutOfForceIsAsIfAbsent(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		var in, all []string
		for i := range rapid.IntRange(1, 4).Draw(t, "terms") {
			text := drawTerm(t, fmt.Sprintf("t%d", i), Observe, Hedge, Escalate, Block)
			all = append(all, text)
			if i == 0 || rapid.Bool().Draw(t, "in force") {
				in = append(in, text)
				continue
			}
			dates := rapid.SampledFrom([]string{"effective_from: 2026-12-01", "sunset: 2026-11-30", "effective_from: 2026-01-01, sunset: 2026-11-01"}).Draw(t, "dates")
			all[i] = strings.Replace(text, "}\n", ", "+dates+"}\n", 1)
		}
		load := func(terms []string) *Pack {
			p, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, terms...)), NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		doc := specJSON(t, drawSpec(t))
		want, got := decide(t, []*Pack{floor, load(in)}, doc), decide(t, []*Pack{floor, load(all)}, doc)
		for _, d := range []*Decision{want, got} {
			d.Packs, d.Ethics[0].Findings, d.effects = nil, nil, nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Decision{}), cmp.Comparer(func(a, b Finding) bool { return a.State == b.State })); diff != "" {
			t.Fatalf("(-without +not in force)\n%s", diff)
		}
	})
}

// TestDatesThatAreNone: a date is a day or is left out.
func TestDatesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"effective_from", "sunset"} {
		for _, value := range []string{"null", "~", `""`, `"0000-01-01"`, "2026-13-01", "20261201", "[]"} {
			text := strings.Replace(smallPack, "response: block,", "response: block, "+key+": "+value+",", 1)
			_, err := LoadPack("p.yaml", []byte(text), NewRegistry())
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Problems[0].Pointer, "/"+key) || !strings.Contains(err.Error(), "must be a day") {
				t.Errorf("%s: %s: %v", key, value, err)
			}
		}
	}
}
