package screening

import "strconv"

// purposeKey is the free-text purpose: a phrase in it is at most a hint.
const purposeKey = "/objective/purpose"

var purpose = place{input: wholeSpec, key: purposeKey}

// textField is one text of a spec and where it stands.
type textField struct {
	at   place
	text string
}

// textFields lists, in the room of fields, every text of a spec that is not a
// checked code, and the names that a submitter chooses freely. Phrases are looked
// for in all of them: leaving one out would be the place to write what must not
// be found.
func textFields(s *Spec, fields []textField) []textField {
	t := textWalk{fields: fields[:0], input: wholeSpec}
	t.add(purposeKey, s.Objective.Purpose)
	t.list("/objective/out_of_scope", s.Objective.OutOfScope)
	t.disclosures(s.Disclosures)
	if e := s.Evidence.Examples; e != nil {
		t.list("/evidence/examples/ids", e.IDs)
	}
	t.add("/disclosure_statement", s.DisclosureStatement)
	for i := range s.Sources {
		t.addItem("/sources", i+1, "/name", s.Sources[i].Name)
		for j, open := range s.Sources[i].Open {
			t.addItem("/sources", i+1, "/open/"+strconv.Itoa(j)+"/pointer", open.Pointer)
			t.addItem("/sources", i+1, "/open/"+strconv.Itoa(j)+"/detail", open.Detail)
		}
	}
	t.add("/run_ref", s.RunRef)
	t.add("/team", s.Team)
	for i := range s.Inputs {
		t.input = i
		t.record(&s.Inputs[i])
	}
	return t.fields
}

type textWalk struct {
	fields []textField
	input  int
}

func (t *textWalk) add(key, text string) { t.addItem(key, 0, "", text) }

func (t *textWalk) addItem(key string, nth int, sub, text string) {
	if text != "" {
		t.fields = append(t.fields, textField{place{t.input, key, nth, sub}, text})
	}
}

func (t *textWalk) list(key string, texts []string) {
	for i, text := range texts {
		t.addItem(key, i+1, "", text)
	}
}

func (t *textWalk) disclosures(ds []Disclosure) {
	for i := range ds {
		t.addItem("/disclosures", i+1, "/scope", ds[i].Scope)
		t.addItem("/disclosures", i+1, "/detail", ds[i].Detail)
	}
}

func (t *textWalk) parents(key string, refs []LineageRef) {
	for i := range refs {
		t.addItem(key, i+1, "/ref", refs[i].Ref)
		t.addItem(key, i+1, "/label", refs[i].Label)
		t.addItem(key, i+1, "/license", refs[i].License)
	}
}

func (t *textWalk) record(in *Input) {
	t.add("/id", in.ID)
	t.add("/name", in.Name)
	t.add("/description", in.Description)
	t.add("/version", in.Version)
	t.add("/revision", in.Revision)
	t.list("/uris", in.URIs)
	for i := range in.Digests {
		d := &in.Digests[i]
		if !d.Valid() {
			t.addItem("/digests", i+1, "/value", d.Value)
		}
		t.addItem("/digests", i+1, "/of", d.Of)
	}
	for i := range in.Sources {
		t.addItem("/sources", i+1, "/detail", in.Sources[i].Detail)
	}
	if c := in.Collection; c != nil {
		t.list("/collection/methods", c.Methods)
		t.add("/collection/description", c.Description)
		t.add("/collection/start", c.Start)
		t.add("/collection/end", c.End)
		t.list("/collection/geography", c.Geography)
		t.add("/collection/crawler", c.Crawler)
	}
	for i := range in.Creators {
		p := &in.Creators[i]
		t.addItem("/creators", i+1, "/name", p.Name)
		t.addItem("/creators", i+1, "/type", p.Type)
		t.addItem("/creators", i+1, "/url", p.URL)
	}
	if p := in.Publisher; p != nil {
		t.add("/publisher/name", p.Name)
		t.add("/publisher/type", p.Type)
		t.add("/publisher/url", p.URL)
	}
	if p := in.Issuer; p != nil {
		t.add("/issuer/name", p.Name)
		t.add("/issuer/type", p.Type)
		t.add("/issuer/url", p.URL)
	}
	for i := range in.License.Declared {
		l := &in.License.Declared[i]
		t.addItem("/license/declared", i+1, "/raw", l.Raw)
		t.addItem("/license/declared", i+1, "/spdx", l.SPDX)
		t.addItem("/license/declared", i+1, "/url", l.URL)
		t.addItem("/license/declared", i+1, "/scope", l.Scope)
	}
	t.add("/license/concluded", in.License.Concluded)
	t.add("/license/copyright", in.License.Copyright)
	t.list("/consent/docs", in.Consent.Docs)
	if d := in.Dates; d != nil {
		t.add("/dates/created", d.Created)
		t.add("/dates/issued", d.Issued)
		t.add("/dates/modified", d.Modified)
		t.add("/dates/previous", d.Previous)
		t.add("/dates/retrieved", d.Retrieved)
		t.add("/dates/released", d.Released)
	}
	if l := in.Lineage; l != nil {
		t.parents("/lineage/derived_from", l.DerivedFrom)
		t.parents("/lineage/base_models", l.BaseModels)
		t.parents("/lineage/generated_by_models", l.GeneratedByModels)
		t.parents("/lineage/activities", l.Activities)
	}
	if f := in.Shape; f != nil {
		t.add("/shape/size_raw", f.SizeRaw)
		t.add("/shape/size_band", f.SizeBand)
		t.add("/shape/records", f.Records)
		t.list("/shape/languages", f.Languages)
	}
	t.disclosures(in.Disclosures)
}
