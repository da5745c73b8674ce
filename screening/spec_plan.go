package screening

import "strings"

// The plans say member by member how specReader fills the structs of spec.go: under
// which name, and where it goes. A test holds them to the structs.

var (
	specPlan = newReadPlan(
		readText("schema", func(s *Spec) *string { return &s.Schema }),
		readText("run_ref", func(s *Spec) *string { return &s.RunRef }),
		readText("owner", func(s *Spec) *string { return &s.Owner }),
		readText("on_behalf_of", func(s *Spec) *string { return &s.OnBehalfOf }),
		readText("team", func(s *Spec) *string { return &s.Team }),
		readObject("objective", objectivePlan, func(s *Spec) *Objective { return &s.Objective }),
		readText("base_model", func(s *Spec) *string { return &s.BaseModel }),
		readList("inputs", inputPlan, inputRoom, func(s *Spec) *[]Input { return &s.Inputs }),
		readList("disclosures", disclosurePlan, disclosureRoom, func(s *Spec) *[]Disclosure { return &s.Disclosures }),
		readObject("evidence", evidencePlan, func(s *Spec) *SpecEvidence { return &s.Evidence }),
		readText("disclosure_statement", func(s *Spec) *string { return &s.DisclosureStatement }),
		readList("sources", sourceFilePlan, sourceFileRoom, func(s *Spec) *[]SourceFile { return &s.Sources }),
	)
	objectivePlan = newReadPlan(
		readText("kind", func(o *Objective) *string { return &o.Kind }),
		readText("purpose", func(o *Objective) *string { return &o.Purpose }),
		readTexts("purposes", func(o *Objective) *[]string { return &o.Purposes }),
		readTexts("out_of_scope", func(o *Objective) *[]string { return &o.OutOfScope }),
		readTexts("markets", func(o *Objective) *[]string { return &o.Markets }),
	)
	inputPlan = newReadPlan(
		readText("id", func(in *Input) *string { return &in.ID }),
		readText("kind", func(in *Input) *string { return &in.Kind }),
		readText("name", func(in *Input) *string { return &in.Name }),
		readText("description", func(in *Input) *string { return &in.Description }),
		readText("version", func(in *Input) *string { return &in.Version }),
		readText("revision", func(in *Input) *string { return &in.Revision }),
		readTexts("uris", func(in *Input) *[]string { return &in.URIs }),
		readList("digests", digestPlan, digestRoom, func(in *Input) *[]Digest { return &in.Digests }),
		readList("sources", sourcePlan, sourceRoom, func(in *Input) *[]Source { return &in.Sources }),
		readOptional("collection", collectionPlan, collectionRoom, func(in *Input) **Collection { return &in.Collection }),
		readList("creators", partyPlan, partyRoom, func(in *Input) *[]Party { return &in.Creators }),
		readOptional("publisher", partyPlan, partyRoom, func(in *Input) **Party { return &in.Publisher }),
		readOptional("issuer", partyPlan, partyRoom, func(in *Input) **Party { return &in.Issuer }),
		readObject("license", licensePlan, func(in *Input) *License { return &in.License }),
		readObject("consent", consentPlan, func(in *Input) *Consent { return &in.Consent }),
		readOptional("dates", datesPlan, datesRoom, func(in *Input) **Dates { return &in.Dates }),
		readOptional("lineage", lineagePlan, lineageRoom, func(in *Input) **Lineage { return &in.Lineage }),
		readOptional("shape", shapePlan, shapeRoom, func(in *Input) **Shape { return &in.Shape }),
		readOptional("residency", residencyPlan, residencyRoom, func(in *Input) **Residency { return &in.Residency }),
		readText("split", func(in *Input) *string { return &in.Split }),
		readTruth("trust_remote_code", func(in *Input) **bool { return &in.TrustRemoteCode }),
		readList("disclosures", disclosurePlan, disclosureRoom, func(in *Input) *[]Disclosure { return &in.Disclosures }),
	)
	digestPlan = newReadPlan(
		readText("alg", func(d *Digest) *string { return &d.Alg }),
		readText("value", func(d *Digest) *string { return &d.Value }),
		readText("of", func(d *Digest) *string { return &d.Of }),
	)
	sourcePlan = newReadPlan(
		readText("kind", func(s *Source) *string { return &s.Kind }),
		readText("detail", func(s *Source) *string { return &s.Detail }),
	)
	sourceFilePlan = newReadPlan(
		readText("name", func(s *SourceFile) *string { return &s.Name }),
		readText("format", func(s *SourceFile) *string { return &s.Format }),
		readText("sha256", func(s *SourceFile) *string { return &s.SHA256 }),
		readTexts("bytes", func(s *SourceFile) *[]string { return &s.Bytes }),
		readList("open", openPointPlan, openPointRoom, func(s *SourceFile) *[]OpenPoint { return &s.Open }),
	)
	openPointPlan = newReadPlan(
		readText("code", func(o *OpenPoint) *string { return &o.Code }),
		readText("pointer", func(o *OpenPoint) *string { return &o.Pointer }),
		readText("detail", func(o *OpenPoint) *string { return &o.Detail }),
	)
	collectionPlan = newReadPlan(
		readTexts("methods", func(c *Collection) *[]string { return &c.Methods }),
		readText("description", func(c *Collection) *string { return &c.Description }),
		readText("start", func(c *Collection) *string { return &c.Start }),
		readText("end", func(c *Collection) *string { return &c.End }),
		readTexts("geography", func(c *Collection) *[]string { return &c.Geography }),
		readText("crawler", func(c *Collection) *string { return &c.Crawler }),
	)
	partyPlan = newReadPlan(
		readText("name", func(p *Party) *string { return &p.Name }),
		readText("type", func(p *Party) *string { return &p.Type }),
		readText("url", func(p *Party) *string { return &p.URL }),
	)
	licensePlan = newReadPlan(
		readList("declared", declaredPlan, declaredRoom, func(l *License) *[]DeclaredLicense { return &l.Declared }),
		readText("concluded", func(l *License) *string { return &l.Concluded }),
		readTexts("restrictions", func(l *License) *[]string { return &l.Restrictions }),
		readText("copyright", func(l *License) *string { return &l.Copyright }),
		readText("tdm", func(l *License) *string { return &l.TDM }),
	)
	declaredPlan = newReadPlan(
		readText("raw", func(d *DeclaredLicense) *string { return &d.Raw }),
		readText("spdx", func(d *DeclaredLicense) *string { return &d.SPDX }),
		readText("url", func(d *DeclaredLicense) *string { return &d.URL }),
		readText("scope", func(d *DeclaredLicense) *string { return &d.Scope }),
	)
	consentPlan = newReadPlan(
		readText("status", func(c *Consent) *string { return &c.Status }),
		readTexts("docs", func(c *Consent) *[]string { return &c.Docs }),
	)
	datesPlan = newReadPlan(
		readText("created", func(d *Dates) *string { return &d.Created }),
		readText("issued", func(d *Dates) *string { return &d.Issued }),
		readText("modified", func(d *Dates) *string { return &d.Modified }),
		readText("previous", func(d *Dates) *string { return &d.Previous }),
		readText("retrieved", func(d *Dates) *string { return &d.Retrieved }),
		readText("released", func(d *Dates) *string { return &d.Released }),
	)
	lineagePlan = newReadPlan(
		readList("derived_from", refPlan, refRoom, func(l *Lineage) *[]LineageRef { return &l.DerivedFrom }),
		readList("base_models", refPlan, refRoom, func(l *Lineage) *[]LineageRef { return &l.BaseModels }),
		readList("generated_by_models", refPlan, refRoom, func(l *Lineage) *[]LineageRef { return &l.GeneratedByModels }),
		readList("activities", refPlan, refRoom, func(l *Lineage) *[]LineageRef { return &l.Activities }),
	)
	refPlan = newReadPlan(
		readText("ref", func(l *LineageRef) *string { return &l.Ref }),
		readText("label", func(l *LineageRef) *string { return &l.Label }),
		readText("license", func(l *LineageRef) *string { return &l.License }),
	)
	shapePlan = newReadPlan(
		readText("size_raw", func(s *Shape) *string { return &s.SizeRaw }),
		readText("size_band", func(s *Shape) *string { return &s.SizeBand }),
		readText("records", func(s *Shape) *string { return &s.Records }),
		readTexts("languages", func(s *Shape) *[]string { return &s.Languages }),
		readTexts("modalities", func(s *Shape) *[]string { return &s.Modalities }),
	)
	residencyPlan = newReadPlan(
		readTexts("stored_in", func(r *Residency) *[]string { return &r.StoredIn }),
		readTexts("processed_in", func(r *Residency) *[]string { return &r.ProcessedIn }),
		readTexts("excluded", func(r *Residency) *[]string { return &r.Excluded }),
	)
	disclosurePlan = newReadPlan(
		readText("tag", func(d *Disclosure) *string { return &d.Tag }),
		readText("state", func(d *Disclosure) *string { return &d.State }),
		readText("basis", func(d *Disclosure) *string { return &d.Basis }),
		readText("scope", func(d *Disclosure) *string { return &d.Scope }),
		readText("detail", func(d *Disclosure) *string { return &d.Detail }),
	)
	evidencePlan = newReadPlan(
		readObject("context", contextPlan, func(e *SpecEvidence) *Context { return &e.Context }),
		readOptional("examples", examplesPlan, examplesRoom, func(e *SpecEvidence) **Examples { return &e.Examples }),
	)
	contextPlan = newReadPlan(
		readNumber("alignment_score", func(c *Context) **float64 { return &c.AlignmentScore }),
		readNumber("hedge_threshold_soft", func(c *Context) **float64 { return &c.HedgeThresholdSoft }),
		readTruth("hedge_emitted", func(c *Context) **bool { return &c.HedgeEmitted }),
		readTruth("high_stakes_topic", func(c *Context) **bool { return &c.HighStakesTopic }),
		readTruth("recommended_human_review", func(c *Context) **bool { return &c.RecommendedHumanReview }),
		readTruth("grounded_in_evidence", func(c *Context) **bool { return &c.GroundedInEvidence }),
		readTruth("disclosure_emitted", func(c *Context) **bool { return &c.DisclosureEmitted }),
		readTruth("prescribed_single_answer", func(c *Context) **bool { return &c.PrescribedSingleAnswer }),
		readMember{name: "presented_options_count", read: func(r *specReader, of any) bool {
			n, ok := r.count()
			of.(*Context).PresentedOptionsCount = &n
			return ok
		}},
	)
	examplesPlan = newReadPlan(
		readText("sha256", func(x *Examples) *string { return &x.SHA256 }),
		readCount("count", func(x *Examples) *int64 { return &x.Count }),
		readCount("hits", func(x *Examples) *int64 { return &x.Hits }),
		readTexts("ids", func(x *Examples) *[]string { return &x.IDs }),
	)
)

