package screening

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Limits of a spec's parts beyond the document's.
const (
	maxInputs     = 500
	maxNameBytes  = 256
	maxStatements = 2_000
	maxSources    = 64
	maxOpenPoints = 1_000
)

// check gives every rule that the spec breaks. Plain code rather than struct
// tags: the reader needs a pointer and a reason, and the input array is the hot
// path.
func (s *Spec) check() problems {
	var ps problems
	if s.Schema != SpecSchema {
		ps.add("/schema", "must be %q", SpecSchema)
	}
	if !isRef(s.RunRef) {
		ps.add("/run_ref", "must name the run in 1 to 256 letters, digits or . _ / @ : + -, for example nlp/support-bot@2026-11")
	}
	checkPerson(&ps, ofSpec("/owner"), s.Owner, true)
	checkPerson(&ps, ofSpec("/on_behalf_of"), s.OnBehalfOf, false)
	checkID(&ps, ofSpec("/team"), s.Team, false)
	s.Objective.check(&ps)

	if len(s.Inputs) > maxInputs {
		ps.add("/inputs", "has more than %d inputs", maxInputs)
		return ps
	}
	ids := newInputIDs(s.Inputs)
	statements := len(s.Disclosures)
	for i := range s.Inputs {
		in := &s.Inputs[i]
		checkID(&ps, place{input: i, key: "/id"}, in.ID, true)
		if first := ids.first(in.ID); first < i && in.ID != "" {
			ps.addAt(place{input: i, key: "/id"}, "is also the id of /inputs/%d; ids must differ", first)
		}
		in.check(&ps, i)
		statements += len(in.Disclosures)
	}
	if statements > maxStatements {
		ps.add("/disclosures", "together with the inputs' has more than %d disclosures", maxStatements)
	}
	if s.BaseModel != "" {
		if i := ids.first(s.BaseModel); i == len(s.Inputs) {
			ps.add("/base_model", "names no input; it must be the id of an input of kind base_model")
		} else if s.Inputs[i].Kind != "base_model" {
			ps.add("/base_model", "names an input that is not of kind base_model")
		}
	}
	checkDisclosures(&ps, wholeSpec, s.Disclosures)
	if e := s.Evidence.Examples; e != nil {
		if _, err := ParseDigest256(e.SHA256); err != nil {
			ps.add("/evidence/examples/sha256", "must be 64 lower-case hex digits")
		}
		if e.Count < 0 || e.Hits < 0 || e.Hits > e.Count {
			ps.add("/evidence/examples/hits", "must be between 0 and count")
		}
	}
	s.checkSources(&ps)
	return ps
}

func (s *Spec) checkSources(ps *problems) {
	if len(s.Sources) > maxSources {
		ps.add("/sources", "has more than %d files", maxSources)
		return
	}
	open := 0
	for i := range s.Sources {
		f := &s.Sources[i]
		at := func(sub string) place { return place{wholeSpec, "/sources", i + 1, sub} }
		if IsBlank(f.Name) || len(f.Name) > maxNameBytes {
			ps.addAt(at("/name"), "must name the file in 1 to %d bytes", maxNameBytes)
		}
		checkID(ps, at("/format"), f.Format, true)
		digest, err := ParseDigest256(f.SHA256)
		if err != nil {
			ps.addAt(at("/sha256"), "must be 64 lower-case hex digits")
		}
		if len(f.Bytes) > 0 {
			kept, bad := base64.StdEncoding.DecodeString(strings.Join(f.Bytes, ""))
			switch {
			case bad != nil:
				ps.addAt(at("/bytes"), "must be the file in standard base64 with padding, cut into parts")
			case err == nil && Sum(kept) != digest:
				ps.addAt(at("/sha256"), "is not the digest of the bytes that are given")
			}
		}
		for j := range f.Open {
			checkCode(ps, at("/open/"+strconv.Itoa(j)+"/code"), f.Open[j].Code, openCodes, true)
		}
		open += len(f.Open)
	}
	if open > maxOpenPoints {
		ps.add("/sources", "have more than %d open points together", maxOpenPoints)
	}
}

// inputIDs finds inputs by id; few are found faster by looking at them all.
type inputIDs struct {
	inputs []Input
	index  map[string]int
}

func newInputIDs(inputs []Input) inputIDs {
	ids := inputIDs{inputs: inputs}
	if len(inputs) > 16 {
		ids.index = make(map[string]int, len(inputs))
		for i := len(inputs) - 1; i >= 0; i-- {
			ids.index[inputs[i].ID] = i
		}
	}
	return ids
}

// first is the index of the first input with the id, the number of inputs if there is none.
func (x *inputIDs) first(id string) int {
	if x.index != nil {
		if i, ok := x.index[id]; ok {
			return i
		}
		return len(x.inputs)
	}
	for i := range x.inputs {
		if x.inputs[i].ID == id {
			return i
		}
	}
	return len(x.inputs)
}

