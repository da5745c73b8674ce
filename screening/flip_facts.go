package screening

import (
	"slices"
	"strings"
)

// variableKind is what a variable of a flip stands for.
type variableKind uint8

const (
	aTag        variableKind = iota // the structured statements of a tag at one level
	aHint                           // the prose at one level that hints at the worse state of a tag
	aFact                           // a fact of an input or of the spec
	aContext                        // a key of evidence.context
	theExamples                     // evidence.examples
	aText                           // a part of a text
)

// variableKey names a variable: the input, wholeSpec for the spec, and the tag,
// fact, key or part of a text.
type variableKey struct {
	kind  variableKind
	input int
	index int
}

type variable struct {
	variableKey
	options []option // 0 is as it is
	stated  bool     // something is, that a change would replace
}

// option is one value that a variable can take.
type option struct {
	values   []string // of a fact or key
	state    tagState // of a tag
	withdraw bool     // of a hint: it is withdrawn
}

func (x *flipper) variable(key variableKey, make func() variable) int {
	if i, ok := x.index[key]; ok {
		return i
	}
	v := make()
	v.variableKey = key
	x.index[key] = len(x.variables)
	x.variables = append(x.variables, v)
	return len(x.variables) - 1
}

// textPart is a part of a text in which something was found.
type textPart struct {
	field, start, end int
	fact, found       string
}

func (p textPart) covers(field, at int) bool {
	return p.field == field && p.start <= at && at < max(p.end, p.start+1)
}

// reads notes the parts of texts in which a clause finds something. One that
// overlaps another goes when that goes, so they are one.
func (x *flipper) reads(c clause) {
	switch c := c.(type) {
	case allOf:
		for _, part := range c {
			x.reads(part)
		}
	case anyOf:
		for _, part := range c {
			x.reads(part)
		}
	case notOf:
		x.reads(c.part)
	case phraseClause:
		c.each(x.e, wholeSpec, func(h phraseHit, _ value) {
			x.note(textPart{h.field, h.start, h.end, "phrase", c.texts[h.phrase-c.first]})
		})
	case obfuscationClause:
		c.each(x.e, wholeSpec, func(o textObfuscation) {
			x.note(textPart{o.field, o.start, o.end, "obfuscation", o.kind.String()})
		})
	}
}

func (x *flipper) note(p textPart) {
	x.texts = slices.DeleteFunc(x.texts, func(o textPart) bool {
		overlap := o.field == p.field && (p.covers(o.field, o.start) || o.covers(p.field, p.start))
		if overlap {
			if o.end-o.start > p.end-p.start {
				p.fact, p.found = o.fact, o.found
			}
			p.start, p.end = min(p.start, o.start), max(p.end, o.end)
		}
		return overlap
	})
	x.texts = append(x.texts, p)
}

// without adds to a way that a part of a text goes.
func (x *flipper) without(w way, field, at int) way {
	i := slices.IndexFunc(x.texts, func(p textPart) bool { return p.covers(field, at) })
	v := x.variable(variableKey{kind: aText, index: i}, func() variable { return variable{options: []option{{}, {}}, stated: true} })
	w, _ = w.and(way{{v, 1 << 1}})
	return w
}

// statements is the list of disclosures of an input, or of the spec.
func statements(s *Spec, input int) *[]Disclosure {
	if input == wholeSpec {
		return &s.Disclosures
	}
	return &s.Inputs[input].Disclosures
}

// tagVariables are the tag at a level and, if there is one, the hint against it.
func (x *flipper) tagVariables(ti, input int) []int {
	all := []int{x.variable(variableKey{kind: aTag, input: input, index: ti}, func() variable {
		row := tagLevel(*statements(x.e.spec, input))
		return variable{options: []option{{}, {state: tags[ti].better()}, {state: tags[ti].worse()}}, stated: (row.worse|row.better)&(1<<ti) != 0}
	})}
	if row := tagLevel(*statements(x.e.spec, input)); row.hint&(1<<ti) != 0 {
		all = append(all, x.variable(variableKey{kind: aHint, input: input, index: ti}, func() variable {
			return variable{options: []option{{}, {withdraw: true}}, stated: true}
		}))
	}
	return all
}

// flipLevel is what one level can say of a tag, each with what it needs.
type flipLevel struct {
	needs way
	row   tagRow
}