func readText[T any](name string, at func(*T) *string) readMember {
	return readMember{name: name, read: func(r *specReader, of any) (ok bool) {
		*at(of.(*T)), ok = r.string()
		return ok
	}}
}

func readTruth[T any](name string, at func(*T) **bool) readMember {
	return readMember{name: name, read: func(r *specReader, of any) bool {
		v, ok := r.truth()
		b := takeRoom(&r.room.flags)
		*b, *at(of.(*T)) = v, b
		return ok
	}}
}

func readNumber[T any](name string, at func(*T) **float64) readMember {
	return readMember{name: name, read: func(r *specReader, of any) bool {
		v, ok := r.number()
		*at(of.(*T)) = &v
		return ok
	}}
}

func readCount[T any](name string, at func(*T) *int64) readMember {
	return readMember{name: name, read: func(r *specReader, of any) (ok bool) {
		*at(of.(*T)), ok = r.count()
		return ok
	}}
}

func readObject[T, S any](name string, plan *readPlan, at func(*T) *S) readMember {
	return readMember{name: name, read: func(r *specReader, of any) bool { return r.object(plan, at(of.(*T))) }}
}

// inputRoom makes room for all inputs at once: each has an id, and nothing else has.
func inputRoom(r *specReader) *[]Input {
	if len(r.room.inputs) == 0 {
		r.room.inputs = make([]Input, min(maxInputs, strings.Count(r.text[r.pos:], `"id"`)))
	}
	return &r.room.inputs
}

