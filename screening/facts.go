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
	*codedFacts
	// hits are the places of each phrase, obfuscations those of text that hides
	// itself: of one kind in one field only the first.
	hits         map[int][]phraseHit
	obfuscations []textObfuscation
	fields       []textField // the texts that were read
}

// codedFacts is what a spec states in codes, worked out once when it is parsed and
// not again for every vocabulary and day that it is decided by. Texts are not part
// of it: what is looked for in them depends on the vocabulary.
type codedFacts struct {
	// tags holds what is known at the spec as a whole (index 0: the spec's own
	// statements and the worst of all inputs) and at each input (index i+1: the
	// input's statements and the spec's, worse wins).
	tags       []tagRow
	inputs     []inputFacts
	hasDataset bool
}

// inputFacts are the facts of one input.
type inputFacts struct {
	kind  kindSet
	coded [numInputFacts]codedFact // by place in factDefs
}

// codedFact is a fact without the place where it stands.
type codedFact struct {
	codes           uint16 // see codeSet; the lists of input facts are short
	stated, unknown bool
}

// numInputFacts is how many facts of factDefs belong to an input: the first ones. A test holds it.
const numInputFacts = 16

// codedInput gives the facts of an input in the order of factDefs, which a test holds
// it to. Going through that table would take three times as long.
func (s *Spec) codedInput(i int) [numInputFacts]codedFact {
	license := s.Inputs[i].license()
	return [...]codedFact{
		kindFact(s, i).coded(), sourceKindFact(s, i).coded(), geographyFact(s, i).coded(),
		license.status().coded(), license.restrictionsFact().coded(), tdmFact(s, i).coded(), consentFact(s, i).coded(),
		integrityFact(s, i).coded(), lineageParentsFact(s, i).coded(), lineageGeneratorsFact(s, i).coded(),
		modalitiesFact(s, i).coded(), languagesFact(s, i).coded(), residencyFact(s, i).coded(),
		splitFact(s, i).coded(), remoteCodeFact(s, i).coded(), documentationFact(s, i).coded(),
	}
}

func (f fact) coded() codedFact { return codedFact{uint16(f.codes), f.stated, f.unknown} }

// code works out what the spec states in codes.
func (s *Spec) code() codedFacts {
	c := codedFacts{tags: tagTable(s), inputs: make([]inputFacts, len(s.Inputs))}
	for i := range s.Inputs {
		in := &c.inputs[i]
		in.kind = kindOf(s.Inputs[i].Kind)
		c.hasDataset = c.hasDataset || in.kind == datasetKind
		in.coded = s.codedInput(i)
	}
	return c
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
	coded := s.code()
	f.reset(s, &coded, matcher)
	return f
}

func (f *facts) reset(s *Spec, coded *codedFacts, matcher *phraseMatcher) {
	f.spec, f.codedFacts = s, coded
	f.hits, f.obfuscations = nil, nil
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
	stated  bool    // somebody said something, even "unknown"
	unknown bool    // what was said leaves it open; values may still name some
	codes   codeSet // the known values of a fact with a closed list
	key     string  // where it stands, or where it would; see place
	nth     int
}

// codeSet has a bit for each code of a closed list, in the order of the list.
type codeSet uint64

func codesOf(list []string, codes ...string) (set codeSet) {
	for _, c := range codes {
		set |= codeOf(list, c)
	}
	return set
}

// codeOf is the set of one code; others than those of the list are refused when a spec is parsed.
func codeOf(list []string, code string) codeSet {
	for i, c := range list {
		if c == code {
			return 1 << i
		}
	}
	return 0
}

