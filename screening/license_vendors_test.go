package screening

import (
	"slices"
	"strings"
	"testing"

	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"
	"pgregory.net/rapid"
)

func TestNamedLicenses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		// ids of the Hub
		"llama2": "identified use_based,limited_commercial,no_outputs", "llama3": "identified use_based,limited_commercial,no_outputs",
		"llama3.1": "identified use_based,limited_commercial", "Llama3.2": "identified geo,use_based,limited_commercial",
		"llama4": "identified eu_disallowed,geo,use_based,limited_commercial", "gemma": "identified use_based", "openrail": "identified use_based", "openrail++": "identified use_based",
		"bigscience-bloom-rail-1.0": "identified use_based", "creativeml-openrail-m": "identified use_based", "bigcode-openrail-m": "identified use_based",
		"deepseek": "identified use_based", "apple-ascl": "identified", "apple-amlr": "identified nc,research_only", "h-research": "identified nc,research_only",
		"intel-research": "identified nc,research_only", "grok2-community": "identified use_based,limited_commercial,no_outputs", "lgpl-lr": "identified sa",
		"c-uda": "identified", "gfdl": "identified sa", "lppl-1.3c": "identified", "ofl-1.1": "identified sa", "etalab-2.0": "identified", "cc": "unidentified +",
		"other": "unidentified +", "unknown": "unidentified +",
		// licence names of cards
		"tongyi-qianwen": "identified limited_commercial,no_outputs", "qwen-research": "identified nc,research_only", "falcon-llm-license": "identified use_based",
		"mnpl": "identified nc,research_only", "MRL-0.1": "identified nc,research_only", "Mistral AI Research License": "identified nc,research_only",
		"nvidia-open-model-license": "identified use_based", "databricks-open-model-license": "identified use_based,limited_commercial,no_outputs",
		"stabilityai-ai-community": "identified use_based,limited_commercial,no_outputs", "yi-license": "identified use_based,limited_commercial",
		"OPT-175B License Agreement": "identified nc,research_only,use_based", "META LLAMA 3 COMMUNITY LICENSE AGREEMENT": "identified use_based,limited_commercial,no_outputs",
		"The Llama 3.1 Community Licence": "identified use_based,limited_commercial", "PhysioNet Restricted Health Data License 1.5.0": "identified nc,nd,research_only,use_based",
		"https://ai.google.dev/gemma/terms": "identified use_based", "https://www.llama.com/llama3_1/license/": "identified use_based,limited_commercial",
		// in expressions
		"LicenseRef-llama2": "identified use_based,limited_commercial,no_outputs", "licenseref-GEMMA": "identified use_based",
		"Apache-2.0 AND llama3.1": "identified use_based,limited_commercial", "MIT OR LicenseRef-gemma": "identified", "llama2 OR gemma": "identified use_based",
		"gemma AND LicenseRef-house": "unidentified use_based+", "MIT AND (llama3 OR qwen)": "identified use_based,limited_commercial",
		// conditions in place of a licence: they count, and it stays unidentified
		"research only": "unidentified nc,research_only+", "For non-commercial research purposes only.": "unidentified nc,research_only+",
		"Non-Commercial": "unidentified nc+", "no derivatives": "unidentified nd+", "No AI training": "unidentified no_ml+", "TDM reserved": "unidentified no_ml+",
		"MIT AND noncommercial": "unidentified nc+", "Creative Commons Non-Commercial": "unidentified nc+", "CC BY-ND-SA 4.0": "unidentified nd,sa+",
		// paraphrases
		"Apache 2": "identified", "The Apache Software License, Version 2.0": "identified", "Apache License, Version 2.0": "identified", "MIT": "identified", "MIT licence": "identified",
		"cc by nc 4": "identified nc", "CC-BY-NC": "identified nc", "CC_BY_NC_4.0": "identified nc", "Attribution-NonCommercial 4.0 International": "identified nc",
		"Creative Commons Attribution-NonCommercial 4.0 International": "identified nc", "Creative Commons Attribution 4.0 International (CC BY 4.0)": "identified",
		"Creative Commons Attribution Non Commercial Share Alike 4.0 International":                 "identified nc,sa",
		"Creative Commons Attribution-NonCommercial-NoDerivatives 4.0 International Public License": "identified nc,nd",
		"creativecommons.org/licenses/by-nc-sa/4.0/?ref=chooser-v1":                                 "identified nc,sa",
		"CC0 1.0 Universal (CC0 1.0) Public Domain Dedication":                                      "identified",
		"Open Data Commons Open Database License (ODbL) v1.0":                                       "identified sa",
		"GPLv3": "identified sa", "GNU General Public License v3.0": "identified sa", "CC BY 4.0 or later": "unidentified +", "not CC BY 4.0": "unidentified +",
		"CC BY 4.0 except images": "unidentified +", "Attribution": "unidentified +", "CC BY 3.0 4.0": "unidentified +",
	} {
		for _, in := range []DeclaredLicense{{Raw: raw}, {Raw: strings.ToUpper(raw)}, {Raw: "  " + strings.ReplaceAll(raw, " ", "   ") + "\n"}} {
			if got := reading(License{Declared: []DeclaredLicense{in}}); got != want {
				t.Errorf("%q: got %q, want %q", in.Raw, got, want)
			}
		}
	}
}

