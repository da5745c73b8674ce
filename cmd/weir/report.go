package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/review"
	"weir/screening"
)

// reportFormats are the outputs that other tools read, beside text and json.
var reportFormats = []string{"junit", "sarif", "github"}

const formatsHelp = "text, json, junit, sarif or github"

// source is where a screened spec came from.
type source struct {
	file  string // "" or "-": no file that a reader could open
	raw   []byte // nil: not at hand, so lines are not known
	packs []string
}

// weight is how much a finding matters to what happens to the run now. It is the
// finding's effect, unless people decided since.
type weight int

const (
	noWeight weight = iota // it did not decide
	note                   // it decided nothing against the run: a hedge, or what people admitted
	warning
	failure
)

// report is a decision arranged by finding, for people and tools.
type report struct {
	*screeningAnswer
	source
	findings []reported // all of them: per pack, in lexical order of term
	outcome  *reported  // when no finding says why the run does not train
}

// reported is one finding with its place in the source and what would change it.
type reported struct {
	Term     string             `json:"term"` // tagged
	Pack     string             `json:"pack"`
	State    screening.State    `json:"finding"`
	Cause    screening.Cause    `json:"cause,omitzero"`
	Decided  bool               `json:"decided"`         // it is among the causes of the decision
	Effect   screening.Response `json:"effect,omitzero"` // absent when the decision does not say
	Severity string             `json:"severity,omitzero"`
	Title    string             `json:"title,omitzero"`
	Reason   string             `json:"reason"`
	Places   []reportedPlace    `json:"places"`
	More     bool               `json:"more,omitzero"` // the decision leaves further places out
	Remedy   string             `json:"remedy,omitzero"`
	Change   []reportedChange   `json:"change"`

	description string
	references  []screening.Reference
	weight      weight
}

type reportedPlace struct {
	Pointer string          `json:"pointer"`
	Line    int             `json:"line,omitzero"`
	Name    string          `json:"name"`
	Value   string          `json:"value"`
	Span    *screening.Span `json:"span,omitzero"`
}

// reportedChange is part of the smallest change that decides a finding anew.
type reportedChange struct {
	Pointer string `json:"pointer"`
	Line    int    `json:"line,omitzero"`
	Do      string `json:"do"`
}

func newReport(s *screeningAnswer, from source) *report {
	r := &report{screeningAnswer: s, source: from}
	spec := from.spec(s.Decision)
	line := spec.lines()
	terms := knownTerms(from.packs, s.Decision)
	effects := map[string]screening.EffectiveFinding{}
	for _, e := range s.Decision.Effects() {
		effects[e.Term] = e.EffectiveFinding
	}
	decided := map[string]bool{}
	for _, c := range s.Decision.Causes {
		effects[c.Term], decided[c.Term] = c, true
	}
	used := map[screening.Statement]bool{}
	add := func(layer screening.Layer, pack string, findings []screening.Finding) {
		for i := range findings {
			f := &findings[i]
			id := string(layer) + ":" + f.Term
			e, t := effects[id], cmp.Or(terms[id], &screening.Term{})
			x := reported{Term: id, Pack: pack, State: f.State, Cause: f.Cause, Decided: decided[id], Effect: e.Effect,
				Severity: cmp.Or(e.Severity, t.Severity), Title: cmp.Or(e.Title, t.Title, f.Term), Reason: f.Reason,
				Remedy: cmp.Or(e.Remedy, t.Remedy), description: t.Description, references: t.References, Places: []reportedPlace{}}
			for _, ev := range f.Evidence {
				if ev.Pointer == "" {
					x.More = x.More || ev.Name == "more"
					continue // nowhere to look
				}
				x.Places = append(x.Places, reportedPlace{ev.Pointer, line(ev.Pointer), ev.Name, ev.Value, ev.Span})
			}
			x.Change = x.changes(spec.deciding(f, s.Decision.Missing, used), line)
			x.weight = r.weigh(&x)
			r.findings = append(r.findings, x)
		}
	}
	for _, v := range s.Decision.Safety {
		add(screening.Safety, v.Pack, v.Findings)
	}
	for _, v := range s.Decision.Ethics {
		add(screening.Ethics, v.Pack, v.Findings)
	}
	r.explainOutcome(used, line)
	return r
}

