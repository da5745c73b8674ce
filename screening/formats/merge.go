package formats

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// Options is what no file says and the caller knows.
type Options struct {
	RunRef     string
	Owner      string
	OnBehalfOf string
	Team       string
	Objective  string // kind of training, for run files that do not settle it
	Statement  string // what goes with the model to its users
	// For gives the name that the run uses for what a file describes, by file
	// name. Without it a file is matched by what it says of itself.
	For map[string]string
}

// Draft is a spec made of imported files, with what it does not know left out.
type Draft struct {
	Spec    screening.Spec
	From    map[string]Place // pointer into the spec → where it came from
	Imports []*Import        // with the findings of the merge
}

// Errors of Merge, beside those that name a file.
var (
	ErrNothing  = errors.New("the files describe nothing that goes into training")
	ErrTooMany  = errors.New("the files describe more than 500 things, which is more than a spec holds; give the run along, or only the records that go into it")
	ErrManyRuns = errors.New("more than one file is of a training run; a spec is of one run")
)

// Merge joins a run file with the metadata of its inputs, or takes metadata alone.
// What two files say of one input is kept from both, and where they differ the
// worse holds and the difference stays open.
func Merge(imports []*Import, opts Options) (*Draft, error) {
	m := merger{opts: opts}
	imports = slices.Clone(imports)
	for i, im := range imports { // the caller's stay as they are
		c := *im
		c.Findings = slices.Clone(c.Findings)
		imports[i] = &c
	}
	for _, im := range imports {
		switch {
		case im.Run && m.run != nil:
			return nil, fmt.Errorf("%w: %s and %s", ErrManyRuns, m.run.Name, im.Name)
		case im.Run:
			m.run = im
		}
	}
	for name := range opts.For {
		if !slices.ContainsFunc(imports, func(im *Import) bool { return im.Name == name }) {
			return nil, fmt.Errorf("no file is named %s", name)
		}
	}
	if m.run != nil {
		if len(m.run.Records) > maxInputs {
			return nil, ErrTooMany
		}
		for i := range m.run.Records {
			m.add(m.run, &m.run.Records[i])
		}
		m.define(imports)
	}
	for _, im := range imports {
		if im != m.run && !im.definitions {
			if err := m.metadata(im, imports); err != nil {
				return nil, err
			}
		}
		if im.definitions && m.run == nil {
			for i := range im.Records {
				m.add(im, &im.Records[i])
			}
		}
	}
	if len(m.inputs) == 0 && m.run == nil {
		return nil, ErrNothing
	}
	if len(m.inputs) > maxInputs {
		return nil, ErrTooMany
	}
	return m.draft(imports), nil
}

type merger struct {
	opts   Options
	run    *Import
	inputs []*input
}

// input is a record on its way into a spec.
type input struct {
	Record
	file   *Import
	refs   []string
	origin map[string]Place // pointer into the input → where it came from
}

// add makes an input of a record; its places get the name of the file.
func (m *merger) add(im *Import, rec *Record) *input {
	in := &input{Record: rec.clone(), file: im}
	in.origin = placesOf(im, rec)
	in.Lineage = im.qualified(rec.Lineage)
	in.refs = []string{im.qualify(rec.ref)}
	m.inputs = append(m.inputs, in)
	return in
}

// qualify makes an id of a file one that no other file has.
func (im *Import) qualify(ref string) string { return "\x00" + im.Name + "\x00" + ref }

// qualified copies a lineage; references to other records of the file are qualified.
func (im *Import) qualified(l *screening.Lineage) *screening.Lineage {
	if l == nil {
		return nil
	}
	list := func(refs []screening.LineageRef) []screening.LineageRef {
		refs = slices.Clone(refs)
		for i := range refs {
			if refs[i].Ref != "" && slices.ContainsFunc(im.Records, func(rec Record) bool { return rec.ref == refs[i].Ref }) {
				refs[i].Ref = im.qualify(refs[i].Ref)
			}
		}
		return refs
	}
	return &screening.Lineage{DerivedFrom: list(l.DerivedFrom), BaseModels: list(l.BaseModels),
		GeneratedByModels: list(l.GeneratedByModels), Activities: list(l.Activities)}
}

// Place is where a value came from.
type Place struct {
	File    string
	Pointer string // into the file
}

func (p Place) String() string { return strings.TrimSpace(oneLine(p.File) + " " + oneLine(p.Pointer)) }

func placesOf(im *Import, rec *Record) map[string]Place {
	places := make(map[string]Place, len(rec.From))
	for pointer, at := range rec.From {
		places[pointer] = Place{im.Name, at}
	}
	return places
}

