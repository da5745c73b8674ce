package screening

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// facts is everything a predicate can see of a spec. Clauses, CEL and built-in
// predicates all look facts up here by one name each, so a pack cannot depend on
// anything that is not in this table. It is reused from spec to spec, and holds
// no string that was not in the spec or the code already.
type facts struct {
	spec *Spec
	// tags holds what is known at the spec as a whole (index 0: the spec's own
	// statements and the worst of all inputs) and at each input (index i+1: the
	// input's statements and the spec's, worse wins).
	tags []tagRow
	// hits are the places of each phrase, obfuscations those of text that hides
	// itself: of one kind in one field only the first.
	hits         map[int][]phraseHit
	obfuscations []textObfuscation
	fields       []textField    // the texts that were read
	licenses     []licenseTerms // of each input, once read
	kinds        []string       // room for the values of facts that are gathered

	inputKinds []kindSet // of each input
	hasDataset bool
}

// kindSet has a bit for each kind of input.
type kindSet uint8

func kindOf(kind string) kindSet {
	if i := slices.Index(inputKinds, kind); i >= 0 {
		return 1 << i
	}
	return 0
}

var datasetKind = kindOf("dataset")

// newFacts prepares the facts of a spec; matcher may be nil when no pack has phrases.
func newFacts(s *Spec, matcher *phraseMatcher) *facts {
	f := &facts{}
	f.reset(s, matcher)
	return f
}

func (f *facts) reset(s *Spec, matcher *phraseMatcher) {
	f.spec, f.tags = s, tagTable(s, f.tags)
	f.licenses = slices.Grow(f.licenses[:0], len(s.Inputs))[:len(s.Inputs)]
	clear(f.licenses)
	f.inputKinds, f.hasDataset = f.inputKinds[:0], false
	for i := range s.Inputs {
		kind := kindOf(s.Inputs[i].Kind)
		f.inputKinds = append(f.inputKinds, kind)
		f.hasDataset = f.hasDataset || kind == datasetKind
	}
	f.hits, f.obfuscations, f.kinds = nil, nil, f.kinds[:0]
	if matcher != nil {
		f.fields = textFields(s, f.fields)
		f.keep(matcher.find(f.fields))
	}
}

// keep takes over what was found in texts, in a fixed order.
func (f *facts) keep(found textFindings) {
	if len(found.hits) > 0 {
		f.hits = map[int][]phraseHit{}
	}
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
	owner := f.fields[field].at.input
	return input == wholeSpec || owner == wholeSpec || owner == input
}

// wholeSpec is the input index of a term that speaks about the spec.
const wholeSpec = -1

// fact is one looked-up value.
type fact struct {
	stated  bool     // somebody said something, even "unknown"
	unknown bool     // what was said leaves it open; values may still name some
	values  []string // the known values
	key     string   // where it stands, or where it would; see place
	nth     int
}

// factDef describes one fact of the vocabulary of facts.
type factDef struct {
	name    string
	perSpec bool     // belongs to the spec; input-level terms reach it with the prefix "spec."
	list    bool     // may have several values; CEL sees a list
	codes   []string // closed list of values; nil = open text
	say     string   // how to state it, as YAML, for the person who has to
	get     func(f *facts, input int) fact
}

// Values of the facts that are worked out rather than stated as a code.
var (
	yesNo               = []string{"yes", "no"}
	licenseStatuses     = []string{"identified", "unidentified"}
	integrityStates     = []string{"pinned", "loose"}
	parentStates        = []string{"none", "recorded", "unrecorded"}
	generatorStates     = []string{"none", "named"}
	documentationStates = []string{"present", "missing"}
)