// weigh says what a finding means for the run as it stands now.
func (r *report) weigh(x *reported) weight {
	switch {
	case !x.Decided:
		return noWeight
	case x.Effect < screening.Escalate || r.Status == review.StatusAdmitted:
		return note
	case x.Effect == screening.Block || r.Status == review.StatusBlocked:
		return failure
	default:
		return warning
	}
}

// explainOutcome makes sure that a run that may not train never looks like one
// that may: when no finding stands against it, the outcome itself does.
func (r *report) explainOutcome(used map[screening.Statement]bool, line func(string) int) {
	standing := slices.ContainsFunc(r.findings, func(x reported) bool { return x.weight >= warning })
	byFindings := r.Status == review.StatusPending || r.Status == review.StatusBlocked
	if exitCode(r.Status) == exitAdmit || standing && byFindings {
		return
	}
	word, _ := headline(r.screeningAnswer)
	x := &reported{Term: "weir:outcome", Pack: "weir", Decided: true, Title: word, Reason: summary(r.screeningAnswer), weight: failure}
	if r.Status == review.StatusPending {
		x.weight = warning
	}
	for _, m := range r.Decision.Missing {
		if !used[m] {
			x.Change = append(x.Change, reportedChange{m.Pointer, line(m.Pointer), "state " + m.Say})
		}
	}
	r.outcome = x
}

// all gives the findings, and the outcome where it stands for itself.
func (r *report) all() []reported {
	if r.outcome == nil {
		return r.findings
	}
	return append([]reported{*r.outcome}, r.findings...)
}

// standing gives what decided, the weightiest first.
func (r *report) standing() []reported {
	list := slices.DeleteFunc(slices.Clone(r.all()), func(x reported) bool { return x.weight == noWeight })
	slices.SortStableFunc(list, func(a, b reported) int { return int(b.weight) - int(a.weight) })
	return list
}

func (r *report) write(w io.Writer, format string) error {
	switch format {
	case "junit":
		return r.junit(w)
	case "sarif":
		return r.sarif(w)
	case "github":
		return r.github(w)
	}
	return fmt.Errorf("no output %q", format)
}

// changes is the smallest change that decides the finding anew, as far as the
// decision says: what to state, or the remedy at the place that violates.
func (x *reported) changes(missing []screening.Statement, line func(string) int) []reportedChange {
	out := []reportedChange{}
	for _, m := range missing {
		out = append(out, reportedChange{m.Pointer, line(m.Pointer), "state " + m.Say})
	}
	if len(out) > 0 || x.State == screening.Upheld || x.Remedy == "" || len(x.Places) == 0 {
		return out
	}
	if x.State == screening.Violated || x.Cause == screening.CauseHint {
		for _, at := range x.firstPlaces() {
			out = append(out, reportedChange{at.Pointer, at.Line, x.Remedy})
		}
	}
	return out
}

// firstPlaces gives one place per input that has one, as every such input has to
// change; without any, the first place.
func (x *reported) firstPlaces() (first []reportedPlace) {
	seen := map[string]bool{}
	for _, at := range x.Places {
		if rest, ok := strings.CutPrefix(at.Pointer, "/inputs/"); ok {
			nth, _, _ := strings.Cut(rest, "/")
			if !seen[nth] {
				seen[nth] = true
				first = append(first, at)
			}
		}
	}
	if len(first) == 0 {
		return x.Places[:1]
	}
	return first
}

// place is where a reader should look first; line 0 is not known.
func (x *reported) place() (pointer string, line int) {
	if len(x.Places) > 0 {
		return x.Places[0].Pointer, x.Places[0].Line
	}
	if len(x.Change) > 0 {
		return x.Change[0].Pointer, x.Change[0].Line
	}
	return "", 0
}

// says is the finding in a few printable lines.
func (x *reported) says() []string {
	said := []string{x.Reason}
	if x.Remedy != "" {
		said = append(said, "Passes: "+x.Remedy)
	}
	for _, c := range x.Change {
		if c.Do != x.Remedy {
			said = append(said, c.Pointer+": "+c.Do)
		}
	}
	for i, s := range said {
		said[i] = printable(s)
	}
	return said
}

// heading is the term and its title, printable.
func (x *reported) heading() string { return printable(x.Term + ": " + x.Title) }

// sourceSpec is the parsed spec, nil when its bytes are not at hand.
type sourceSpec struct{ *screening.ParsedSpec }

