package screening

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// facts is everything a predicate can see of a spec. Clauses, CEL and built-in
// predicates all look facts up here by one name each, so a pack cannot depend on
// anything that is not in this table.
type facts struct {
	spec *Spec
	// tags holds, per disclosure tag, what is known at the spec as a whole
	// (index 0: the spec's own statements and the worst of all inputs) and at
	// each input (index i+1: the input's statements and the spec's, worse wins).
	tags [][numTags]tagCell
	// hits are the places of each phrase, obfuscations those of text that hides
	// itself: of one kind in one field only the first.
	hits         map[int][]phraseHit
	obfuscations []textObfuscation
	// fields are the texts that were read; owner[i] is the input a field belongs to, or wholeSpec.
	fields []textField
	owner  []int
	// looked keeps every fact once looked up: a row of all factDefs for the spec, then one for each input.
	looked []*fact
}

// newFacts prepares the facts of a spec; matcher may be nil when no pack has phrases.
func newFacts(s *Spec, matcher *phraseMatcher) *facts {
	f := &facts{spec: s, tags: tagTable(s)}
	f.looked = make([]*fact, (len(s.Inputs)+1)*len(factDefs))
	if matcher != nil {
		f.fields, f.owner = textFields(s)
		f.keep(matcher.find(f.fields))
	}
	return f
}

// keep takes over what was found in texts, in a fixed order.
func (f *facts) keep(found textFindings) {
	f.hits = map[int][]phraseHit{}
	slices.SortFunc(found.hits, func(a, b phraseHit) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.form, b.form))
	})
	for _, h := range found.hits {
		same := func(o phraseHit) bool { return o.field == h.field && o.form.loose() == h.form.loose() }
		if kept := f.hits[h.phrase]; !slices.ContainsFunc(kept[max(0, len(kept)-2):], same) {
			f.hits[h.phrase] = append(kept, h)
		}
	}
	slices.SortFunc(found.obfuscations, func(a, b textObfuscation) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.kind, b.kind), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	f.obfuscations = slices.CompactFunc(found.obfuscations, func(a, b textObfuscation) bool {
		return a.field == b.field && a.kind == b.kind
	})
}

// reads reports whether a term at input sees a text: its own and the spec's.
func (f *facts) reads(input, field int) bool {
	owner := f.owner[field]
	return input == wholeSpec || owner == wholeSpec || owner == input
}

// wholeSpec is the input index of a term that speaks about the spec.
const wholeSpec = -1

// fact is one looked-up value.
type fact struct {
	stated  bool     // somebody said something, even "unknown"
	unknown bool     // what was said leaves it open; values may still name some
	values  []string // the known values
	pointer string   // where it stands, or where it would
}

// factDef describes one fact of the vocabulary of facts.
type factDef struct {
	name    string
	perSpec bool     // belongs to the spec; input-level terms reach it with the prefix "spec."
	list    bool     // may have several values; CEL sees a list
	codes   []string // closed list of values; nil = open text
	say     string   // how to state it, as YAML, for the person who has to
	get     func(s *Spec, in *Input, at string) fact
}

var yesNo = []string{"yes", "no"}

