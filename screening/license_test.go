package screening

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// reading shows a licence as the facts see it: status, then restrictions, "+" if there may be more.
func reading(l License) string {
	s := &Spec{Inputs: []Input{{License: l}}}
	status, restrictions := licenseStatusFact(s, 0), licenseRestrictionsFact(s, 0)
	if !status.stated {
		return "not stated"
	}
	got := strings.Join(status.codes.names(licenseStatuses), ",") + " " + strings.Join(restrictions.codes.names(restrictionCodes), ",")
	if restrictions.unknown {
		got += "+"
	}
	return strings.TrimSpace(got)
}

func TestLicenseExpressions(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"MIT": "identified", "mit": "identified", " MIT ": "identified", "apache-2.0": "identified", "Apache-2.0+": "identified",
		"CC-BY-4.0": "identified", "cc-by-nc-4.0": "identified nc", "CC-BY-NC-ND-3.0": "identified nc,nd", "CC-BY-NC-SA-2.0-FR": "identified nc,sa",
		"GPL-3.0-only": "identified sa", "GPL-2.0-or-later": "identified sa", "GPL-2.0+": "identified sa", "GPL-2.0": "identified sa",
		"ODbL-1.0": "identified sa",
		// WITH
		"GPL-3.0-only WITH GCC-exception-3.1": "identified sa", "gpl-3.0-only with gcc-exception-3.1": "identified sa",
		"Apache-2.0 WITH LLVM-exception": "identified", "GPL-3.0-only WITH Nonsense": "unidentified sa+", "MIT WITH restrictions": "unidentified +",
		"MIT OR GPL-2.0-only WITH Classpath-exception-2.0": "identified",
		// OR = any
		"MIT OR GPL-3.0-only": "identified", "GPL-3.0-only or MIT": "identified", "CC-BY-NC-4.0 OR CC-BY-NC-SA-4.0": "identified nc",
		"MIT OR LicenseRef-house": "identified", "LicenseRef-a OR LicenseRef-b": "unidentified +",
		"CC-BY-NC-4.0 OR CC-BY-SA-4.0": "identified +", // which one was taken?
		// AND = all
		"MIT AND Apache-2.0": "identified", "MIT AND CC-BY-NC-4.0": "identified nc", "CC-BY-NC-4.0 AND GPL-3.0-only": "identified nc,sa",
		"MIT AND LicenseRef-house": "unidentified +",
		// precedence and brackets
		"MIT AND CC-BY-NC-4.0 OR Apache-2.0": "identified", "MIT AND (CC-BY-NC-4.0 OR Apache-2.0)": "identified",
		"(MIT OR CC-BY-NC-4.0) AND CC-BY-SA-4.0": "identified sa", "((MIT))": "identified",
		"Apache-2.0 OR BSL-1.0": "identified", "(MIT OR LicenseRef-x) AND (LicenseRef-y OR ISC)": "identified",
		// not expressions
		"MIT OR": "unidentified +", "OR MIT": "unidentified +", "MIT Apache-2.0": "unidentified +", "(MIT": "unidentified +", "MIT)": "unidentified +",
		"MIT WITH": "unidentified +", "()": "unidentified +", "AND": "unidentified +", "MIT,Apache-2.0": "unidentified +", "MIT/Apache-2.0": "unidentified +",
		// placeholders and words that are none
		"unknown": "unidentified +", "NOASSERTION": "unidentified +", "noAssertion": "unidentified +", "other": "unidentified +", "None": "unidentified +",
		"TBD-on-acceptance": "unidentified +", "TODO: ask legal": "unidentified +", "<your-license>": "unidentified +", "custom": "unidentified +",
		"This is a license.": "unidentified +", "": "unidentified +", " ": "unidentified +", "\u200b": "unidentified +", "proprietary": "unidentified +",
		"LicenseRef-house": "unidentified +", "CC-BY-5.0": "unidentified +", "CC-BY-NC-BOGUS": "unidentified +", "GPL-9.9": "unidentified +",
		"SSPL-1.0": "unidentified +", "BUSL-1.1": "unidentified +", "OpenAI": "unidentified use_based,no_outputs+", "Public": "unidentified +",
		"LicenseRef-MIT": "unidentified +", "DocumentRef-a:LicenseRef-gemma": "unidentified +", "all rights reserved": "unidentified +", "cc": "unidentified +",
		"МIT": "unidentified +", // a Cyrillic М
		// words and addresses of sources
		"MIT License": "identified", "Apache License 2.0": "identified", "CC BY 4.0": "identified", "CC BY-NC 4.0": "identified nc", "cc  by-sa 4.0": "identified sa",
		"cc0-1.0": "identified", "cc0": "identified", "odc-by": "identified", "gpl-3.0": "identified sa",
		"https://choosealicense.com/licenses/mit/": "identified", "https://choosealicense.com/licenses/cc-by-sa-4.0/": "identified sa",
		"https://choosealicense.com/licenses/odc-by/": "identified", "https://choosealicense.com/licenses/undefined/": "unidentified +",
		"https://creativecommons.org/licenses/by-nc/4.0/": "identified nc", "http://creativecommons.org/licenses/by/3.0/deed.de": "identified",
		"https://www.creativecommons.org/licenses/by-sa/4.0/legalcode": "identified sa", "http://creativecommons.org/publicdomain/zero/1.0": "identified",
		"https://creativecommons.org/publicdomain/zero/1.0/": "identified", "https://spdx.org/licenses/MIT.html": "identified",
		"https://opensource.org/licenses/MIT": "identified", "https://opensource.org/license/mit/": "identified",
		"http://www.apache.org/licenses/LICENSE-2.0": "identified", "https://evil.example/?u=https://choosealicense.com/licenses/mit/": "unidentified +",
		"https://physionet.org/content/hyg-dataset/1.0.0/LICENSE.txt": "unidentified +", "https://commoncrawl.org/terms-of-use": "unidentified +",
	} {
		if got := reading(License{Declared: []DeclaredLicense{{Raw: expr}}}); got != want {
			t.Errorf("raw %q: got %q, want %q", expr, got, want)
		}
		if got := reading(License{Declared: []DeclaredLicense{{SPDX: expr, Raw: "TBD", URL: "unknown"}}}); got != want {
			t.Errorf("spdx %q: got %q, want %q", expr, got, want)
		}
	}
}