// spec parses the bytes, if they are those that were decided on.
func (from source) spec(d *screening.Decision) sourceSpec {
	if p, err := screening.ParseSpec(from.raw); err == nil && p.SHA256 == d.SpecSHA256 {
		return sourceSpec{p}
	}
	return sourceSpec{}
}

// lines gives the lookup of lines, which remembers what it found.
func (s sourceSpec) lines() func(pointer string) int {
	known := map[string]int{}
	return func(pointer string) int {
		if s.ParsedSpec == nil {
			return 0
		}
		n, ok := known[pointer]
		if !ok {
			n = s.Line(pointer)
			known[pointer] = n
		}
		return n
	}
}

// deciding picks, of the statements that the decision misses, those that belong
// to a finding. A decision lists them for all findings together, so they are told
// apart by what they speak of: a place that the evidence names, or a tag or fact
// that the reason says is open.
func (s sourceSpec) deciding(f *screening.Finding, missing []screening.Statement, used map[screening.Statement]bool) (mine []screening.Statement) {
	if f.State != screening.NotCheckable || f.Cause != screening.CauseNoEvidence {
		return nil
	}
	open := openNames(f.Reason)
	for _, m := range missing {
		tag, fact := spokenOf(m)
		cited := slices.ContainsFunc(f.Evidence, func(e screening.Evidence) bool {
			return e.Pointer == m.Pointer && (tag == "" || e.Name == "tag."+tag)
		})
		named := slices.ContainsFunc(open, func(name string) bool {
			return tag != "" && name == tag || tag == "" && (name == fact || strings.HasPrefix(name, fact+"."))
		})
		if cited || named && s.concerns(f, m.Pointer) {
			mine = append(mine, m)
			used[m] = true
		}
	}
	return mine
}

// openNames reads which tags and facts a reason says are open.
func openNames(reason string) (names []string) {
	if strings.HasPrefix(reason, "the spec names no data set") {
		return []string{"inputs"}
	}
	for part := range strings.SplitSeq(reason, "; ") {
		for _, end := range []string{" is not stated", " is stated as not known", " is stated but leaves it open"} {
			if name, ok := strings.CutSuffix(part, end); ok {
				names = append(names, name[strings.LastIndexByte(name, ' ')+1:])
			}
		}
	}
	return names
}

// spokenOf gives the tag that a statement states, or else the fact: /inputs/3/license → license.
func spokenOf(m screening.Statement) (tag, fact string) {
	if rest, ok := strings.CutPrefix(m.Say, "{tag: "); ok {
		tag, _, _ = strings.Cut(rest, ",")
		return tag, ""
	}
	parts := strings.Split(strings.TrimPrefix(m.Pointer, "/"), "/")
	if len(parts) > 2 && parts[0] == "inputs" {
		parts = parts[2:]
	}
	return "", strings.Join(parts, ".")
}

// concerns reports whether a pointer is outside the inputs or in an input that
// the finding leaves open. Without the spec every input may be meant.
func (s sourceSpec) concerns(f *screening.Finding, pointer string) bool {
	rest, ok := strings.CutPrefix(pointer, "/inputs/")
	if !ok || s.ParsedSpec == nil || len(f.Inputs) == 0 {
		return true
	}
	nth, _, _ := strings.Cut(rest, "/")
	return slices.ContainsFunc(f.Inputs, func(open screening.InputFinding) bool {
		i := slices.IndexFunc(s.Inputs, func(in screening.Input) bool { return in.ID == open.ID })
		return open.State == screening.NotCheckable && fmt.Sprint(i) == nth
	})
}

// knownTerms looks up the terms of the packs that a decision was made with. A
// pack that is not at hand in exactly that form is left out: the report then
// says only what the decision says.
func knownTerms(refs []string, d *screening.Decision) map[string]*screening.Term {
	known := map[string]*screening.Term{}
	reg := screening.NewRegistry()
	for _, ref := range append([]string{screening.FloorID}, refs...) {
		b, err := loadBundle(ref, reg)
		if err != nil || !slices.ContainsFunc(d.Packs, func(p screening.PackRef) bool { return p.SHA256 == b.Pack.SHA256 }) {
			continue
		}
		for i := range b.Pack.Terms {
			known[string(b.Pack.Layer)+":"+b.Pack.Terms[i].ID] = &b.Pack.Terms[i]
		}
	}
	return known
}
