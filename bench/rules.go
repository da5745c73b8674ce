package main

import (
	"fmt"
	"strings"
)

// The policy that all engines decide by: 30 rules over one training spec. It is declared once, here; each engine gets
// it in its own language.

// tagRule fires if a structured disclosure, of the spec or of any input, states the tag so.
type tagRule struct{ id, tag, state string }

var tagRules = []tagRule{
	{"tag_biometric", "biometric", "present"},
	{"tag_confidentiality", "confidentiality", "present"},
	{"tag_consent", "consent", "absent"},
	{"tag_copyright", "copyright_material", "present"},
	{"tag_cbrn", "dual_use_cbrn", "present"},
	{"tag_cyber", "dual_use_cyber", "present"},
	{"tag_hate", "hate", "present"},
	{"tag_health", "health", "present"},
	{"tag_subjects", "human_subjects", "present"},
	{"tag_minors", "minors", "present"},
	{"tag_self_harm", "self_harm", "present"},
	{"tag_sensitive", "sensitive_personal", "present"},
	{"tag_sexual", "sexual_content", "present"},
	{"tag_users", "user_generated", "present"},
	{"tag_violent", "violent", "present"},
}

// floorTag is the tag rule that weir keeps in the pack it cannot do without.
const floorTag = "tag_minors"

// provenanceRule fires if any data set meets the condition, given in the three languages.
type provenanceRule struct{ id, weir, rego, cel string }

var provenanceRules = []provenanceRule{
	{"prov_noncommercial", "{fact: license.restrictions, has: nc}",
		`some l in d.license.declared; l.spdx in noncommercial`,
		`d.license.declared.exists(l, l.spdx in noncommercial)`},
	{"prov_unidentified", "{fact: license.status, has: unidentified}",
		`some l in d.license.declared; not l.spdx in licenses`,
		`d.license.declared.exists(l, !(l.spdx in licenses))`},
	{"prov_loose", "{fact: integrity, has: loose}",
		"not regex.match(`^[0-9a-f]{40}$`, d.revision)",
		"!d.revision.matches('^[0-9a-f]{40}$')"},
	{"prov_consent", "{fact: consent.status, has: absent}",
		`d.consent.status == "absent"`,
		`d.consent.status == "absent"`},
	{"prov_tdm", "{fact: license.tdm, has: reserved}",
		`d.license.tdm == "reserved"`,
		`d.license.tdm == "reserved"`},
	{"prov_source", "{fact: sources.kind, any_of: [private_third_party, user_other_services]}",
		`some s in d.sources; s.kind in {"private_third_party", "user_other_services"}`,
		`d.sources.exists(s, s.kind in ["private_third_party", "user_other_services"])`},
	{"prov_code", "{fact: trust_remote_code, has: \"yes\"}",
		`d.trust_remote_code`,
		`d.trust_remote_code`},
	{"prov_parents", "{fact: lineage.parents, has: unrecorded}",
		`some p in d.lineage.derived_from; not p.ref in ids`,
		`d.lineage.derived_from.exists(p, !spec.inputs.exists(o, o.id == p.ref))`},
}

// The licences that occur in the specs; any other text is not a licence.
var (
	openLicenses          = []string{"Apache-2.0", "CC-BY-4.0", "CC0-1.0", "MIT", "ODC-By-1.0"}
	noncommercialLicenses = []string{"CC-BY-NC-4.0", "CC-BY-NC-SA-4.0"}
)

// phraseRule fires if the purpose names one of its phrases.
type phraseRule struct {
	id      string
	phrases []string
}

// phraseRules are 7 rules with 150 phrases of two or three words between them.
var phraseRules = func() []phraseRule {
	verbs := strings.Fields("rank profile blacklist track coerce deceive impersonate stalk extort radicalise defraud bribe groom " +
		"humiliate doxx sabotage poison traffic smuggle launder forge counterfeit hijack jam wiretap mislead manipulate threaten harass exploit")
	nouns := strings.Fields("prisoners debtors migrants voters tenants pupils patients widows witnesses jurors refugees orphans minors " +
		"pensioners strikers journalists donors hostages informants passports ballots vaccines banknotes pipelines substations reservoirs railways " +
		"airports satellites turbines warehouses payrolls invoices mortgages pensions subsidies auctions tenders audits verdicts")
	tails := []string{"by faith", "at night", "for ransom", "without trace", "in bulk"}
	rules := make([]phraseRule, 7)
	for i := range 150 {
		phrase := verbs[i%len(verbs)] + " " + nouns[(i*7+i/len(verbs))%len(nouns)]
		if i%3 == 0 {
			phrase += " " + tails[i%len(tails)]
		}
		r := &rules[i%len(rules)]
		r.phrases = append(r.phrases, phrase)
	}
	for i := range rules {
		rules[i].id = fmt.Sprintf("phrase_%d", i+1)
	}
	return rules
}()

var ruleCount = len(tagRules) + len(provenanceRules) + len(phraseRules)

func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(out, ", ")
}