func TestNamedLicenseTable(t *testing.T) {
	t.Parallel()
	if len(restrictionCodes) != numRestrictions {
		t.Errorf("numRestrictions is %d, there are %d", numRestrictions, len(restrictionCodes))
	}
	owner := map[string]string{}
	for _, l := range namedLicenses {
		if known, _ := spdxlicenses.IsActiveLicense(l.id); known || !IsID(strings.ReplaceAll(l.id, "+", "")) || l.source == "" {
			t.Errorf("%+v: an id of SPDX, no id, or no source", l)
		}
		for _, name := range append(strings.Split(l.names, "|"), l.id) {
			key := plainWords(name)
			if other, taken := owner[key]; key == "" || taken && other != l.id || licenseAliases[name] != "" {
				t.Errorf("%s: the name %q is empty or also that of %s", l.id, name, other)
			}
			owner[key] = l.id
			if got := licenseAlias(name); got != licenseRef+l.id {
				t.Errorf("%q gives %s, not %s", name, got, l.id)
			}
		}
	}
	for _, c := range conditionWords {
		for name := range strings.SplitSeq(c.names, "|") {
			set, _, ok := readExpression(licenseAlias(name)).sum()
			if ok || set != restrictionsOf(strings.Fields(c.restrictions)...) || owner[plainWords(name)] != "" {
				t.Errorf("%q: understood %t, %v", name, ok, codeSet(set).names(restrictionCodes))
			}
		}
	}
	for name, id := range licenseAliases {
		if knownLicense(id) == nil {
			t.Errorf("%q is mapped to %s, which is not known", name, id)
		}
	}
	for at, id := range licensePages {
		for _, raw := range []string{at, "https://" + at + "/", "http://www." + at} {
			if _, _, ok := readExpression(id).sum(); !ok || licenseAlias(raw) != id {
				t.Errorf("%q gives %s", raw, licenseAlias(raw))
			}
		}
	}
}

// anyLicense draws the name of a licence: an SPDX id, a named one, a condition, or nothing known.
func anyLicense(t *rapid.T) string {
	named := rapid.SampledFrom(namedLicenses).Draw(t, "named")
	return rapid.SampledFrom([]string{"MIT", "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-ND-3.0", "GPL-3.0-only", "ODbL-1.0", licenseRef + named.id,
		licenseRef + "only-nc", licenseRef + "house", "gemma", "SSPL-1.0"}).Draw(t, "license")
}

func termsOf(expression string) licenseTerms {
	return (&License{Declared: []DeclaredLicense{{SPDX: expression}}}).read(nil)
}