// factDefs is the table. A term that names a fact outside it does not load.
var factDefs = []factDef{
	{"kind", false, false, inputKinds, "kind: dataset",
		func(f *facts, i int) fact { return one(f.input(i).Kind, inputKinds, "/kind") }},
	{"sources.kind", false, true, sourceKinds, "sources: [{kind: licensed}]", sourceKindFact},
	{"collection.geography", false, true, nil, "collection: {geography: [DE]}",
		func(f *facts, i int) fact { return free(f.input(i).Collection.Geography, "/collection/geography") }},
	{"license.status", false, false, licenseStatuses, "license: {declared: [{spdx: CC-BY-4.0}]}", licenseStatusFact},
	{"license.restrictions", false, true, restrictionCodes, "license: {declared: [{spdx: CC-BY-4.0}]}", licenseRestrictionsFact},
	{"license.tdm", false, false, tdmCodes, "license: {tdm: not_reserved}",
		func(f *facts, i int) fact { return one(f.input(i).License.TDM, tdmCodes, "/license/tdm") }},
	{"consent.status", false, false, consentCodes, "consent: {status: documented, docs: [URL]}",
		func(f *facts, i int) fact { return one(f.input(i).Consent.Status, consentCodes, "/consent/status") }},
	{"integrity", false, false, integrityStates, "digests: [{alg: sha256, value: …}]", integrityFact},
	{"lineage.parents", false, false, parentStates, "lineage: {derived_from: []}", lineageParentsFact},
	{"lineage.generators", false, false, generatorStates, "lineage: {generated_by_models: [{ref: MODEL}]}", lineageGeneratorsFact},
	{"shape.modalities", false, true, modalityCodes, "shape: {modalities: [text]}",
		func(f *facts, i int) fact { return many(f.input(i).Shape.Modalities, "/shape/modalities") }},
	{"shape.languages", false, true, nil, "shape: {languages: [en]}",
		func(f *facts, i int) fact { return free(f.input(i).Shape.Languages, "/shape/languages") }},
	{"residency.allowed", false, false, yesNo, "residency: {stored_in: [DE], processed_in: [DE], excluded: []}", residencyFact},
	{"split", false, false, splitCodes, "split: train", splitFact},
	{"trust_remote_code", false, false, yesNo, "trust_remote_code: false", remoteCodeFact},
	{"documentation", false, false, documentationStates, "description: …, creators: [{name: …}]", documentationFact},

	{"objective.kind", true, false, objectiveKinds, "objective: {kind: sft}",
		func(f *facts, _ int) fact { return one(f.spec.Objective.Kind, objectiveKinds, "/objective/kind") }},
	{"objective.purposes", true, true, purposeCodes, "objective: {purposes: [customer_support]}",
		func(f *facts, _ int) fact { return many(f.spec.Objective.Purposes, "/objective/purposes") }},
	{"objective.markets", true, true, nil, "objective: {markets: [EU]}",
		func(f *facts, _ int) fact { return many(f.spec.Objective.Markets, "/objective/markets") }},
	{"base_model.stated", true, false, yesNo, "base_model: ID",
		func(f *facts, _ int) fact { return yes(f.spec.BaseModel != "", "/base_model") }},
}

var factIndex = func() map[string]int {
	m := make(map[string]int, len(factDefs))
	for i, d := range factDefs {
		m[d.name] = i
	}
	return m
}()

func (f *facts) input(i int) *Input { return &f.spec.Inputs[i] }

// resolveFact finds the place in factDefs of a name as a term writes it.
func resolveFact(name string, perSpec bool) (col int, ok bool) {
	base, prefixed := strings.CutPrefix(name, "spec.")
	if col, ok = factIndex[base]; !ok {
		return 0, false
	}
	if factDefs[col].perSpec {
		return col, prefixed || perSpec
	}
	return col, !prefixed && !perSpec
}

// get looks a fact up by its place in factDefs. input is wholeSpec for facts of
// the spec. The result holds until the facts are those of another spec.
func (f *facts) get(col, input int) fact { return factDefs[col].get(f, input) }

// pointer tells where a fact stands.
func (f *facts) pointer(col, input int) string {
	found := f.get(col, input)
	if factDefs[col].perSpec {
		input = wholeSpec
	}
	return place{input: input, key: found.key, nth: found.nth}.String()
}

func inputPointer(i int) string { return "/inputs/" + strconv.Itoa(i) }

// one is a fact with a single code of a closed list. An empty value is silence.
func one(code string, codes []string, key string) fact {
	if code == "" {
		return fact{key: key}
	}
	return many(only(codes, code), key)
}

// only is a list of one value, in the place that the value has in all.
func only(all []string, value string) []string {
	i := slices.Index(all, value)
	if i < 0 {
		return []string{value}
	}
	return all[i : i+1 : i+1]
}

// many is a fact with codes of a closed list, of which only "unknown" leaves it open.
func many(codes []string, key string) fact {
	return fact{stated: len(codes) > 0, unknown: slices.Contains(codes, "unknown"), values: codes, key: key}
}

// free is a fact with values in free text: a placeholder states nothing, and leaves it open.
func free(values []string, key string) fact {
	f := fact{stated: len(values) > 0, key: key}
	for _, v := range values {
		if stands(v) {
			f.values = append(f.values, v)
		} else {
			f.unknown = true
		}
	}
	return f
}

func yes(b bool, key string) fact {
	if b {
		return fact{stated: true, values: yesNo[:1], key: key}
	}
	return fact{stated: true, values: yesNo[1:], key: key}
}

