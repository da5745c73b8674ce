package screening

import "strconv"

// purposePointer is the free-text purpose: a phrase in it is at most a hint.
const purposePointer = "/objective/purpose"

// textFields lists every text of a spec that is not a checked code or id, with
// its pointer and the input it belongs to. Phrases are looked for in all of them:
// leaving one out would be the place to write what must not be found.
func textFields(s *Spec) (fields []textField, owner []int) {
	t := textWalk{input: wholeSpec}
	t.add(purposePointer, "", s.Objective.Purpose)
	t.list("/objective/out_of_scope", s.Objective.OutOfScope)
	t.disclosures("", s.Disclosures)
	if e := s.Evidence.Examples; e != nil {
		t.list("/evidence/examples/ids", e.IDs)
	}
	t.add("/disclosure_statement", "", s.DisclosureStatement)
	for i := range s.Inputs {
		t.input = i
		t.record(&s.Inputs[i], inputPointer(i))
	}
	return t.fields, t.owner
}

type textWalk struct {
	fields []textField
	owner  []int
	input  int
}

func (t *textWalk) add(at, key, text string) {
	if text != "" { // most are empty, and cost no pointer
		t.fields = append(t.fields, textField{pointer: at + key, text: text})
		t.owner = append(t.owner, t.input)
	}
}

func (t *textWalk) list(pointer string, texts []string) {
	for i, text := range texts {
		t.add(item(pointer, i), "", text)
	}
}

func item(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

func (t *textWalk) disclosures(at string, ds []Disclosure) {
	for i, d := range ds {
		if d.Scope != "" || d.Detail != "" {
			p := item(at+"/disclosures", i)
			t.add(p, "/scope", d.Scope)
			t.add(p, "/detail", d.Detail)
		}
	}
}

func (t *textWalk) party(at string, p Party) {
	t.add(at, "/name", p.Name)
	t.add(at, "/type", p.Type)
	t.add(at, "/url", p.URL)
}

func (t *textWalk) parents(at string, refs []LineageRef) {
	for i, r := range refs {
		p := item(at, i)
		t.add(p, "/ref", r.Ref)
		t.add(p, "/label", r.Label)
		t.add(p, "/license", r.License)
	}
}

func (t *textWalk) record(in *Input, at string) {
	t.add(at, "/name", in.Name)
	t.add(at, "/description", in.Description)
	t.add(at, "/version", in.Version)
	t.add(at, "/revision", in.Revision)
	t.list(at+"/uris", in.URIs)
	for i, d := range in.Digests {
		p := item(at+"/digests", i)
		if !d.valid() {
			t.add(p, "/value", d.Value)
		}
		t.add(p, "/of", d.Of)
	}
	for i, src := range in.Sources {
		t.add(item(at+"/sources", i), "/detail", src.Detail)
	}
	c := in.Collection
	t.list(at+"/collection/methods", c.Methods)
	t.add(at, "/collection/description", c.Description)
	t.add(at, "/collection/start", c.Start)
	t.add(at, "/collection/end", c.End)
	t.list(at+"/collection/geography", c.Geography)
	t.add(at, "/collection/crawler", c.Crawler)
	for i, p := range in.Creators {
		t.party(item(at+"/creators", i), p)
	}
	t.party(at+"/publisher", in.Publisher)
	t.party(at+"/issuer", in.Issuer)
	for i, l := range in.License.Declared {
		p := item(at+"/license/declared", i)
		t.add(p, "/raw", l.Raw)
		t.add(p, "/spdx", l.SPDX)
		t.add(p, "/url", l.URL)
		t.add(p, "/scope", l.Scope)
	}
	t.add(at, "/license/concluded", in.License.Concluded)
	t.add(at, "/license/copyright", in.License.Copyright)
	t.list(at+"/consent/docs", in.Consent.Docs)
	d := in.Dates
	t.add(at, "/dates/created", d.Created)
	t.add(at, "/dates/issued", d.Issued)
	t.add(at, "/dates/modified", d.Modified)
	t.add(at, "/dates/previous", d.Previous)
	t.add(at, "/dates/retrieved", d.Retrieved)
	t.add(at, "/dates/released", d.Released)
	if l := in.Lineage; l != nil {
		t.parents(at+"/lineage/derived_from", l.DerivedFrom)
		t.parents(at+"/lineage/base_models", l.BaseModels)
		t.parents(at+"/lineage/generated_by_models", l.GeneratedByModels)
		t.parents(at+"/lineage/activities", l.Activities)
	}
	t.add(at, "/shape/size_raw", in.Shape.SizeRaw)
	t.add(at, "/shape/size_band", in.Shape.SizeBand)
	t.add(at, "/shape/records", in.Shape.Records)
	t.list(at+"/shape/languages", in.Shape.Languages)
	t.disclosures(at, in.Disclosures)
}
