package formats

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"weir/screening"
)

// Code says what kind of thing a finding is.
type Code string

// What a finding says. The first five become open points of a spec: they stay
// until a person settles them. The others are told and nothing more, as what
// they speak of is missing from the spec, which its terms see by themselves.
const (
	Unresolved    Code = "unresolved"    // the file names something only by a path, a program or not at all
	Contradiction Code = "contradiction" // two statements that cannot both hold
	Restriction   Code = "restriction"   // terms of use in words that no code stands for
	Unreadable    Code = "unreadable"    // a statement that could not be read, or not whole
	Checksum      Code = "checksum"      // a file without a checksum that can be one

	Missing     Code = "missing"     // a key that the format requires
	UnknownKey  Code = "unknown_key" // a key that the format does not know
	Placeholder Code = "placeholder" // a value that is still to be filled in
	Malformed   Code = "malformed"   // a value that is kept as it is, though it is not of its form
	Note        Code = "note"
)

var openCodes = []Code{Unresolved, Contradiction, Restriction, Unreadable, Checksum}

// Finding is something about a file that its reader should know.
type Finding struct {
	Code    Code   `json:"code"`
	Field   string `json:"field,omitzero"` // what is concerned: dataset, base_model, objective, license, ...
	Pointer string `json:"pointer"`        // into the file
	Detail  string `json:"detail"`
}

// Open reports whether the finding becomes an open point of the spec.
func (f Finding) Open() bool { return slices.Contains(openCodes, f.Code) }

// Record is the provenance record of one thing, as a file gives it. It has no
// id until it becomes an input of a spec.
type Record struct {
	screening.Input
	From map[string]string // pointer into the input → pointer into the file

	names  []string // by which others may refer to it, in normal form
	hinted []string // restrictions that words speak of
	ref    string   // its id within the file
	at     string   // pointer to it in the file

	declared map[string]bool // names of the licences up to readTo
	readTo   int
}

// Import is what one file gave.
type Import struct {
	Name    string
	SHA256  screening.Digest256
	Format  string // id of the importer
	Version string // of the format, "" if the file does not say
	// Run: the file is of a training run. Its records are what goes into the run;
	// other files describe things that may.
	Run       bool
	Objective string // one of the spec's kinds, "" if the file does not settle it
	Records   []Record
	Findings  []Finding

	data        []byte
	secret      string // pointer to what looks like a credential: the file is not kept
	objectiveAt string
	definitions bool // names that a run resolves its data sets by, see llamafactory.go
}

// importer reads one format.
type importer struct {
	id   string
	says string // what the format is, for people
	// detect gives 0 for another format, else how sure it is: the surest wins.
	detect func(*source) int
	read   func(*reader) error
	stream bool // a file can hold several YAML documents
}

const (
	likely  = 1 // by keys that others may use too
	certain = 2 // by a marker that only this format has
)

// importers has every format, in the order in which equally sure ones win.
func importers() []importer {
	return []importer{
		{"croissant", "Croissant", detectCroissant, readCroissant, false},
		{"spdx", "SPDX 3 with AI or Dataset profile", detectSPDX, readSPDX, false},
		{"cyclonedx", "CycloneDX ML-BOM", detectCycloneDX, readCycloneDX, false},
		{"data_provenance_standard", "Data Provenance Standard (D&TA, OASIS)", detectDPS, readDPS, false},
		{"data_provenance_initiative", "Data Provenance Initiative", detectDPI, readDPI, false},
		{"huggingface_model", "Hugging Face model card", detectModelCard, readModelCard, false},
		{"huggingface_dataset", "Hugging Face dataset card", detectDatasetCard, readDatasetCard, false},
		{"datasheet", "datasheet in Markdown", detectDatasheet, readDatasheet, false},
		{"kubeflow_trainjob", "Kubeflow TrainJob", detectTrainJob, readTrainJob, true},
		{"pytorchjob", "Kubeflow PyTorchJob", detectPyTorchJob, readJobOnly, true},
		{"rayjob", "RayJob", detectRayJob, readJobOnly, true},
		{"llamafactory", "LLaMA-Factory run", detectLlamaFactory, readLlamaFactory, false},
		{"llamafactory_datasets", "LLaMA-Factory data sets", detectDatasetInfo, readDatasetInfo, false},
		{"axolotl", "Axolotl run", detectAxolotl, readAxolotl, false},
		{"trl", "TRL or alignment-handbook run", detectTRL, readTRL, false},
		{"torchtune", "torchtune run", detectTorchtune, readTorchtune, false},
		{"llm_foundry", "llm-foundry run", detectFoundry, readFoundry, false},
		{"olmo", "OLMo run", detectOLMo, readOLMo, false},
	}
}

// Detect tells the format of a file without reading what it says, "" if it is none
// of those known or not well-formed.
func Detect(name string, data []byte) string {
	s, err := open(name, data)
	if err != nil {
		return ""
	}
	if by := detect(s); by != nil {
		return by.id
	}
	return ""
}

func detect(s *source) (by *importer) {
	if strings.HasPrefix(s.docs[0].get("schema").words(), "weir/") { // a spec, or a draft of one
		return nil
	}
	surest := 0
	for _, candidate := range importers() {
		if sure := candidate.detect(s); sure > surest {
			by, surest = &candidate, sure
		}
	}
	return by
}

// FormatName gives the words for a format's id.
func FormatName(id string) string {
	for _, x := range importers() {
		if x.id == id {
			return x.says
		}
	}
	return id
}