func sourceKindFact(f *facts, i int) fact {
	from := len(f.kinds)
	for j := range f.input(i).Sources {
		f.kinds = append(f.kinds, f.input(i).Sources[j].Kind)
	}
	return many(f.kinds[from:len(f.kinds):len(f.kinds)], "/sources")
}

// splitFact: a custom split may overlap any of the others.
func splitFact(f *facts, i int) fact {
	found := one(f.input(i).Split, splitCodes, "/split")
	found.unknown = f.input(i).Split == "custom"
	return found
}

// integrityFact is always known: either the bytes are pinned by a digest or an
// immutable revision, or they are not.
func integrityFact(f *facts, i int) fact {
	in := f.input(i)
	pinned := fact{stated: true, values: integrityStates[0:1]}
	for j := range in.Digests {
		if in.Digests[j].valid() {
			pinned.key, pinned.nth = "/digests", j+1
			return pinned
		}
	}
	if isHex(in.Revision, 40) || isHex(in.Revision, 64) {
		pinned.key = "/revision"
		return pinned
	}
	return fact{stated: true, values: integrityStates[1:2], key: "/digests"}
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
func lineageParentsFact(f *facts, i int) fact {
	found := fact{key: "/lineage"}
	lineage := f.input(i).Lineage
	if lineage == nil {
		return found
	}
	found.stated, found.values = true, parentStates[0:1]
	for _, list := range [...]struct {
		key  string
		refs []LineageRef
	}{{"/lineage/derived_from", lineage.DerivedFrom}, {"/lineage/base_models", lineage.BaseModels}} {
		for j := range list.refs {
			if !f.recorded(list.refs[j].Ref, i) {
				return fact{stated: true, values: parentStates[2:3], key: list.key, nth: j + 1}
			}
			found.values = parentStates[1:2]
		}
	}
	return found
}

// recorded reports whether a parent of an input is another input.
func (f *facts) recorded(ref string, of int) bool {
	for i := range f.spec.Inputs {
		if f.spec.Inputs[i].ID == ref && ref != f.spec.Inputs[of].ID {
			return true
		}
	}
	return false
}

func lineageGeneratorsFact(f *facts, i int) fact {
	found := fact{key: "/lineage/generated_by_models"}
	lineage := f.input(i).Lineage
	if lineage == nil {
		return found
	}
	found.stated = true
	for _, g := range lineage.GeneratedByModels {
		if stands(g.Ref) {
			found.values = generatorStates[1:2]
		} else {
			found.unknown = true
		}
	}
	if len(lineage.GeneratedByModels) == 0 {
		found.values = generatorStates[0:1]
	}
	return found
}

// residencyFact compares where data is with where it must not be. One place
// that is excluded is enough for no; for yes all three lists have to be stated.
func residencyFact(f *facts, i int) fact {
	r := &f.input(i).Residency
	found := fact{key: "/residency", stated: len(r.StoredIn) > 0 || len(r.ProcessedIn) > 0}
	found.unknown = len(r.StoredIn) == 0 || len(r.ProcessedIn) == 0 || r.Excluded == nil
	for _, places := range [...][]string{r.StoredIn, r.ProcessedIn} {
		for _, p := range places {
			for _, banned := range r.Excluded {
				switch {
				case within(p, banned), p == "worldwide":
					return fact{stated: true, values: yesNo[1:2], key: "/residency/excluded"}
				case within(banned, p): // somewhere in the EU, and one member is excluded
					found.unknown = true
				}
			}
		}
	}
	if !found.unknown {
		found.values = yesNo[0:1]
	}
	return found
}

// within reports whether all of a region lies in another.
func within(region, other string) bool {
	return region == other || other == "worldwide" || other == "EU" && slices.Contains(euMembers, region)
}

func remoteCodeFact(f *facts, i int) fact {
	stated := f.input(i).TrustRemoteCode
	if stated == nil {
		return fact{key: "/trust_remote_code"}
	}
	return yes(*stated, "/trust_remote_code")
}

func documentationFact(f *facts, i int) fact {
	in := f.input(i)
	state := "missing"
	if stands(in.Description) && (slices.ContainsFunc(in.Creators, func(p Party) bool { return stands(p.Name) }) || stands(in.Publisher.Name)) {
		state = "present"
	}
	return fact{stated: true, values: only(documentationStates, state), key: "/description"}
}

// stands reports whether a text says something: it is neither blank nor a placeholder.
func stands(s string) bool {
	return !IsBlank(s) && !isPlaceholder(s)
}