func TestLicenseOperators(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyLicense(t), anyLicense(t)
		x, y := termsOf(a), termsOf(b)
		in := func(of licenseTerms) func(string) bool {
			return func(code string) bool { return slices.Contains(codeSet(of.restrictions).names(restrictionCodes), code) }
		}
		all := termsOf(a + " AND " + b)
		if all.identified != (x.identified && y.identified) {
			t.Fatalf("%s AND %s: identified is %t", a, b, all.identified)
		}
		for _, code := range restrictionCodes {
			if in(all)(code) != (in(x)(code) || in(y)(code)) {
				t.Fatalf("%s AND %s: %s is %t", a, b, code, in(all)(code))
			}
		}
		either := termsOf(a + " OR " + b)
		if either.identified != (x.identified || y.identified) {
			t.Fatalf("%s OR %s: identified is %t", a, b, either.identified)
		}
		for _, branch := range []licenseTerms{x, y} { // a branch that is understood can be taken
			if branch.identified && !isSubset(either.restrictions, branch.restrictions) {
				t.Fatalf("%s OR %s: %v is more than a branch asks, %v", a, b, either.restrictions, branch.restrictions)
			}
		}
		if unknown := termsOf(a + " AND (" + b + " AND " + licenseRef + "nobody-knows)"); unknown.identified || unknown.settled && !isSubset(x.restrictions, unknown.restrictions) {
			t.Fatalf("%s: %+v", a, unknown)
		}
	})
}

func isSubset(part, whole restrictionSet) bool { return part&^whole == 0 }

// TestParaphrasesAskNoLess: however a licence is written, it never asks less
// than under its id, and never becomes identified when its id is not.
func TestParaphrasesAskNoLess(t *testing.T) {
	t.Parallel()
	type writing struct{ text, id string }
	var all []writing
	for _, l := range namedLicenses {
		for name := range strings.SplitSeq(l.names, "|") {
			all = append(all, writing{name, licenseRef + l.id})
		}
		all = append(all, writing{l.id, licenseRef + l.id})
	}
	for name, id := range licenseAliases {
		all = append(all, writing{name, id})
	}
	for _, id := range spdxlicenses.GetLicenses() {
		all = append(all, writing{id, id})
		if words, ok := strings.CutPrefix(id, "CC-BY-"); ok {
			words = strings.NewReplacer("NC", "NonCommercial", "ND", "NoDerivatives", "SA", "ShareAlike").Replace(words)
			all = append(all, writing{"Creative Commons Attribution " + words + " International", id}, writing{"CC BY-" + id[6:], id})
		}
	}
	slices.SortFunc(all, func(a, b writing) int { return strings.Compare(a.text+"|"+a.id, b.text+"|"+b.id) })
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(all).Draw(t, "writing")
		text := []byte(w.text)
		for i, c := range text {
			switch {
			case 'a' <= c && c <= 'z' && rapid.Bool().Draw(t, "upper"):
				text[i] -= 'a' - 'A'
			case 'A' <= c && c <= 'Z' && rapid.Bool().Draw(t, "lower"):
				text[i] += 'a' - 'A'
			case (c == ' ' || c == '-') && rapid.Bool().Draw(t, "mark"):
				text[i] = rapid.SampledFrom([]byte(" -_")).Draw(t, "other mark")
			}
		}
		raw := rapid.SampledFrom([]string{"", " ", "the ", "The\t"}).Draw(t, "before") + string(text) +
			rapid.SampledFrom([]string{"", " ", " license", " Licence", "  License.", "\n"}).Draw(t, "after")
		got := (&License{Declared: []DeclaredLicense{{Raw: raw}}}).read(nil)
		want := termsOf(w.id)
		if got.identified && (!want.identified || !isSubset(want.restrictions, got.restrictions)) {
			t.Fatalf("%q: %v, identified %t; %s asks %v, identified %t", raw, got.restrictions, got.identified, w.id, want.restrictions, want.identified)
		}
		if strings.TrimSpace(raw) == w.text && got.identified != want.identified && !strings.HasPrefix(w.id, "CC-BY") {
			t.Fatalf("%q is identified %t, %s %t", raw, got.identified, w.id, want.identified)
		}
	})
}