// levels gives what a level can say of a tag; as it is comes last, so that a
// statement about the spec goes before one about an input.
func (x *flipper) levels(ti, input int) (all []flipLevel) {
	variables := x.tagVariables(ti, input)
	list := *statements(x.e.spec, input)
	hints := 1
	if len(variables) > 1 {
		hints = 2
	}
	for _, state := range []int{1, 2, 0} {
		for hint := range hints {
			said := list
			needs := way{{variables[0], 1 << state}}
			if state > 0 {
				said = x.variables[variables[0]].options[state].stated(said, ti)
			}
			if hints > 1 {
				needs = append(needs, need{variables[1], 1 << hint})
			}
			if hint > 0 {
				said = x.variables[variables[1]].options[hint].stated(said, ti)
			}
			row, bit := tagLevel(said), tagSet(1)<<ti
			all = append(all, flipLevel{needs, tagRow{row.worse & bit, row.unknown & bit, row.better & bit, row.hint & bit}})
		}
	}
	return all
}

// revised tells which statements of a list have to change for a tag to have the
// option's state at that level: those that are replaced, those that are
// withdrawn, and whether one has to be added.
func (o option) revised(list []Disclosure, ti int) (replace, withdraw []int, add bool) {
	var open, other []int // not known, or of a part; the good state
	for i := range list {
		d := &list[i]
		if d.Tag != tags[ti].name {
			continue
		}
		switch s := stateOf(d.State); {
		case d.Basis != "structured":
			if o.withdraw && s == tags[ti].worse() {
				withdraw = append(withdraw, i)
			}
		case s == tags[ti].worse():
			if o.state == tags[ti].better() {
				replace = append(replace, i)
			}
		case s == unknownState, s != notAssessed && isPart(d.Scope):
			open = append(open, i)
		case s != notAssessed:
			other = append(other, i)
		}
	}
	switch {
	case o.state == notAssessed || len(replace) > 0:
	case o.state == tags[ti].better() && len(other) > 0: // it has that state
	case len(open) > 0:
		replace = open[:1]
	case len(other) > 0:
		replace = other[:1]
	default:
		add = true
	}
	return replace, withdraw, add
}

// stated gives a list of statements with the option's changes.
func (o option) stated(list []Disclosure, ti int) []Disclosure {
	replace, withdraw, add := o.revised(list, ti)
	out := make([]Disclosure, 0, len(list)+1)
	for i, d := range list {
		if slices.Contains(withdraw, i) {
			continue
		}
		if slices.Contains(replace, i) {
			d.State, d.Scope = stateName(o.state), ""
		}
		out = append(out, d)
	}
	if add {
		out = append(out, Disclosure{Tag: tags[ti].name, State: stateName(o.state), Basis: "structured"})
	}
	return out
}

// Facts that come from one part of the spec are one variable.
var (
	licenseStatusColumn = factIndex["license.status"]
	licenseColumn       = factIndex["license.restrictions"]
	openPointsColumn    = factIndex["sources.open"]
)

// factOptions are the values that a fact may be given, beside those that a term asks for.
var factOptions = map[string][]string{
	"objective.markets":    {"CH", "JP", "US", "BR", "IN", "KR"},
	"collection.geography": {"CH", "JP", "US", "DE", "BR"},
	"shape.languages":      {"en", "de", "fr", "ja", "pt"},
}

// maxOptions is how many options of a variable a mask holds.
const maxOptions = 60

func (x *flipper) factVariable(col, input int) int {
	if factDefs[col].perSpec {
		input = wholeSpec
	}
	asked := x.asked[col]
	if col == licenseStatusColumn {
		col, asked = licenseColumn, x.asked[licenseColumn]
	}
	return x.variable(variableKey{kind: aFact, input: input, index: col}, func() variable {
		def, now := &factDefs[col], x.e.get(col, input)
		v := variable{options: []option{{}}, stated: now.stated && !now.unknown}
		offer := func(values ...string) {
			if len(values) > 0 && len(v.options) < maxOptions && !slices.Contains(values, "unknown") {
				v.options = append(v.options, option{values: values})
			}
		}
		codes := def.codes
		if codes == nil {
			codes = factOptions[def.name]
		}
		switch {
		case col == openPointsColumn: // what is open can be settled, and nothing is opened
			v.options = append(v.options, option{values: slices.DeleteFunc(x.e.values(col, input), func(s string) bool { return slices.Contains(asked, s) })})
		case col == licenseColumn:
			v.options = append(v.options, option{values: []string{}}) // identified, and asks nothing
			for _, r := range asked {
				offer(r)
			}
		case !def.list:
			for _, c := range codes {
				offer(c)
			}
		default:
			left := slices.DeleteFunc(slices.Clone(x.e.values(col, input)), func(s string) bool { return s == "unknown" || slices.Contains(asked, s) })
			if len(left) > 0 {
				offer(left...)
			}
			if i := slices.IndexFunc(codes, func(c string) bool { return c != "unknown" && !slices.Contains(asked, c) }); i >= 0 {
				offer(codes[i])
			}
			for _, a := range asked {
				offer(a)
			}
		}
		return v
	})
}