// names lists the codes of a set.
func (s codeSet) names(list []string) (names []string) {
	for i, name := range list {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// factDef describes one fact of the vocabulary of facts.
type factDef struct {
	name    string
	perSpec bool     // belongs to the spec; input-level terms reach it with the prefix "spec."
	list    bool     // may have several values; CEL sees a list
	codes   []string // closed list of values; nil = open text
	say     string   // how to state it, as YAML, for the person who has to
	get     func(s *Spec, input int) fact
	texts   func(s *Spec, input int) []string // the values as they are written, where codes do not say it
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
	{name: "kind", codes: inputKinds, say: "kind: dataset",
		get: kindFact},
	{name: "sources.kind", list: true, codes: sourceKinds, say: "sources: [{kind: licensed}]", get: sourceKindFact, texts: sourceKindTexts},
	{name: "collection.geography", list: true, say: "collection: {geography: [DE]}",
		get:   geographyFact,
		texts: func(s *Spec, i int) []string { return standing(s.Inputs[i].geography()) }},
	{name: "license.status", codes: licenseStatuses, say: "license: {declared: [{spdx: CC-BY-4.0}]}", get: licenseStatusFact},
	{name: "license.restrictions", list: true, codes: restrictionCodes, say: "license: {declared: [{spdx: CC-BY-4.0}]}", get: licenseRestrictionsFact},
	{name: "license.tdm", codes: tdmCodes, say: "license: {tdm: not_reserved}",
		get: tdmFact},
	{name: "consent.status", codes: consentCodes, say: "consent: {status: documented, docs: [URL]}",
		get: consentFact},
	{name: "integrity", codes: integrityStates, say: "digests: [{alg: sha256, value: …}]", get: integrityFact},
	{name: "lineage.parents", codes: parentStates, say: "lineage: {derived_from: []}", get: lineageParentsFact},
	{name: "lineage.generators", codes: generatorStates, say: "lineage: {generated_by_models: [{ref: MODEL}]}", get: lineageGeneratorsFact},
	{name: "shape.modalities", list: true, codes: modalityCodes, say: "shape: {modalities: [text]}",
		get:   modalitiesFact,
		texts: func(s *Spec, i int) []string { return s.Inputs[i].modalities() }},
	{name: "shape.languages", list: true, say: "shape: {languages: [en]}",
		get:   languagesFact,
		texts: func(s *Spec, i int) []string { return standing(s.Inputs[i].languages()) }},
	{name: "residency.allowed", codes: yesNo, say: "residency: {stored_in: [DE], processed_in: [DE], excluded: []}", get: residencyFact},
	{name: "split", codes: splitCodes, say: "split: train", get: splitFact},
	{name: "trust_remote_code", codes: yesNo, say: "trust_remote_code: false", get: remoteCodeFact},
	{name: "documentation", codes: documentationStates, say: "description: …, creators: [{name: …}]", get: documentationFact},

	{name: "objective.kind", perSpec: true, codes: objectiveKinds, say: "objective: {kind: sft}",
		get: func(s *Spec, _ int) fact { return one(s.Objective.Kind, objectiveKinds, "/objective/kind") }},
	{name: "objective.purposes", perSpec: true, list: true, codes: purposeCodes, say: "objective: {purposes: [customer_support]}",
		get:   func(s *Spec, _ int) fact { return many(s.Objective.Purposes, purposeCodes, "/objective/purposes") },
		texts: func(s *Spec, _ int) []string { return s.Objective.Purposes }},
	{name: "objective.markets", perSpec: true, list: true, say: "objective: {markets: [EU]}",
		get:   func(s *Spec, _ int) fact { return many(s.Objective.Markets, nil, "/objective/markets") },
		texts: func(s *Spec, _ int) []string { return s.Objective.Markets }},
	{name: "base_model.stated", perSpec: true, codes: yesNo, say: "base_model: ID",
		get: func(s *Spec, _ int) fact { return either(s.BaseModel != "", "/base_model") }},
	{name: "sources.open", perSpec: true, list: true, codes: openCodes, say: "sources: [{…, open: []}]", get: openPointsFact},
}

var factIndex = func() map[string]int {
	m := make(map[string]int, len(factDefs))
	for i, d := range factDefs {
		m[d.name] = i
	}
	return m
}()

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
// the spec.
func (f *facts) get(col, input int) fact { return factDefs[col].get(f.spec, input) }

// coded is what get finds, but for the place where it stands.
func (f *facts) coded(col, input int) (codes codeSet, stated, unknown bool) {
	if col < numInputFacts {
		c := &f.inputs[input].coded[col]
		return codeSet(c.codes), c.stated, c.unknown
	}
	v := f.get(col, input)
	return v.codes, v.stated, v.unknown
}

// values lists the known values of a fact.
func (f *facts) values(col, input int) []string {
	def := &factDefs[col]
	if def.texts != nil {
		return def.texts(f.spec, input)
	}
	return f.get(col, input).codes.names(def.codes)
}

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
	return fact{stated: true, unknown: code == "unknown", codes: codeOf(codes, code), key: key}
}

// many is a fact with codes of a closed list, of which only "unknown" leaves it open.
func many(values, codes []string, key string) fact {
	return fact{stated: len(values) > 0, unknown: slices.Contains(values, "unknown"), codes: codesOf(codes, values...), key: key}
}

// free is a fact with values in free text: a placeholder states nothing, and leaves it open.
func free(values []string, key string) fact {
	f := fact{stated: len(values) > 0, key: key}
	for _, v := range values {
		f.unknown = f.unknown || !stands(v)
	}
	return f
}

func (in *Input) geography() []string {
	if in.Collection == nil {
		return nil
	}
	return in.Collection.Geography
}

func (in *Input) languages() []string {
	if in.Shape == nil {
		return nil
	}
	return in.Shape.Languages
}

func (in *Input) modalities() []string {
	if in.Shape == nil {
		return nil
	}
	return in.Shape.Modalities
}

// standing is the values that say something.
func standing(values []string) (all []string) {
	for _, v := range values {
		if stands(v) {
			all = append(all, v)
		}
	}
	return all
}

// either is a fact that is known, with the first or the second of its codes.
func either(first bool, key string) fact {
	if first {
		return fact{stated: true, codes: firstCode, key: key}
	}
	return fact{stated: true, codes: secondCode, key: key}
}

const (
	firstCode codeSet = 1 << iota
	secondCode
	thirdCode
)

func kindFact(s *Spec, i int) fact { return one(s.Inputs[i].Kind, inputKinds, "/kind") }

func geographyFact(s *Spec, i int) fact {
	return free(s.Inputs[i].geography(), "/collection/geography")
}

func tdmFact(s *Spec, i int) fact { return one(s.Inputs[i].License.TDM, tdmCodes, "/license/tdm") }

func consentFact(s *Spec, i int) fact {
	return one(s.Inputs[i].Consent.Status, consentCodes, "/consent/status")
}

func modalitiesFact(s *Spec, i int) fact {
	return many(s.Inputs[i].modalities(), modalityCodes, "/shape/modalities")
}

func languagesFact(s *Spec, i int) fact { return free(s.Inputs[i].languages(), "/shape/languages") }

func sourceKindFact(s *Spec, i int) fact {
	sources := s.Inputs[i].Sources
	found := fact{stated: len(sources) > 0, key: "/sources"}
	for j := range sources {
		found.codes |= codeOf(sourceKinds, sources[j].Kind)
		found.unknown = found.unknown || sources[j].Kind == "unknown"
	}
	return found
}

func sourceKindTexts(s *Spec, i int) (kinds []string) {
	for _, s := range s.Inputs[i].Sources {
		kinds = append(kinds, s.Kind)
	}
	return kinds
}

// splitFact: a custom split may overlap any of the others.
func splitFact(s *Spec, i int) fact {
	found := one(s.Inputs[i].Split, splitCodes, "/split")
	found.unknown = s.Inputs[i].Split == "custom"
	return found
}

// integrityFact is always known: either the bytes are pinned by a digest or an
// immutable revision, or they are not.
func integrityFact(s *Spec, i int) fact {
	in := &s.Inputs[i]
	for j := range in.Digests {
		if in.Digests[j].Valid() {
			return fact{stated: true, codes: firstCode, key: "/digests", nth: j + 1}
		}
	}
	if isHex(in.Revision, 40) || isHex(in.Revision, 64) {
		return either(true, "/revision")
	}
	return either(false, "/digests")
}

// Valid reports whether the checksum can be one: real files carry issue URLs,
// "main" and "TBD" in this field.
func (d Digest) Valid() bool {
	n, ok := digestHexLen[d.Alg]
	return ok && isHex(d.Value, n)
}

// Pins reports whether the checksum says which bytes an input has, to anybody
// who does not trust its source: it is well formed, and nobody can make other
// bytes with the same one.
func (d Digest) Pins() bool { return d.Valid() && d.Alg != "md5" && d.Alg != "sha1" }

// isHex reports whether s is n hex digits; n is a multiple of eight.
func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for ; len(s) >= 8; s = s[8:] {
		x := load8(s, 0)
		if x&highBits != 0 || laneRange(x, '0', '9')|laneRange(x|0x20*lanes, 'a', 'f') != highBits {
			return false
		}
	}
	return true
}