// define resolves the words by which a LLaMA-Factory run names its data sets.
func (m *merger) define(imports []*Import) {
	if m.run.Format != "llamafactory" {
		for _, im := range imports {
			if im.definitions {
				im.Findings = nil
				im.note(Note, "", "", "resolves names for LLaMA-Factory runs, and the run is none; it was passed over")
			}
		}
		return
	}
	used := map[*Import][]string{}
	for _, in := range m.inputs {
		if in.Kind != "dataset" {
			continue
		}
		var found *Record
		for _, im := range imports {
			if !im.definitions {
				continue
			}
			for i := range im.Records {
				rec := &im.Records[i]
				if rec.ref != in.ref {
					continue
				}
				used[im] = append(used[im], rec.at)
				switch {
				case found == nil:
					found, in.names = rec, nil
				case !slices.Equal(found.names, rec.names):
					im.note(Contradiction, "dataset", rec.at, "is defined otherwise in another file")
				}
				m.fold(in, im, rec)
				if found == rec {
					in.Name, in.origin["/name"] = rec.Name, Place{im.Name, rec.at}
				}
			}
		}
		if found == nil {
			m.run.note(Unresolved, "dataset", in.at, "is a word that only dataset_info.json resolves; give that file along")
		}
	}
	for _, im := range imports { // what it says of data sets of other runs is of no interest
		if im.definitions {
			im.Findings = slices.DeleteFunc(im.Findings, func(f Finding) bool {
				return !slices.ContainsFunc(used[im], func(at string) bool { return strings.HasPrefix(f.Pointer+"/", at+"/") })
			})
		}
	}
}

func (im *Import) note(code Code, field, at, detail string) {
	im.Findings = append(im.Findings, Finding{code, field, at, detail})
}

// family groups the kinds that can be one thing under two names.
func family(kind string) string {
	if kind == "dataset" || kind == "code" {
		return kind
	}
	return "model"
}

// metadata finds the inputs that the records of a file describe.
func (m *merger) metadata(im *Import, imports []*Import) error {
	target := m.opts.For[im.Name]
	if target != "" && len(im.Records) > 1 {
		return fmt.Errorf("%s describes %d things, so it cannot be bound to %s alone", im.Name, len(im.Records), target)
	}
	passed := []string{}
	for i := range im.Records {
		if len(m.inputs) > maxInputs {
			return ErrTooMany
		}
		rec := &im.Records[i]
		var found []*input
		switch {
		case target != "":
			if found = m.named(target, rec.Kind); len(found) == 0 {
				return fmt.Errorf("%s: the run has no %s named %s", im.Name, strings.ReplaceAll(rec.Kind, "_", " "), target)
			}
		default:
			found = m.match(im, rec, imports)
		}
		switch {
		case len(found) > 0: // a run can take two parts of one data set
			for _, in := range found {
				m.fold(in, im, rec)
			}
		case m.run != nil && im.Format == "data_provenance_initiative" && len(im.Records) > 1:
			passed = append(passed, rec.at) // a collection of everything there is
		default:
			m.add(im, rec)
			if m.run != nil {
				im.note(Unresolved, rec.Kind, rec.at, "is not named by the run; it is an input of its own until somebody says which input it is, or takes it out")
			}
		}
	}
	if len(passed) > 0 {
		im.Findings = slices.DeleteFunc(im.Findings, func(f Finding) bool {
			return slices.ContainsFunc(passed, func(at string) bool { return strings.HasPrefix(f.Pointer+"/", at+"/") })
		})
		im.note(Note, "", "", fmt.Sprintf("%d records are of no input of the run and were passed over", len(passed)))
	}
	return nil
}

func (m *merger) named(name, kind string) (found []*input) {
	for _, in := range m.inputs {
		if family(in.Kind) == family(kind) && (in.Name == name || in.ref == name || slices.Contains(in.names, normalName(in.Kind, name))) {
			found = append(found, in)
		}
	}
	return found
}

// sharesName reports whether two records have a name in common; weak counts names
// that anybody could have chosen.
func sharesName(a, b []string, weak bool) bool {
	for _, n := range a {
		if (weak || !strings.HasPrefix(n, "name:")) && slices.Contains(b, n) {
			return true
		}
	}
	return false
}