// with gives the value of a clause about a fact under an option of a variable.
func (x *flipper) with(variable, o int, c factClause) (value, bool) {
	v := &x.variables[variable]
	if o == 0 {
		return c.of(x.e.spec, v.input), true
	}
	if x.scratch == nil {
		x.scratch = copySpec(x.e.spec)
	}
	s := x.scratch
	if v.input == wholeSpec {
		was, base := s.Objective, s.BaseModel
		defer func() { s.Objective, s.BaseModel = was, base }()
	} else {
		was := s.Inputs[v.input]
		defer func() { s.Inputs[v.input] = was }()
	}
	if !x.set(s, v, o) {
		return no, false
	}
	return c.of(s, v.input), true
}

// copySpec copies what a change can reach: lists are replaced, never written into.
func copySpec(s *Spec) *Spec {
	out := *s
	out.Inputs = slices.Clone(s.Inputs)
	return &out
}

// set changes a spec so that a variable has an option. It fails where no
// statement could give the variable that value.
func (x *flipper) set(s *Spec, v *variable, o int) bool {
	opt := v.options[o]
	switch v.kind {
	case aTag, aHint:
		list := statements(s, v.input)
		*list = opt.stated(*list, v.index)
		return true
	case aContext:
		contextKeys[v.index].set(s, opt)
		return true
	case theExamples:
		s.Evidence.Examples = &Examples{Count: 1}
		return true
	}
	if name := factDefs[v.index].name; v.input == wholeSpec {
		return setSpecFact(s, name, opt.values)
	} else if v.index == licenseColumn {
		setLicense(&s.Inputs[v.input], opt.values)
		return true
	} else {
		return setInputFact(&s.Inputs[v.input], name, opt.values)
	}
}

func setSpecFact(s *Spec, name string, values []string) bool {
	switch name {
	case "objective.kind":
		s.Objective.Kind = values[0]
	case "objective.purposes":
		s.Objective.Purposes = values
	case "objective.markets":
		s.Objective.Markets = values
	case "sources.open":
		s.Sources = slices.Clone(s.Sources)
		for i := range s.Sources {
			s.Sources[i].Open = slices.DeleteFunc(slices.Clone(s.Sources[i].Open), func(o OpenPoint) bool { return !slices.Contains(values, o.Code) })
		}
	case "base_model.stated":
		s.BaseModel = ""
		if values[0] == "yes" {
			i := slices.IndexFunc(s.Inputs, func(in Input) bool { return in.Kind == "base_model" })
			if i < 0 {
				return false
			}
			s.BaseModel = s.Inputs[i].ID
		}
	default:
		return false
	}
	return true
}

// setLicense gives an input, and all that it is made from, a licence with just these restrictions.
func setLicense(in *Input, restrictions []string) {
	in.License = License{Declared: []DeclaredLicense{{SPDX: "CC-BY-4.0"}}, Restrictions: restrictions, Copyright: in.License.Copyright, TDM: in.License.TDM}
	if in.Lineage != nil {
		free := func(refs []LineageRef) []LineageRef {
			refs = slices.Clone(refs)
			for i := range refs {
				refs[i].License = ""
			}
			return refs
		}
		in.Lineage = &Lineage{free(in.Lineage.DerivedFrom), free(in.Lineage.BaseModels), free(in.Lineage.GeneratedByModels), in.Lineage.Activities}
	}
}

func setInputFact(in *Input, name string, values []string) bool {
	lineage := func() *Lineage {
		l := Lineage{}
		if in.Lineage != nil {
			l = *in.Lineage
		}
		in.Lineage = &l
		return &l
	}
	switch name {
	case "sources.kind":
		in.Sources = nil
		for _, k := range values {
			in.Sources = append(in.Sources, Source{Kind: k})
		}
	case "collection.geography":
		in.Collection = &Collection{Geography: values}
	case "license.tdm":
		in.License.TDM = values[0]
	case "consent.status":
		in.Consent.Status = values[0]
	case "integrity":
		in.Digests, in.Revision = nil, ""
		if values[0] == "pinned" {
			in.Digests = []Digest{{Alg: "sha256", Value: strings.Repeat("0", 64)}}
		}
	case "lineage.parents":
		if values[0] != "none" {
			return false
		}
		l := lineage()
		l.DerivedFrom, l.BaseModels, l.GeneratedByModels = nil, nil, nil
	case "lineage.generators":
		l := lineage()
		l.GeneratedByModels = nil
		if values[0] == "named" {
			l.GeneratedByModels = []LineageRef{{Ref: "model"}}
		}
	case "shape.modalities":
		in.Shape = &Shape{Modalities: values, Languages: in.languages()}
	case "shape.languages":
		in.Shape = &Shape{Languages: values, Modalities: in.modalities()}
	case "residency.allowed":
		if values[0] == "no" {
			return false
		}
		return in.moveData()
	case "split":
		in.Split = values[0]
	case "trust_remote_code":
		yes := values[0] == "yes"
		in.TrustRemoteCode = &yes
	case "documentation":
		in.Description = ""
		if values[0] == "present" {
			in.Description, in.Publisher = "described", &Party{Name: "somebody"}
		}
	default: // the kind of an input is what it is
		return false
	}
	return true
}