// lineageParentsFact: a parent is recorded if it is an input of this spec, so
// that its own record is screened too.
func lineageParentsFact(s *Spec, i int) fact {
	found := fact{key: "/lineage"}
	lineage := s.Inputs[i].Lineage
	if lineage == nil {
		return found
	}
	found.stated, found.codes = true, firstCode
	for _, list := range [...]struct {
		key  string
		refs []LineageRef
	}{{"/lineage/derived_from", lineage.DerivedFrom}, {"/lineage/base_models", lineage.BaseModels}, {"/lineage/generated_by_models", lineage.GeneratedByModels}} {
		for j := range list.refs {
			if !s.recorded(list.refs[j].Ref, i) {
				return fact{stated: true, codes: thirdCode, key: list.key, nth: j + 1}
			}
			found.codes = secondCode
		}
	}
	return found
}

// recorded reports whether a parent of an input is another input.
func (s *Spec) recorded(ref string, of int) bool {
	for i := range s.Inputs {
		if s.Inputs[i].ID == ref && ref != s.Inputs[of].ID {
			return true
		}
	}
	return false
}

func lineageGeneratorsFact(s *Spec, i int) fact {
	found := fact{key: "/lineage/generated_by_models"}
	lineage := s.Inputs[i].Lineage
	if lineage == nil {
		return found
	}
	found.stated = true
	for _, g := range lineage.GeneratedByModels {
		if stands(g.Ref) {
			found.codes = secondCode
		} else {
			found.unknown = true
		}
	}
	if len(lineage.GeneratedByModels) == 0 {
		found.codes = firstCode
	}
	return found
}