// readOptional reads an object of which nil says that it is not stated.
func readOptional[T, S any](name string, plan *readPlan, room func(*specReader) *[]S, at func(*T) **S) readMember {
	return readMember{name: name, read: func(r *specReader, of any) bool {
		part := takeRoom(room(r))
		*at(of.(*T)) = part
		return r.object(plan, part)
	}}
}

// specRoom has room for more of each kind: short lists and parts of one spec get
// theirs together.
type specRoom struct {
	texts       []string
	inputs      []Input
	digests     []Digest
	sources     []Source
	parties     []Party
	declared    []DeclaredLicense
	refs        []LineageRef
	disclosures []Disclosure
	collections []Collection
	dates       []Dates
	lineages    []Lineage
	shapes      []Shape
	residencies []Residency
	examples    []Examples
	sourceFiles []SourceFile
	openPoints  []OpenPoint
	flags       []bool
}

func textRoom(r *specReader) *[]string              { return &r.room.texts }
func digestRoom(r *specReader) *[]Digest            { return &r.room.digests }
func sourceRoom(r *specReader) *[]Source            { return &r.room.sources }
func partyRoom(r *specReader) *[]Party              { return &r.room.parties }
func declaredRoom(r *specReader) *[]DeclaredLicense { return &r.room.declared }
func refRoom(r *specReader) *[]LineageRef           { return &r.room.refs }
func collectionRoom(r *specReader) *[]Collection    { return &r.room.collections }
func datesRoom(r *specReader) *[]Dates              { return &r.room.dates }
func lineageRoom(r *specReader) *[]Lineage          { return &r.room.lineages }
func shapeRoom(r *specReader) *[]Shape              { return &r.room.shapes }
func residencyRoom(r *specReader) *[]Residency      { return &r.room.residencies }
func examplesRoom(r *specReader) *[]Examples        { return &r.room.examples }
func sourceFileRoom(r *specReader) *[]SourceFile    { return &r.room.sourceFiles }
func openPointRoom(r *specReader) *[]OpenPoint      { return &r.room.openPoints }
func disclosureRoom(r *specReader) *[]Disclosure    { return &r.room.disclosures }