func TestLicenseStatements(t *testing.T) {
	t.Parallel()
	declared := func(texts ...string) (out []DeclaredLicense) {
		for _, x := range texts {
			out = append(out, DeclaredLicense{Raw: x})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		in   License
		want string
	}{
		{"nothing", License{}, "not stated"},
		{"copyright alone is no licence", License{Copyright: "2026 Ana"}, "not stated"},
		{"one that says nothing", License{Declared: []DeclaredLicense{{}}}, "unidentified +"},
		{"several hold together", License{Declared: declared("MIT", "CC-BY-NC-4.0", "GPL-3.0-only")}, "identified nc,sa"},
		{"one of several is not understood", License{Declared: declared("CC-BY-NC-4.0", "other")}, "unidentified nc+"},
		{"restrictions alone", License{Restrictions: []string{"research_only", "nc"}}, "unidentified nc,research_only+"},
		{"restrictions add", License{Declared: declared("CC-BY-SA-4.0"), Restrictions: []string{"no_ml"}}, "identified sa,no_ml"},
		{"restriction not known", License{Declared: declared("MIT"), Restrictions: []string{"unknown"}}, "identified unknown+"},
		{"concluded settles what cannot be read", License{Declared: declared("see LICENSE file"), Concluded: "MIT"}, "identified"},
		{"concluded settles a choice", License{Declared: declared("CC-BY-NC-4.0 OR CC-BY-SA-4.0"), Concluded: "CC-BY-SA-4.0"}, "identified sa"},
		{"concluded takes nothing away", License{Declared: declared("CC-BY-NC-4.0"), Concluded: "MIT"}, "identified nc"},
		{"concluded alone", License{Concluded: "CC-BY-NC-4.0"}, "identified nc"},
		{"concluded is a choice", License{Declared: declared("MIT"), Concluded: "CC-BY-NC-4.0 OR CC-BY-SA-4.0"}, "identified +"},
		{"concluded is not understood", License{Declared: declared("MIT"), Concluded: "LicenseRef-contract"}, "unidentified +"},
		{"concluded is a placeholder", License{Declared: declared("MIT"), Concluded: "NOASSERTION"}, "identified"},
		{"only concluded, a placeholder", License{Concluded: "NOASSERTION"}, "unidentified +"},
		{"spdx and raw agree", License{Declared: []DeclaredLicense{{Raw: "CC BY-NC 4.0", SPDX: "CC-BY-NC-4.0"}}}, "identified nc"},
		{"spdx contradicts raw", License{Declared: []DeclaredLicense{{Raw: "MIT", SPDX: "CC-BY-NC-4.0"}}}, "unidentified nc+"},
		{"raw contradicts spdx", License{Declared: []DeclaredLicense{{Raw: "CC BY-NC 4.0", SPDX: "MIT"}}}, "unidentified nc+"},
		{"the address contradicts spdx", License{Declared: []DeclaredLicense{{URL: "https://creativecommons.org/licenses/by-nc/4.0/", SPDX: "MIT"}}}, "unidentified nc+"},
		{"a contradiction concluded", License{Declared: []DeclaredLicense{{Raw: "CC BY-NC 4.0", SPDX: "MIT"}}, Concluded: "MIT"}, "identified nc"},
		{"an unknown part hides nothing", License{Declared: declared("CC-BY-NC-4.0 AND LicenseRef-foo"), Concluded: "Apache-2.0"}, "identified nc"},
		{"an unknown exception hides nothing", License{Declared: declared("CC-BY-NC-4.0 WITH foo"), Concluded: "MIT"}, "identified nc"},
		{"an unknown choice asks nothing", License{Declared: declared("CC-BY-NC-4.0 OR LicenseRef-foo"), Concluded: "MIT"}, "identified nc"},
		{"one part is not the whole", License{Declared: []DeclaredLicense{{SPDX: "MIT", Scope: "10 of 10,000 files"}}}, "unidentified +"},
		{"a part and the rest are", License{Declared: []DeclaredLicense{{SPDX: "MIT", Scope: "code"}, {SPDX: "CC-BY-SA-4.0"}}}, "identified sa"},
		{"parts that somebody concluded are", License{Declared: []DeclaredLicense{{SPDX: "MIT", Scope: "code"}, {SPDX: "CC-BY-SA-4.0", Scope: "text"}}, Concluded: "MIT AND CC-BY-SA-4.0"}, "identified sa"},
		{"spdx that cannot be read hides nothing of raw", License{Declared: []DeclaredLicense{{Raw: "CC BY-NC 4.0", SPDX: "my licence"}}}, "unidentified nc+"},
		{"concluded outside the choice", License{Declared: declared("CC-BY-NC-4.0 OR CC-BY-SA-4.0"), Concluded: "MIT"}, "unidentified +"},
		{"concluded outside one of two choices", License{Declared: declared("CC-BY-NC-4.0 OR CC-BY-SA-4.0", "CC-BY-ND-4.0 OR GPL-3.0-only"), Concluded: "CC-BY-NC-4.0"}, "unidentified nc+"},
		{"concluded of two choices", License{Declared: declared("CC-BY-NC-4.0 OR CC-BY-SA-4.0", "CC-BY-ND-4.0 OR GPL-3.0-only"), Concluded: "CC-BY-NC-4.0 AND CC-BY-ND-4.0"}, "identified nc,nd"},
		{"concluded outside a choice with a part that cannot be read", License{Declared: declared("(CC-BY-NC-4.0 OR CC-BY-SA-4.0) AND LicenseRef-foo"), Concluded: "MIT"}, "unidentified +"},
		{"concluded outside a choice, beside words that cannot be read", License{Declared: []DeclaredLicense{{Raw: "ask us", SPDX: "CC-BY-NC-4.0 OR CC-BY-SA-4.0"}}, Concluded: "MIT"}, "unidentified +"},
		{"concluded in a way that is not understood", License{Declared: declared("MIT OR LicenseRef-foo"), Concluded: "LicenseRef-foo"}, "unidentified +"},
		{"placeholder in spdx, raw stands", License{Declared: []DeclaredLicense{{Raw: "CC BY 4.0", SPDX: "NOASSERTION"}}}, "identified"},
		{"only the address", License{Declared: []DeclaredLicense{{Raw: "other", URL: "https://choosealicense.com/licenses/mit/"}}}, "identified"},
		{"spdx nonsense is not covered by raw", License{Declared: []DeclaredLicense{{Raw: "MIT", SPDX: "my licence"}}}, "unidentified +"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := reading(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLicensePointsToWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	f := newFacts(&Spec{Inputs: []Input{{}, {License: License{Declared: []DeclaredLicense{{Raw: "MIT"}, {Raw: "house rules"}, {Raw: "other"}}}}}}, nil)
	col, _ := resolveFact("license.status", false)
	if at := f.pointer(col, 1); at != "/inputs/1/license/declared/1" {
		t.Errorf("got %s", at)
	}
}

// TestHostileExpressions: OR within AND multiplies out; nothing here may.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	for name, expr := range map[string]string{
		"alternatives":    strings.TrimSuffix(strings.Repeat("(MIT OR ISC) AND ", 58), " AND "),
		"different sets":  strings.TrimSuffix(strings.Repeat("(CC-BY-NC-4.0 OR GPL-2.0) AND ", 33), " AND "),
		"nested":          strings.Repeat("(MIT OR (", 90) + "ISC" + strings.Repeat("))", 90),
		"brackets":        strings.Repeat("(", 510) + "MIT" + strings.Repeat(")", 510),
		"open brackets":   strings.Repeat("(", 1024),
		"operators":       strings.Repeat("OR ", 340),
		"too long":        strings.Repeat("MIT OR ", 147) + "MIT",
		"much too long":   strings.Repeat("MIT OR ", 9000) + "MIT",
		"one long word":   strings.Repeat("M", 60_000),
		"only separators": strings.Repeat(" ", 60_000),
	} {
		start := time.Now()
		got := reading(License{Declared: []DeclaredLicense{{SPDX: expr}}})
		if took := time.Since(start); took > soon {
			t.Errorf("%s: took %s", name, took)
		}
		if len(expr) > maxExpressionBytes && got != "unidentified +" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := reading(License{Declared: []DeclaredLicense{{SPDX: strings.Repeat("(MIT OR ISC) AND ", 20) + "MIT"}}}); got != "identified" {
		t.Errorf("got %s", got)
	}
}

// TestBranchesAgreeWithTruth compares the branches of random expressions with
// the plain definition, restriction by restriction.
func TestBranchesAgreeWithTruth(t *testing.T) {
	t.Parallel()
	leaves := map[string]branches{}
	for _, id := range []string{"MIT", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0", "GPL-3.0-only", "LicenseRef-x"} {
		leaves[id] = readExpression(id)
	}
	type node struct {
		text  string
		avoid func(restrictionSet) bool // can be complied with without any of these
	}
	var level []node
	for id, b := range leaves {
		level = append(level, node{id, func(r restrictionSet) bool { return len(b) == 1 && b[0]&r == 0 }})
	}
	for range 2 {
		var next []node
		for i, a := range level {
			for j, b := range level {
				if (i*7+j*3)%len(level) > 5 {
					continue
				}
				next = append(next,
					node{"(" + a.text + " OR " + b.text + ")", func(r restrictionSet) bool { return a.avoid(r) || b.avoid(r) }},
					node{"(" + a.text + " AND " + b.text + ")", func(r restrictionSet) bool { return a.avoid(r) && b.avoid(r) }})
			}
		}
		level = next
	}
	for _, n := range level {
		b := readExpression(n.text)
		for r := range restrictionSet(8) {
			got := false
			for _, way := range b {
				got = got || way&r == 0
			}
			if got != n.avoid(r) {
				t.Fatalf("%s without %s: got %t", n.text, fmt.Sprint(codeSet(r).names(restrictionCodes)), got)
			}
		}
	}
}

// TestStatementsOfALicenseHaveToAgree: an id, words and an address of which one
// cannot be read name no licence, in whichever of them what is read stands; a
// person's conclusion settles it and takes nothing away.
func TestStatementsOfALicenseHaveToAgree(t *testing.T) {
	t.Parallel()
	unread := []string{"Non-commercial use only; no AI training; ask us first", "proprietary", "all rights reserved", "see LICENSE", "https://vendor.example/eula",
		"https://example.org/terms", "LicenseRef-house", "MIT but ask us", "no AI training"}
	put := func(where int, entry DeclaredLicense, text string) DeclaredLicense {
		*[]*string{&entry.SPDX, &entry.Raw, &entry.URL}[where] = text
		return entry
	}
	for id, want := range map[string]string{"CC0-1.0": "", "MIT": "", "CC-BY-NC-4.0": "nc", "GPL-3.0-only": "sa", "MIT OR CC-BY-NC-4.0": ""} {
		for at := range 3 {
			for other := range 3 {
				for _, words := range unread {
					entry := put(other, put(at, DeclaredLicense{}, id), words)
					if at == other {
						continue
					}
					got := reading(License{Declared: []DeclaredLicense{entry}})
					if !strings.HasPrefix(got, "unidentified") || !strings.HasSuffix(got, "+") || !strings.Contains(got, want) {
						t.Errorf("%+v: got %q", entry, got)
					}
					if got := reading(License{Declared: []DeclaredLicense{entry}, Concluded: "MIT"}); words != "no AI training" && strings.TrimSpace("identified "+want) != got {
						t.Errorf("%+v, concluded: got %q", entry, got)
					}
				}
			}
		}
	}
}

// TestConclusionStaysWithinTheChoice: what a licence comes to, when that is
// settled, complies with one way of whatever could be read of every declaration.
func TestConclusionStaysWithinTheChoice(t *testing.T) {
	t.Parallel()
	ids := rapid.SampledFrom([]string{"MIT", "CC-BY-NC-4.0", "CC-BY-SA-4.0", "CC-BY-ND-4.0", "CC-BY-NC-SA-4.0", "LicenseRef-llama3", "LicenseRef-x"})
	expression := rapid.Custom(func(t *rapid.T) string {
		e := ids.Draw(t, "id")
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			e = "(" + e + rapid.SampledFrom([]string{" OR ", " AND "}).Draw(t, "operator") + ids.Draw(t, "id") + ")"
		}
		return e
	})
	settled := 0
	rapid.Check(t, func(t *rapid.T) {
		var l License
		var texts []string
		for range rapid.IntRange(1, 2).Draw(t, "entries") {
			d := DeclaredLicense{SPDX: expression.Draw(t, "spdx"), Raw: rapid.SampledFrom([]string{"", "", "ask us", "CC-BY-NC-4.0 OR CC-BY-SA-4.0"}).Draw(t, "raw")}
			l.Declared, texts = append(l.Declared, d), append(texts, d.SPDX, d.Raw)
		}
		l.Concluded = rapid.OneOf(rapid.Just(""), expression).Draw(t, "concluded")
		terms := l.read(nil)
		if !terms.identified || !terms.settled {
			return
		}
		settled++
		for _, text := range texts {
			ways, _ := readExpression(text).ways()
			if text != "" && text != "ask us" && !slices.ContainsFunc(ways, func(w restrictionSet) bool { return w&^terms.restrictions == 0 }) {
				t.Fatalf("%+v comes to %v", l, codeSet(terms.restrictions).names(restrictionCodes))
			}
		}
	})
	if settled == 0 {
		t.Error("nothing was settled")
	}
}

// TestPartsAreNotTheWhole: however many parts have a licence, the rest may have another.
func TestPartsAreNotTheWhole(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{"code"}, {"code", "docs"}, {"train", "Train"}, {"train", "test"}, {"train", " train"}, {"a", "b", "c"}, {"README", "LICENSE"}} {
		var l License
		for _, s := range scopes {
			l.Declared = append(l.Declared, DeclaredLicense{SPDX: "MIT", Scope: s})
		}
		if got := reading(l); got != "unidentified +" {
			t.Errorf("%q: got %q", scopes, got)
		}
		for _, rest := range []string{"", " ", "whole", "Whole", "all"} {
			all := l
			all.Declared = append(slices.Clone(l.Declared), DeclaredLicense{SPDX: "CC-BY-NC-4.0", Scope: rest})
			if got := reading(all); got != "identified nc" {
				t.Errorf("%q and %q: got %q", scopes, rest, got)
			}
		}
	}
}

// TestTermsOfParents: what an input is made from or by counts as its own terms
// do: not read is unidentified, a choice is open, and nothing about the input settles it.
func TestTermsOfParents(t *testing.T) {
	t.Parallel()
	lists := map[string]func([]LineageRef) *Lineage{
		"derived_from":        func(r []LineageRef) *Lineage { return &Lineage{DerivedFrom: r} },
		"base_models":         func(r []LineageRef) *Lineage { return &Lineage{BaseModels: r} },
		"generated_by_models": func(r []LineageRef) *Lineage { return &Lineage{GeneratedByModels: r} },
	}
	for text, want := range map[string]string{
		"": "identified", "unknown": "identified", "MIT": "identified", "CC BY-NC 4.0": "identified nc", "MIT OR CC-BY-NC-4.0": "identified",
		"Proprietary, non commercial, no AI": "unidentified +", "CC-BY-NC-ND-4.0 with amendments": "unidentified nc,nd+", "LicenseRef-openai-service": "unidentified +",
		"OpenAI's terms: no competing models": "unidentified +", "CC-BY-NC-4.0 AND LicenseRef-x": "unidentified nc+", "no AI training": "unidentified no_ml+",
		"CC-BY-NC-4.0 OR CC-BY-SA-4.0": "identified +", "CC-BY-NC-4.0 OR CC-BY-NC-SA-4.0": "identified nc", "CC-BY-NC-4.0 OR LicenseRef-llama3": "identified +",
	} {
		for name, list := range lists {
			for _, own := range []License{{Declared: []DeclaredLicense{{SPDX: "MIT"}}}, {Declared: []DeclaredLicense{{Raw: "ask us"}}, Concluded: "MIT"}} {
				in := Input{License: own, Lineage: list([]LineageRef{{Ref: "first", License: "MIT"}, {Ref: "p", License: text}})}
				f := newFacts(&Spec{Inputs: []Input{in}}, nil)
				terms := in.license()
				status, all := terms.status(), terms.restrictionsFact()
				got := strings.TrimSpace(strings.Join(status.codes.names(licenseStatuses), ",") + " " + strings.Join(all.codes.names(restrictionCodes), ","))
				if all.unknown {
					got += "+"
				}
				if got != want && got != strings.Replace(want, " +", "+", 1) { // blanks do not matter
					t.Errorf("%s of %s: got %q, want %q", text, name, got, want)
				}
				if at, want := f.pointer(licenseStatusColumn, 0), "/inputs/0/lineage/"+name+"/1"; strings.HasPrefix(got, "un") && at != want {
					t.Errorf("%s: points to %s, want %s", text, at, want)
				}
			}
		}
	}
}