// moveData gives an input places that it does not exclude. What is excluded stays,
// and so does every place that is allowed. It fails if nothing is left to go to.
func (in *Input) moveData() bool {
	r := Residency{Excluded: []string{}}
	if in.Residency != nil {
		r.Excluded = append(r.Excluded, in.Residency.Excluded...)
		r.StoredIn, r.ProcessedIn = in.Residency.StoredIn, in.Residency.ProcessedIn
	}
	barred := func(p string) bool {
		return slices.ContainsFunc(r.Excluded, func(banned string) bool { return within(p, banned) || within(banned, p) })
	}
	regions := []string{"CH", "US", "JP", "DE", "BR", "AU"}
	to := slices.IndexFunc(regions, func(p string) bool { return !barred(p) })
	for _, places := range []*[]string{&r.StoredIn, &r.ProcessedIn} {
		if *places = slices.DeleteFunc(slices.Clone(*places), barred); len(*places) > 0 {
			continue
		}
		if to < 0 {
			return false
		}
		*places = []string{regions[to]}
	}
	in.Residency = &r
	return true
}

// contextKeys are the keys of evidence.context that a flip may name, the ones
// that a run can act on first, and the declared purposes.
var contextKeys = []struct {
	name    string
	options [][]string
	set     func(*Spec, option)
}{
	{"hedge_emitted", flags, func(s *Spec, o option) { s.Evidence.Context.HedgeEmitted = o.flag() }},
	{"recommended_human_review", flags, func(s *Spec, o option) { s.Evidence.Context.RecommendedHumanReview = o.flag() }},
	{"disclosure_emitted", flags, func(s *Spec, o option) { s.Evidence.Context.DisclosureEmitted = o.flag() }},
	{"grounded_in_evidence", flags, func(s *Spec, o option) { s.Evidence.Context.GroundedInEvidence = o.flag() }},
	{"prescribed_single_answer", flags, func(s *Spec, o option) { s.Evidence.Context.PrescribedSingleAnswer = o.flag() }},
	{"high_stakes_topic", flags, func(s *Spec, o option) { s.Evidence.Context.HighStakesTopic = o.flag() }},
	{"presented_options_count", [][]string{{"2"}}, func(s *Spec, _ option) { two := int64(2); s.Evidence.Context.PresentedOptionsCount = &two }},
	{"alignment_score", [][]string{{"1"}}, func(s *Spec, _ option) { one := 1.0; s.Evidence.Context.AlignmentScore = &one }},
}

var flags = [][]string{{"true"}, {"false"}}

func (o option) flag() *bool {
	yes := o.values[0] == "true"
	return &yes
}

// contextVariables are what a registered predicate may look at, as far as is known.
func (x *flipper) contextVariables() (all []int) {
	for i, key := range contextKeys {
		all = append(all, x.variable(variableKey{kind: aContext, input: wholeSpec, index: i}, func() variable {
			v := variable{options: []option{{}}, stated: contextValue(&x.e.spec.Evidence.Context, i) != ""}
			for _, values := range key.options {
				v.options = append(v.options, option{values: values})
			}
			return v
		}))
	}
	x.asked[factIndex["objective.purposes"]] = highStakesPurposes
	return append(all, x.factVariable(factIndex["objective.purposes"], wholeSpec))
}

// celVariables are the facts and tags that an expression names.
func (x *flipper) celVariables(c *celClause, input int) (all []int) {
	add := func(v int) {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for _, path := range c.facts {
		owner, name, _ := strings.Cut(path, ".")
		places := []int{input}
		switch owner {
		case "spec":
			places = []int{wholeSpec}
		case "inputs":
			places = nil
			for i := range x.e.spec.Inputs {
				places = append(places, i)
			}
		}
		for _, at := range places {
			if tag, ok := strings.CutPrefix(name, "tags."); ok {
				for _, level := range slices.Compact([]int{wholeSpec, at}) {
					for _, v := range x.tagVariables(tagIndex[tag], level) {
						add(v)
					}
				}
			} else if col, ok := factAt(name, at == wholeSpec); ok {
				if factDefs[col].list && len(x.asked[col]) == 0 { // which values it asks for is not seen
					x.asked[col] = factDefs[col].codes[:min(len(factDefs[col].codes), maxOptions-3)]
				}
				add(x.factVariable(col, at))
			}
		}
	}
	return all
}