// factDefs is the table. A term that names a fact outside it does not load.
var factDefs = []factDef{
	{"kind", false, false, inputKinds, "kind: dataset",
		func(_ *Spec, in *Input, at string) fact { return one(in.Kind, at+"/kind") }},
	{"sources.kind", false, true, sourceKinds, "sources: [{kind: licensed}]", sourceKindFact},
	{"collection.geography", false, true, nil, "collection: {geography: [DE]}",
		func(_ *Spec, in *Input, at string) fact {
			return free(in.Collection.Geography, at+"/collection/geography")
		}},
	{"license.status", false, false, []string{"identified", "unidentified"}, "license: {declared: [{spdx: CC-BY-4.0}]}", licenseStatusFact},
	{"license.restrictions", false, true, restrictionCodes, "license: {declared: [{spdx: CC-BY-4.0}]}", licenseRestrictionsFact},
	{"license.tdm", false, false, tdmCodes, "license: {tdm: not_reserved}",
		func(_ *Spec, in *Input, at string) fact { return one(in.License.TDM, at+"/license/tdm") }},
	{"consent.status", false, false, consentCodes, "consent: {status: documented, docs: [URL]}",
		func(_ *Spec, in *Input, at string) fact { return one(in.Consent.Status, at+"/consent/status") }},
	{"integrity", false, false, []string{"pinned", "loose"}, "digests: [{alg: sha256, value: …}]", integrityFact},
	{"lineage.parents", false, false, []string{"none", "recorded", "unrecorded"}, "lineage: {derived_from: []}", lineageParentsFact},
	{"lineage.generators", false, false, []string{"none", "named"}, "lineage: {generated_by_models: [{ref: MODEL}]}", lineageGeneratorsFact},
	{"shape.modalities", false, true, modalityCodes, "shape: {modalities: [text]}",
		func(_ *Spec, in *Input, at string) fact { return many(in.Shape.Modalities, at+"/shape/modalities") }},
	{"shape.languages", false, true, nil, "shape: {languages: [en]}",
		func(_ *Spec, in *Input, at string) fact { return free(in.Shape.Languages, at+"/shape/languages") }},
	{"residency.allowed", false, false, yesNo, "residency: {stored_in: [DE], processed_in: [DE], excluded: []}", residencyFact},
	{"split", false, false, splitCodes, "split: train", splitFact},
	{"trust_remote_code", false, false, yesNo, "trust_remote_code: false", remoteCodeFact},
	{"documentation", false, false, []string{"present", "missing"}, "description: …, creators: [{name: …}]", documentationFact},

	{"objective.kind", true, false, objectiveKinds, "objective: {kind: sft}",
		func(s *Spec, _ *Input, _ string) fact { return one(s.Objective.Kind, "/objective/kind") }},
	{"objective.purposes", true, true, purposeCodes, "objective: {purposes: [customer_support]}",
		func(s *Spec, _ *Input, _ string) fact { return many(s.Objective.Purposes, "/objective/purposes") }},
	{"objective.markets", true, true, nil, "objective: {markets: [EU]}",
		func(s *Spec, _ *Input, _ string) fact { return many(s.Objective.Markets, "/objective/markets") }},
	{"base_model.stated", true, false, yesNo, "base_model: ID",
		func(s *Spec, _ *Input, _ string) fact { return yes(s.BaseModel != "", "/base_model") }},
}

var factIndex = func() map[string]int {
	m := make(map[string]int, len(factDefs))
	for i, d := range factDefs {
		m[d.name] = i
	}
	return m
}()

// resolveFact finds the definition for a name as a term writes it.
func resolveFact(name string, perSpec bool) (*factDef, bool) {
	base, prefixed := strings.CutPrefix(name, "spec.")
	i, ok := factIndex[base]
	if !ok {
		return nil, false
	}
	d := &factDefs[i]
	if d.perSpec {
		return d, prefixed || perSpec
	}
	return d, !prefixed && !perSpec
}

// get looks a fact up, once. input is wholeSpec for facts of the spec.
func (f *facts) get(d *factDef, input int) fact {
	if d.perSpec {
		input = wholeSpec
	}
	known := &f.looked[(input+1)*len(factDefs)+factIndex[d.name]]
	if *known == nil {
		var found fact
		if d.perSpec {
			found = d.get(f.spec, nil, "")
		} else {
			found = d.get(f.spec, &f.spec.Inputs[input], inputPointer(input))
		}
		*known = &found
	}
	return **known
}

func inputPointer(i int) string { return "/inputs/" + strconv.Itoa(i) }

// one is a fact with a single code of a closed list. An empty value is silence.
func one(code, pointer string) fact {
	if code == "" {
		return fact{pointer: pointer}
	}
	return many([]string{code}, pointer)
}

// many is a fact with codes of a closed list, of which only "unknown" leaves it open.
func many(codes []string, pointer string) fact {
	return fact{stated: len(codes) > 0, unknown: slices.Contains(codes, "unknown"), values: codes, pointer: pointer}
}

// free is a fact with values in free text: a placeholder states nothing, and leaves it open.
func free(values []string, pointer string) fact {
	f := fact{stated: len(values) > 0, pointer: pointer}
	for _, v := range values {
		if stands(v) {
			f.values = append(f.values, v)
		} else {
			f.unknown = true
		}
	}
	return f
}

func yes(b bool, pointer string) fact {
	v := "no"
	if b {
		v = "yes"
	}
	return fact{stated: true, values: []string{v}, pointer: pointer}
}

func sourceKindFact(_ *Spec, in *Input, at string) fact {
	kinds := make([]string, len(in.Sources))
	for i, s := range in.Sources {
		kinds[i] = s.Kind
	}
	return many(kinds, at+"/sources")
}

