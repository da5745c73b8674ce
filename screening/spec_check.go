package screening

import (
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
	checkPerson(&ps, "/owner", s.Owner, true)
	checkPerson(&ps, "/on_behalf_of", s.OnBehalfOf, false)
	checkID(&ps, "/team", s.Team, false)
	s.Objective.check(&ps)

	if len(s.Inputs) > maxInputs {
		ps.add("/inputs", "has more than %d inputs", maxInputs)
		return ps
	}
	seen := make(map[string]int, len(s.Inputs))
	statements := len(s.Disclosures)
	for i := range s.Inputs {
		in, at := &s.Inputs[i], "/inputs/"+strconv.Itoa(i)
		checkID(&ps, at+"/id", in.ID, true)
		if first, dup := seen[in.ID]; dup && in.ID != "" {
			ps.add(at+"/id", "is also the id of /inputs/%d; ids must differ", first)
		} else {
			seen[in.ID] = i
		}
		in.check(&ps, at)
		statements += len(in.Disclosures)
	}
	if statements > maxStatements {
		ps.add("/disclosures", "together with the inputs' has more than %d disclosures", maxStatements)
	}
	if s.BaseModel != "" {
		if i, ok := seen[s.BaseModel]; !ok {
			ps.add("/base_model", "names no input; it must be the id of an input of kind base_model")
		} else if s.Inputs[i].Kind != "base_model" {
			ps.add("/base_model", "names an input that is not of kind base_model")
		}
	}
	checkDisclosures(&ps, "", s.Disclosures)
	if e := s.Evidence.Examples; e != nil {
		if _, err := ParseDigest256(e.SHA256); err != nil {
			ps.add("/evidence/examples/sha256", "must be 64 lower-case hex digits")
		}
		if e.Count < 0 || e.Hits < 0 || e.Hits > e.Count {
			ps.add("/evidence/examples/hits", "must be between 0 and count")
		}
	}
	return ps
}

func (o *Objective) check(ps *problems) {
	checkCode(ps, "/objective/kind", o.Kind, objectiveKinds, true)
	for i, p := range o.Purposes {
		checkCode(ps, "/objective/purposes/"+strconv.Itoa(i), p, purposeCodes, true)
	}
	checkRegions(ps, "/objective/markets", o.Markets)
}

func (in *Input) check(ps *problems, at string) {
	checkCode(ps, at+"/kind", in.Kind, inputKinds, true)
	for i, d := range in.Digests {
		p := at + "/digests/" + strconv.Itoa(i)
		if _, ok := digestHexLen[d.Alg]; !ok {
			ps.add(p+"/alg", "must be one of sha256, sha384, sha512, blake3, md5, sha1")
		}
	}
	for i, src := range in.Sources {
		checkCode(ps, at+"/sources/"+strconv.Itoa(i)+"/kind", src.Kind, sourceKinds, true)
	}
	for i, r := range in.License.Restrictions {
		checkCode(ps, at+"/license/restrictions/"+strconv.Itoa(i), r, restrictionCodes, true)
	}
	checkCode(ps, at+"/license/tdm", in.License.TDM, tdmCodes, false)
	checkCode(ps, at+"/consent/status", in.Consent.Status, consentCodes, false)
	checkCode(ps, at+"/split", in.Split, splitCodes, false)
	for i, m := range in.Shape.Modalities {
		checkCode(ps, at+"/shape/modalities/"+strconv.Itoa(i), m, modalityCodes, true)
	}
	checkRegions(ps, at+"/residency/stored_in", in.Residency.StoredIn)
	checkRegions(ps, at+"/residency/processed_in", in.Residency.ProcessedIn)
	checkRegions(ps, at+"/residency/excluded", in.Residency.Excluded)
	checkDisclosures(ps, at, in.Disclosures)
}

func checkRegions(ps *problems, at string, regions []string) {
	for i, r := range regions {
		if !isRegion(r) {
			ps.add(at+"/"+strconv.Itoa(i), "must be a two-letter ISO 3166 country code in capitals, EU, or worldwide")
		}
	}
}

func checkDisclosures(ps *problems, at string, ds []Disclosure) {
	for i, d := range ds {
		p := at + "/disclosures/" + strconv.Itoa(i)
		if _, ok := tagIndex[d.Tag]; !ok {
			names := make([]string, len(tags))
			for i, t := range tags {
				names[i] = t.name
			}
			ps.add(p+"/tag", "must be one of %s", oneOf(names))
		}
		checkCode(ps, p+"/state", d.State, stateCodes, true)
		checkCode(ps, p+"/basis", d.Basis, basisCodes, true)
	}
}

func checkCode(ps *problems, at, value string, codes []string, required bool) {
	if value == "" && !required {
		return
	}
	if !slices.Contains(codes, value) {
		ps.add(at, "must be one of %s", oneOf(codes))
	}
}

// checkID checks an id of a person, team, input, policy or endpoint.
func checkID(ps *problems, at, id string, required bool) {
	if id == "" && !required {
		return
	}
	if !IsID(id) {
		ps.add(at, "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
	}
}

// checkPerson checks the form of a person's id or alias; whether it is anybody is not the spec's to know.
func checkPerson(ps *problems, at, name string, required bool) {
	if name == "" && !required {
		return
	}
	if !isRef(name) {
		ps.add(at, "must be a person's id or alias as declared in people.yaml")
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

// IsBlank reports whether s has nothing a reader could see: only white space,
// controls and invisible characters.
func IsBlank(s string) bool {
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !isIgnorable(r) {
			return false
		}
	}
	return true
}