// Read imports one file. name tells Markdown, YAML and JSON apart and is kept;
// nothing is opened. The error is a [*RefusedError].
func Read(name string, data []byte) (*Import, error) {
	s, err := open(name, data)
	if err != nil {
		return nil, err
	}
	by := detect(s)
	if by == nil {
		if s.card && s.docs[0].node == noValue.node {
			return nil, &RefusedError{name, NoFrontMatter, 1, "the file has no front matter and none of a datasheet's headings"}
		}
		if s.docs[0].kind != isMap {
			return nil, &RefusedError{name, NotAMap, 1, "the file is not a map of keys and values"}
		}
		return nil, &RefusedError{name, UnknownFormat, 0, "the file is of no known format; docs/importers.md lists those"}
	}
	r := &reader{Import: &Import{Name: name, SHA256: screening.Sum(data), Format: by.id, data: data}, source: s}
	if s.bom {
		r.find(Note, "", "", "starts with a byte order mark, which was passed over")
	}
	if s.second {
		r.find(Unreadable, "body", "", "has a second front matter, which was not read; make one of the two")
	}
	if s.badBody {
		r.find(Unreadable, "body", "", "the text after the front matter is not valid UTF-8 and was not read")
	}
	if len(s.docs) > 1 && !by.stream {
		return nil, r.refuse(NotThisFormat, "the file holds more than one YAML document, and a tool reads one of them or none; make files of their own of them")
	}
	if err := by.read(r); err != nil {
		return nil, err
	}
	if r.Run {
		for _, d := range s.docs {
			r.codeAnywhere(d)
		}
	}
	r.credentials()
	if r.many {
		return nil, r.refuse(TooManyValues, "the file describes more than 5,000 things, or more than 500 within one; take out those that do not go into the run")
	}
	return r.Import, nil
}

// clone gives a record of its own.
func (rec *Record) clone() Record {
	own := *rec
	own.Input = whole(rec.Input)
	own.Input.URIs, own.Input.Digests, own.Input.Sources = slices.Clone(rec.URIs), slices.Clone(rec.Digests), slices.Clone(rec.Sources)
	own.Input.Creators, own.Input.Disclosures = slices.Clone(rec.Creators), slices.Clone(rec.Disclosures)
	own.License.Declared, own.License.Restrictions = slices.Clone(rec.License.Declared), slices.Clone(rec.License.Restrictions)
	if l := rec.Lineage; l != nil {
		own.Lineage = &screening.Lineage{DerivedFrom: slices.Clone(l.DerivedFrom), BaseModels: slices.Clone(l.BaseModels),
			GeneratedByModels: slices.Clone(l.GeneratedByModels), Activities: slices.Clone(l.Activities)}
	}
	own.declared, own.readTo = nil, 0
	own.From, own.names, own.hinted = maps.Clone(rec.From), slices.Clone(rec.names), slices.Clone(rec.hinted)
	return own
}

// reader collects what an importer finds.
type reader struct {
	*Import
	source *source
	full   bool   // no more findings are kept
	spare  Record // what does not fit, before the file is refused
	many   bool
	swept  int                // bytes that were searched for restrictions
	topics int                // words about what is inside
	taken  map[string]bool    // pointers to terms of use that were read
	forms  map[string]keyForm // of keys that were met
	shared map[string]*Record // what sweeps of things found that many records refer to
}

// Limits of what one file gives.
const (
	maxFindings = 500
	maxRecords  = 5_000
)

// find adds a finding. A file can have one for each of ten thousand parts; past
// the limit the last says that there were more, and stays open.
func (r *reader) find(code Code, field, at, format string, args ...any) {
	if r.full {
		return
	}
	if r.full = len(r.Findings) == maxFindings; r.full {
		code, field, at, format, args = Unreadable, "", "", "has more findings than 500, which are not listed", nil
	}
	r.Findings = append(r.Findings, Finding{code, field, at, fmt.Sprintf(format, args...)})
}

func (r *reader) refuse(reason Reason, detail string) error {
	return &RefusedError{r.Name, reason, 0, detail}
}

// whole gives an input all of its parts, empty where nothing is stated, so that
// they can be filled and read without asking for each whether it is there. They
// are the input's own: it can be changed, and the one that it was made from is not.
func whole(in screening.Input) screening.Input {
	in.Collection, in.Publisher, in.Issuer = given(in.Collection), given(in.Publisher), given(in.Issuer)
	in.Dates, in.Shape, in.Residency = given(in.Dates), given(in.Shape), given(in.Residency)
	return in
}

// onlyStated is an input without the parts of which nothing is stated.
func onlyStated(in screening.Input) screening.Input {
	in.Collection, in.Publisher, in.Issuer = ifGiven(in.Collection), ifGiven(in.Publisher), ifGiven(in.Issuer)
	in.Dates, in.Shape, in.Residency = ifGiven(in.Dates), ifGiven(in.Shape), ifGiven(in.Residency)
	return in
}

func ifGiven[T any](part *T) *T {
	if part == nil || reflect.ValueOf(*part).IsZero() {
		return nil
	}
	return part
}

func given[T any](part *T) *T {
	var own T
	if part != nil {
		own = *part
	}
	return &own
}

// add starts a record. The pointer stays good until the next one is added.
func (r *reader) add(kind string, v value) *Record {
	if len(r.Records) == maxRecords {
		r.many = true
		r.spare.Input = whole(r.spare.Input)
		r.spare.From = map[string]string{}
		return &r.spare
	}
	r.Records = append(r.Records, Record{Input: whole(screening.Input{Kind: kind}), From: map[string]string{"": v.at}, at: v.at})
	return &r.Records[len(r.Records)-1]
}