// splitFact: a custom split may overlap any of the others.
func splitFact(_ *Spec, in *Input, at string) fact {
	f := one(in.Split, at+"/split")
	f.unknown = in.Split == "custom"
	return f
}

// integrityFact is always known: either the bytes are pinned by a digest or an
// immutable revision, or they are not.
func integrityFact(_ *Spec, in *Input, at string) fact {
	for i, d := range in.Digests {
		if d.valid() {
			return fact{stated: true, values: []string{"pinned"}, pointer: at + "/digests/" + strconv.Itoa(i)}
		}
	}
	if isHex(in.Revision, 40) || isHex(in.Revision, 64) {
		return fact{stated: true, values: []string{"pinned"}, pointer: at + "/revision"}
	}
	return fact{stated: true, values: []string{"loose"}, pointer: at + "/digests"}
}

// valid reports whether the checksum can be one: real files carry issue URLs,
// "main" and "TBD" in this field.
func (d Digest) valid() bool {
	n, ok := digestHexLen[d.Alg]
	return ok && isHex(d.Value, n)
}

func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// lineageParentsFact: a parent is recorded if it is an input of this spec, so
// that its own record is screened too.
func lineageParentsFact(s *Spec, in *Input, at string) fact {
	f := fact{pointer: at + "/lineage"}
	if in.Lineage == nil {
		return f
	}
	f.stated = true
	f.values = []string{"none"}
	for _, list := range []struct {
		name string
		refs []LineageRef
	}{{"derived_from", in.Lineage.DerivedFrom}, {"base_models", in.Lineage.BaseModels}} {
		for i, ref := range list.refs {
			if !slices.ContainsFunc(s.Inputs, func(o Input) bool { return o.ID == ref.Ref && o.ID != in.ID }) {
				f.values = []string{"unrecorded"}
				f.pointer = at + "/lineage/" + list.name + "/" + strconv.Itoa(i)
				return f
			}
			f.values = []string{"recorded"}
		}
	}
	return f
}

func lineageGeneratorsFact(_ *Spec, in *Input, at string) fact {
	f := fact{pointer: at + "/lineage/generated_by_models"}
	if in.Lineage == nil {
		return f
	}
	f.stated = true
	for _, g := range in.Lineage.GeneratedByModels {
		if stands(g.Ref) {
			f.values = []string{"named"}
		} else {
			f.unknown = true
		}
	}
	if len(in.Lineage.GeneratedByModels) == 0 {
		f.values = []string{"none"}
	}
	return f
}

// residencyFact compares where data is with where it must not be. One place
// that is excluded is enough for no; for yes all three lists have to be stated.
func residencyFact(_ *Spec, in *Input, at string) fact {
	r := in.Residency
	f := fact{pointer: at + "/residency", stated: len(r.StoredIn) > 0 || len(r.ProcessedIn) > 0}
	f.unknown = len(r.StoredIn) == 0 || len(r.ProcessedIn) == 0 || r.Excluded == nil
	for _, place := range slices.Concat(r.StoredIn, r.ProcessedIn) {
		for _, banned := range r.Excluded {
			switch {
			case within(place, banned), place == "worldwide":
				return fact{stated: true, values: []string{"no"}, pointer: at + "/residency/excluded"}
			case within(banned, place): // somewhere in the EU, and one member is excluded
				f.unknown = true
			}
		}
	}
	if !f.unknown {
		f.values = []string{"yes"}
	}
	return f
}

// within reports whether all of a region lies in another.
func within(region, other string) bool {
	return region == other || other == "worldwide" || other == "EU" && slices.Contains(euMembers, region)
}

func remoteCodeFact(_ *Spec, in *Input, at string) fact {
	if in.TrustRemoteCode == nil {
		return fact{pointer: at + "/trust_remote_code"}
	}
	return yes(*in.TrustRemoteCode, at+"/trust_remote_code")
}

func documentationFact(_ *Spec, in *Input, at string) fact {
	f := fact{stated: true, values: []string{"present"}, pointer: at + "/description"}
	if stands(in.Description) && (slices.ContainsFunc(in.Creators, func(p Party) bool { return stands(p.Name) }) || stands(in.Publisher.Name)) {
		return f
	}
	f.values = []string{"missing"}
	return f
}

// stands reports whether a text says something: it is neither blank nor a placeholder.
func stands(s string) bool {
	return !IsBlank(s) && !isPlaceholder(s)
}
