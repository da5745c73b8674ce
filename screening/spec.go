package screening

import "github.com/go-json-experiment/json/jsontext"

// SpecSchema is the value of a training spec's schema key.
const SpecSchema = "weir/spec/v1"

// Spec is one training specification as submitted. Absent is not "no": an
// empty field says nothing, and what needs it is not checkable.
type Spec struct {
	Schema              string       `json:"schema"`
	RunRef              string       `json:"run_ref"`      // names the run over resubmissions, for example nlp/support-bot@2026-11
	Owner               string       `json:"owner"`        // person id, answers for the run
	OnBehalfOf          string       `json:"on_behalf_of"` // person id; required when a service submits
	Team                string       `json:"team"`         // review policies may match on it
	Objective           Objective    `json:"objective"`
	BaseModel           string       `json:"base_model"` // id of an input, empty when training from nothing
	Inputs              []Input      `json:"inputs"`
	Disclosures         []Disclosure `json:"disclosures"` // hold for every input
	Evidence            SpecEvidence `json:"evidence"`
	DisclosureStatement string       `json:"disclosure_statement"` // goes with the run to its users
	Sources             []SourceFile `json:"sources"`              // files that statements were imported from
}

// Objective says what is trained and for what.
type Objective struct {
	Kind       string   `json:"kind"`         // one of objectiveKinds
	Purpose    string   `json:"purpose"`      // free text; may hint, never clears
	Purposes   []string `json:"purposes"`     // codes of purposeCodes; none = not stated
	OutOfScope []string `json:"out_of_scope"` // free text
	Markets    []string `json:"markets"`      // where the model will be offered: ISO 3166 codes, EU, or worldwide
}

// Input is the provenance record of one thing that goes into training. A nil part
// is one that is not stated.
type Input struct {
	ID              string       `json:"id"`
	Kind            string       `json:"kind"` // one of inputKinds
	Name            string       `json:"name"`
	Description     string       `json:"description"`
	Version         string       `json:"version"`
	Revision        string       `json:"revision"`
	URIs            []string     `json:"uris"`
	Digests         []Digest     `json:"digests"`
	Sources         []Source     `json:"sources"`
	Collection      *Collection  `json:"collection"`
	Creators        []Party      `json:"creators"`
	Publisher       *Party       `json:"publisher"`
	Issuer          *Party       `json:"issuer"`
	License         License      `json:"license"`
	Consent         Consent      `json:"consent"`
	Dates           *Dates       `json:"dates"`
	Lineage         *Lineage     `json:"lineage"` // {} = stated to have no parents
	Shape           *Shape       `json:"shape"`
	Residency       *Residency   `json:"residency"`
	Split           string       `json:"split"` // one of splitCodes: which part is trained on
	TrustRemoteCode *bool        `json:"trust_remote_code"`
	Disclosures     []Disclosure `json:"disclosures"`
}

// Digest is a checksum of an input. It counts only if its length and alphabet fit the algorithm.
type Digest struct {
	Alg   string `json:"alg"`   // sha256, sha384, sha512, blake3, md5, sha1
	Value string `json:"value"` // hex
	Of    string `json:"of"`    // which file or part, free text
}

// Source is where data came from.
type Source struct {
	Kind   string `json:"kind"` // one of sourceKinds
	Detail string `json:"detail"`
}

// Collection says how and when an input was gathered.
type Collection struct {
	Methods     []string `json:"methods"`
	Description string   `json:"description"`
	Start       string   `json:"start"`
	End         string   `json:"end"`
	Geography   []string `json:"geography"`
	Crawler     string   `json:"crawler"`
}