// residencyFact compares where data is with where it must not be. One place
// that is excluded is enough for no; for yes all three lists have to be stated.
func residencyFact(s *Spec, i int) fact {
	r := s.Inputs[i].Residency
	if r == nil {
		return fact{key: "/residency"}
	}
	found := fact{key: "/residency", stated: len(r.StoredIn) > 0 || len(r.ProcessedIn) > 0}
	found.unknown = len(r.StoredIn) == 0 || len(r.ProcessedIn) == 0 || r.Excluded == nil
	for _, list := range [...]struct {
		key    string
		places []string
	}{{"/residency/stored_in", r.StoredIn}, {"/residency/processed_in", r.ProcessedIn}} {
		for i, p := range list.places {
			for _, banned := range r.Excluded {
				switch {
				case within(p, banned), p == "worldwide":
					return fact{stated: true, codes: secondCode, key: list.key, nth: i + 1}
				case within(banned, p): // somewhere in the EU, and one member is excluded
					found.unknown = true
				}
			}
		}
	}
	if !found.unknown {
		found.codes = firstCode
	}
	return found
}

// within reports whether all of a region lies in another.
func within(region, other string) bool {
	return region == other || other == "worldwide" || other == "EU" && slices.Contains(euMembers, region)
}

// openPointsFact is always known: a spec that was not imported has nothing open.
func openPointsFact(s *Spec, _ int) fact {
	found := fact{stated: true, key: "/sources"}
	for i := range s.Sources {
		for j := range s.Sources[i].Open {
			found.codes |= codeOf(openCodes, s.Sources[i].Open[j].Code)
			if found.nth == 0 {
				found.nth = i + 1
			}
		}
	}
	return found
}

func remoteCodeFact(s *Spec, i int) fact {
	stated := s.Inputs[i].TrustRemoteCode
	if stated == nil {
		return fact{key: "/trust_remote_code"}
	}
	return either(*stated, "/trust_remote_code")
}

func documentationFact(s *Spec, i int) fact {
	described, made := s.Inputs[i].documented()
	key := "/description"
	if described && !made {
		key = "/creators"
	}
	return either(described && made, key)
}

// documented tells whether an input says what it holds, and who made or published it.
func (in *Input) documented() (described, made bool) {
	named := func(p Party) bool { return stands(p.Name) }
	return stands(in.Description), slices.ContainsFunc(in.Creators, named) || in.Publisher != nil && named(*in.Publisher)
}

// stands reports whether a text says something: it is neither blank nor a placeholder.
func stands(s string) bool {
	return !IsBlank(s) && !IsPlaceholder(s)
}