func (m *merger) match(im *Import, rec *Record, imports []*Import) (found []*input) {
	for _, weak := range []bool{false, true} {
		for _, in := range m.inputs {
			if family(in.Kind) == family(rec.Kind) && sharesName(in.names, rec.names, weak) {
				found = append(found, in)
			}
		}
		if len(found) == 0 {
			continue
		}
		if weak {
			im.note(Unresolved, rec.Kind, rec.at, "is taken for the input of the same name; check that it is")
		}
		return found
	}
	if m.run == nil || len(im.Records) > 1 || identified(rec) {
		return nil
	}
	// A card does not say whose it is. If there is one such card and one such
	// input, the caller has said so.
	for _, in := range m.inputs {
		if in.Kind != rec.Kind {
			continue
		}
		if len(found) > 0 && !sharesName(found[0].names, in.names, false) {
			return nil
		}
		found = append(found, in)
	}
	cards := 0
	for _, other := range imports {
		for i := range other.Records {
			if r := &other.Records[i]; other != m.run && !other.definitions && m.opts.For[other.Name] == "" && r.Kind == rec.Kind && !identified(r) {
				cards++
			}
		}
	}
	if len(found) == 0 || cards != 1 {
		return nil
	}
	im.note(Note, rec.Kind, rec.at, "does not say of what it is; it is taken for "+found[0].Name+", the only one of its kind in the run")
	return found
}

// identified reports whether a record says of what it is.
func identified(rec *Record) bool {
	return slices.ContainsFunc(rec.names, func(n string) bool { return !strings.HasPrefix(n, "name:") && !strings.HasPrefix(n, "path:") })
}

// draft gives inputs their ids and makes the spec.
func (m *merger) draft(imports []*Import) *Draft {
	d := &Draft{From: map[string]Place{}, Imports: imports}
	s := &d.Spec
	s.Schema = screening.SpecSchema
	s.RunRef, s.Owner, s.OnBehalfOf, s.Team = m.opts.RunRef, m.opts.Owner, m.opts.OnBehalfOf, m.opts.Team
	s.DisclosureStatement = m.opts.Statement
	m.objective(d)
	taken := map[string]bool{}
	for _, in := range m.inputs {
		in.ID = newID(&in.Input, taken)
	}
	for i, in := range m.inputs {
		m.link(in)
		if in.Kind == "base_model" && s.BaseModel == "" && in.file == m.run {
			s.BaseModel = in.ID
			d.From["/base_model"] = in.origin[""]
		}
		for pointer, at := range in.origin {
			d.From["/inputs/"+strconv.Itoa(i)+pointer] = at
		}
		s.Inputs = append(s.Inputs, onlyStated(in.Input))
	}
	s.Sources = sourceFiles(imports)
	return d
}

func (m *merger) objective(d *Draft) {
	kind := &d.Spec.Objective.Kind
	if m.run != nil {
		*kind = m.run.Objective
		d.From["/objective/kind"] = Place{m.run.Name, m.run.objectiveAt}
	}
	switch told := m.opts.Objective; {
	case told == "":
	case *kind == "":
		*kind = told
		delete(d.From, "/objective/kind")
		if m.run != nil {
			m.run.Findings = slices.DeleteFunc(m.run.Findings, func(f Finding) bool { return f.Field == "objective" && f.Code == Unresolved })
		}
	case *kind != told:
		m.run.note(Contradiction, "objective", m.run.objectiveAt, "is "+*kind+" here, and "+told+" was given")
		*kind = told
	}
}

// link makes references to inputs of the spec by their ids: those are recorded.
func (m *merger) link(in *input) {
	if in.Lineage == nil {
		return
	}
	for _, refs := range [][]screening.LineageRef{in.Lineage.DerivedFrom, in.Lineage.BaseModels, in.Lineage.GeneratedByModels} {
		for i := range refs {
			written := refs[i].Ref[strings.LastIndexByte(refs[i].Ref, 0)+1:]
			for _, other := range m.inputs {
				name := normalName(other.Kind, written)
				if other == in || !slices.Contains(other.refs, refs[i].Ref) && (name == "" || strings.HasPrefix(name, "name:") || !slices.Contains(other.names, name)) {
					continue
				}
				if refs[i].Label == "" {
					refs[i].Label = written
				}
				written = other.ID
				break
			}
			refs[i].Ref = written
		}
	}
}

// newID makes an id out of a name: the last part of a path, in plain letters.
func newID(in *screening.Input, taken map[string]bool) string {
	name := strings.TrimRight(in.Name, "/")
	name = name[strings.LastIndexAny(name, "/\\")+1:]
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 48 {
			break
		}
	}
	id := strings.Trim(b.String(), "-._")
	if id == "" {
		id = strings.ReplaceAll(in.Kind, "_", "-")
	}
	for n := 1; ; n++ {
		try := id
		if n > 1 {
			try += "-" + strconv.Itoa(n)
		}
		if !taken[try] {
			taken[try] = true
			return try
		}
	}
}

const maxInputs = 500 // of a spec