func readList[T, S any](name string, plan *readPlan, room func(*specReader) *[]S, at func(*T) *[]S) readMember {
	return readMember{name: name, read: func(r *specReader, of any) (ok bool) {
		*at(of.(*T)), ok = readItems(r, room(r), func(item *S) bool { return r.object(plan, item) })
		return ok
	}}
}

func readTexts[T any](name string, at func(*T) *[]string) readMember {
	return readMember{name: name, read: func(r *specReader, of any) (ok bool) {
		*at(of.(*T)), ok = readItems(r, textRoom(r), func(item *string) (ok bool) {
			*item, ok = r.string()
			return ok
		})
		return ok
	}}
}

// readItems reads a list into room, of which it leaves the rest. No kind of list
// stands within itself, so the room is nobody else's meanwhile.
func readItems[S any](r *specReader, room *[]S, read func(item *S) bool) ([]S, bool) {
	items, n := *room, 0
	ok := r.list(func() bool {
		if n == len(items) {
			more := make([]S, max(2*n, n+r.itemsAhead()))
			copy(more, items)
			items = more
		}
		n++
		return read(&items[n-1])
	})
	*room = items[n:]
	if n == 0 {
		return []S{}, ok // an empty list is not a missing one
	}
	return items[:n:n], ok
}

const together = 4

// itemsAhead guesses how many items to make room for: as many as the list seems to
// have from here on, or some for those and the lists to come.
func (r *specReader) itemsAhead() int {
	rest := r.text[r.pos:]
	seen := 1 + strings.Count(rest[:max(0, strings.IndexByte(rest, ']'))], "},") // texts may look like items
	return min(max(together, seen), 64)
}

// takeRoom gives room for one.
func takeRoom[S any](room *[]S) *S {
	if len(*room) == 0 {
		*room = make([]S, together)
	}
	one := &(*room)[0]
	*room = (*room)[1:]
	return one
}