// Party is a person or organisation; the type that a source claims is not reliable.
type Party struct {
	Name string `json:"name"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

// License says under which terms an input may be used.
type License struct {
	Declared     []DeclaredLicense `json:"declared"`
	Concluded    string            `json:"concluded"`    // SPDX expression a person concluded
	Restrictions []string          `json:"restrictions"` // codes of restrictionCodes; adds to what the licence text implies
	Copyright    string            `json:"copyright"`
	TDM          string            `json:"tdm"` // one of tdmCodes: was a text-and-data-mining reservation found
}

// DeclaredLicense is one licence as its source states it.
type DeclaredLicense struct {
	Raw   string `json:"raw"`  // the source's own words
	SPDX  string `json:"spdx"` // SPDX expression
	URL   string `json:"url"`
	Scope string `json:"scope"` // whole, or the config, file or split it covers
}

// Consent of the people in the data.
type Consent struct {
	Status string   `json:"status"` // one of consentCodes
	Docs   []string `json:"docs"`
}

// Dates of an input, as written by its source.
type Dates struct {
	Created   string `json:"created"`
	Issued    string `json:"issued"`
	Modified  string `json:"modified"`
	Previous  string `json:"previous"`
	Retrieved string `json:"retrieved"`
	Released  string `json:"released"`
}

// Lineage names what an input was made from.
type Lineage struct {
	DerivedFrom       []LineageRef `json:"derived_from"`
	BaseModels        []LineageRef `json:"base_models"`
	GeneratedByModels []LineageRef `json:"generated_by_models"`
	Activities        []LineageRef `json:"activities"`
}

// LineageRef is one parent: the id of an input of the same spec, or an outside name.
type LineageRef struct {
	Ref     string `json:"ref"`
	Label   string `json:"label"`
	License string `json:"license"`
}

// Shape is the size and form of an input.
type Shape struct {
	SizeRaw    string   `json:"size_raw"`
	SizeBand   string   `json:"size_band"`
	Records    string   `json:"records"`
	Languages  []string `json:"languages"`
	Modalities []string `json:"modalities"` // codes of modalityCodes
}

// Residency says where an input is stored and processed, and where it must not be.
type Residency struct {
	StoredIn    []string `json:"stored_in"`
	ProcessedIn []string `json:"processed_in"`
	Excluded    []string `json:"excluded"`
}

// Disclosure is one statement of the submitter about the spec or one input.
type Disclosure struct {
	Tag    string `json:"tag"`    // one of the disclosure tags
	State  string `json:"state"`  // present, absent, unknown, placeholder or not_assessed
	Basis  string `json:"basis"`  // structured, prose or inferred
	Scope  string `json:"scope"`  // part it speaks of, free text; a part that is clean does not clear the rest
	Detail string `json:"detail"` // free text
}

// SpecEvidence is what the submitter measured or observed.
type SpecEvidence struct {
	Context  Context   `json:"context"`
	Examples *Examples `json:"examples"` // nil = training examples were not screened
}

// Context feeds the general ethics commitments. nil = not supplied.
type Context struct {
	AlignmentScore         *float64 `json:"alignment_score"`
	HedgeThresholdSoft     *float64 `json:"hedge_threshold_soft"` // default 0.65
	HedgeEmitted           *bool    `json:"hedge_emitted"`
	HighStakesTopic        *bool    `json:"high_stakes_topic"`
	RecommendedHumanReview *bool    `json:"recommended_human_review"`
	GroundedInEvidence     *bool    `json:"grounded_in_evidence"`
	DisclosureEmitted      *bool    `json:"disclosure_emitted"`
	PrescribedSingleAnswer *bool    `json:"prescribed_single_answer"`
	PresentedOptionsCount  *int64   `json:"presented_options_count"`
}

// Examples is the result of screening the training examples; the counts are the submitter's claim.
type Examples struct {
	SHA256 string   `json:"sha256"`
	Count  int64    `json:"count"`
	Hits   int64    `json:"hits"`
	IDs    []string `json:"ids"`
}

// SourceFile is a file that statements of the spec were imported from, kept as
// it was, and what it left open.
type SourceFile struct {
	Name   string      `json:"name"`
	Format string      `json:"format"` // id of the importer
	SHA256 string      `json:"sha256"` // of the file
	Bytes  []string    `json:"bytes"`  // the file in base64, in parts that a text can hold; none = not kept
	Open   []OpenPoint `json:"open"`   // the submitter takes one out when it is settled in the spec
}

// OpenPoint is something of a source file that a person has to settle.
type OpenPoint struct {
	Code    string `json:"code"`    // one of openCodes
	Pointer string `json:"pointer"` // into the file
	Detail  string `json:"detail"`  // free text
}

// ParsedSpec is a spec together with the identity of the bytes it came from.
type ParsedSpec struct {
	*Spec
	Raw             []byte // as received
	SHA256          Digest256
	CanonicalSHA256 Digest256 // of the RFC 8785 form

	doc   document
	coded codedFacts
}

// ParseSpec parses and checks the received bytes of a training spec. The error
// is an [*InvalidError] naming every problem with a pointer.
func ParseSpec(data []byte) (*ParsedSpec, error) {
	p := &ParsedSpec{Spec: new(Spec), Raw: data}
	if ok := bytesProblem(data) == nil && looksLikeJSON(data) && p.read(); !ok {
		*p.Spec = Spec{}
		if err := p.decode(); err != nil {
			return nil, err
		}
	}
	if err := p.check().invalid(specWhat, "", &p.doc); err != nil {
		return nil, err
	}
	p.coded = p.code()
	return p, nil
}

const specWhat = "training spec"

// decode takes the long way, which knows every kind of document and what is wrong with it.
func (p *ParsedSpec) decode() (err error) {
	doc, err := parseDocument(specWhat, "", p.Raw)
	if err != nil {
		return err
	}
	p.doc = *doc
	if err := p.doc.decode(p.Spec); err != nil {
		return err
	}
	canonical, err := Canonical(p.doc.json)
	p.SHA256, p.CanonicalSHA256 = Sum(p.Raw), Sum(canonical)
	return err
}

// Invalid gives the error for problems that somebody other than the parser
// found in this spec (people that are not declared, a missing statement).
func (p *ParsedSpec) Invalid(found ...Problem) error {
	return problems(found).invalid(specWhat, "", &p.doc)
}

// JSON gives the spec's document in JSON, also when it was submitted as YAML.
func (p *ParsedSpec) JSON() jsontext.Value { return p.doc.json }

// Line gives the 1-based source line of what a pointer names, or of the nearest
// part around it that has one; 0 when not known. It reads the document again: it
// is for people who are shown a finding, not for deciding.
func (p *ParsedSpec) Line(pointer string) int { return p.doc.locate()(pointer) }