func ofSpec(key string) place { return place{input: wholeSpec, key: key} }

func (o *Objective) check(ps *problems) {
	checkCode(ps, ofSpec("/objective/kind"), o.Kind, objectiveKinds, true)
	checkCodes(ps, ofSpec("/objective/purposes"), o.Purposes, purposeCodes)
	checkRegions(ps, ofSpec("/objective/markets"), o.Markets)
}

func (in *Input) check(ps *problems, i int) {
	at := func(key string) place { return place{input: i, key: key} }
	checkCode(ps, at("/kind"), in.Kind, inputKinds, true)
	for j := range in.Digests {
		if _, ok := digestHexLen[in.Digests[j].Alg]; !ok {
			ps.addAt(place{i, "/digests", j + 1, "/alg"}, "must be one of sha256, sha384, sha512, blake3, md5, sha1")
		}
	}
	for j := range in.Sources {
		checkCode(ps, place{i, "/sources", j + 1, "/kind"}, in.Sources[j].Kind, sourceKinds, true)
	}
	checkCodes(ps, at("/license/restrictions"), in.License.Restrictions, restrictionCodes)
	checkCode(ps, at("/license/tdm"), in.License.TDM, tdmCodes, false)
	checkCode(ps, at("/consent/status"), in.Consent.Status, consentCodes, false)
	checkCode(ps, at("/split"), in.Split, splitCodes, false)
	checkCodes(ps, at("/shape/modalities"), in.modalities(), modalityCodes)
	if r := in.Residency; r != nil {
		checkRegions(ps, at("/residency/stored_in"), r.StoredIn)
		checkRegions(ps, at("/residency/processed_in"), r.ProcessedIn)
		checkRegions(ps, at("/residency/excluded"), r.Excluded)
	}
	checkDisclosures(ps, i, in.Disclosures)
}

func checkRegions(ps *problems, at place, regions []string) {
	for i, r := range regions {
		if !isRegion(r) {
			at.nth = i + 1
			ps.addAt(at, "must be a two-letter ISO 3166 country code in capitals, EU, or worldwide")
		}
	}
}

func checkDisclosures(ps *problems, input int, ds []Disclosure) {
	for i := range ds {
		d := &ds[i]
		if _, ok := tagIndex[d.Tag]; !ok {
			names := make([]string, len(tags))
			for i, t := range tags {
				names[i] = t.name
			}
			ps.addAt(place{input, "/disclosures", i + 1, "/tag"}, "must be one of %s", oneOf(names))
		}
		checkCode(ps, place{input, "/disclosures", i + 1, "/state"}, d.State, stateCodes, true)
		checkCode(ps, place{input, "/disclosures", i + 1, "/basis"}, d.Basis, basisCodes, true)
	}
}

func checkCodes(ps *problems, at place, values, codes []string) {
	for i, v := range values {
		at.nth = i + 1
		checkCode(ps, at, v, codes, true)
	}
}

func checkCode(ps *problems, at place, value string, codes []string, required bool) {
	if value == "" && !required {
		return
	}
	if !slices.Contains(codes, value) {
		ps.addAt(at, "must be one of %s", oneOf(codes))
	}
}

// checkID checks an id of a person, team, input, policy or endpoint.
func checkID(ps *problems, at place, id string, required bool) {
	if id == "" && !required {
		return
	}
	if !IsID(id) {
		ps.addAt(at, "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
	}
}

// checkPerson checks the form of a person's id or alias; whether it is anybody is not the spec's to know.
func checkPerson(ps *problems, at place, name string, required bool) {
	if name == "" && !required {
		return
	}
	if !isRef(name) {
		ps.addAt(at, "must be a person's id or alias as declared in people.yaml")
	}
}

// IsID reports whether s can name a person, service, group, team, input,
// policy, endpoint or project: 1 to 128 ASCII letters, digits, '.', '_' or '-',
// starting with a letter or digit.
func IsID(s string) bool {
	if s == "" || len(s) > 128 || !isAlnum(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isAlnum(s[i]) && !strings.ContainsRune("._-", rune(s[i])) {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isRef(s string) bool {
	if s == "" || len(s) > maxNameBytes {
		return false
	}
	for i := range len(s) {
		if !isAlnum(s[i]) && !strings.ContainsRune("._/@:+-", rune(s[i])) {
			return false
		}
	}
	return true
}

func isRegion(s string) bool {
	if s == "worldwide" {
		return true
	}
	return len(s) == 2 && 'A' <= s[0] && s[0] <= 'Z' && 'A' <= s[1] && s[1] <= 'Z'
}

// brailleBlank is a visible symbol by its category and blank to the eye.
const brailleBlank = '\u2800'

// IsBlank reports whether s has nothing a reader could see: only white space,
// controls and invisible characters.
func IsBlank(s string) bool {
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && !isIgnorable(r) && r != brailleBlank {
			return false
		}
	}
	return true
}
