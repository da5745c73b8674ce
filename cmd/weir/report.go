package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/cmd/weir/client"
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
	above int    // lines of the file above them
	packs *shelf
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
	*client.Screening
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
	Raised   *screening.Raised  `json:"raised,omitzero"` // the effect, by profiles
	Severity string             `json:"severity,omitzero"`
	Title    string             `json:"title,omitzero"`
	Reason   string             `json:"reason"`
	Places   []reportedPlace    `json:"places"`
	More     bool               `json:"more,omitzero"` // the decision leaves further places out
	Remedy   string             `json:"remedy,omitzero"`
	Change   []reportedChange   `json:"change"`
	NoChange string             `json:"no_change,omitzero"` // why nothing in the spec would change it

	OutOfForce screening.OutOfForce `json:"out_of_force,omitzero"` // it then leads to nothing, whatever it found

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

	region *region // of the span in the source, where it is known
}

// reportedChange is part of the smallest change that decides a finding anew.
type reportedChange struct {
	Pointer string `json:"pointer"`
	Line    int    `json:"line,omitzero"`
	Do      string `json:"do"` // in words

	How     string          `json:"how,omitzero"` // state, replace or remove
	Fact    string          `json:"fact,omitzero"`
	From    string          `json:"from,omitzero"`
	To      []string        `json:"to,omitzero"`
	Without []string        `json:"without,omitzero"`
	Span    *screening.Span `json:"span,omitzero"`
}

func newReport(s *client.Screening, from source) *report {
	r := &report{Screening: s, source: from}
	spec := from.spec(s.Decision)
	line, locate := spec.lines(from.above), spec.regions(from.raw, from.above)
	terms := from.packs.terms(s.Decision)
	effects := map[string]screening.EffectiveFinding{}
	for _, e := range s.Decision.Effects() {
		effects[e.Term] = e.EffectiveFinding
	}
	decided := map[string]bool{}
	for _, c := range s.Decision.Causes {
		effects[c.Term], decided[c.Term] = c, true
	}
	flips := from.flips(s, spec)
	add := func(layer screening.Layer, pack string, findings []*screening.Finding) {
		for _, f := range findings {
			id := string(layer) + ":" + f.Term
			e, t := effects[id], cmp.Or(terms[id], &screening.Term{})
			x := reported{Term: id, Pack: pack, State: f.State, Cause: f.Cause, Decided: decided[id], Effect: e.Effect, Raised: e.Raised, OutOfForce: f.OutOfForce,
				Severity: cmp.Or(e.Severity, t.Severity), Title: cmp.Or(e.Title, t.Title, f.Term), Reason: f.Reason,
				Remedy: cmp.Or(e.Remedy, t.Remedy), description: t.Description, references: t.References, Places: []reportedPlace{}}
			for _, ev := range f.Evidence {
				if ev.Pointer == "" {
					x.More = x.More || ev.Name == "more"
					continue // nowhere to look
				}
				at := reportedPlace{Pointer: ev.Pointer, Line: line(ev.Pointer), Name: ev.Name, Value: ev.Value, Span: ev.Span}
				if at.region = locate(at); at.region != nil {
					at.Line = at.region.startLine // a text may begin above it
				}
				x.Places = append(x.Places, at)
			}
			x.flip(flips[id], line)
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
	r.explainOutcome(flips, line)
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
func (r *report) explainOutcome(flips map[string]screening.Flip, line func(string) int) {
	standing := slices.ContainsFunc(r.findings, func(x reported) bool { return x.weight >= warning })
	byFindings := r.Status == review.StatusPending || r.Status == review.StatusBlocked
	if exitCode(r.Status) == exitAdmit || standing && byFindings {
		return
	}
	word, _ := headline(r.Screening)
	x := &reported{Term: "weir:outcome", Pack: "weir", Decided: true, Title: word, Reason: summary(r.Screening), weight: failure}
	if r.Status == review.StatusPending {
		x.weight = warning
	}
	if len(flips) == 0 || r.Decision.NoPolicyMatched { // no finding says it, or what is missing is for none of them alone
		for _, m := range r.Decision.Missing {
			x.Change = append(x.Change, reportedChange{Pointer: m.Pointer, Line: line(m.Pointer), Do: "state " + m.Say, How: screening.DoState})
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

// flip sets the smallest change that has the finding upheld; where that is not
// known, the remedy at the places that violate.
func (x *reported) flip(flip screening.Flip, line func(string) int) {
	x.Change = []reportedChange{}
	for _, c := range flip.Changes {
		do := c.Say
		switch {
		case c.Do == screening.DoState:
			do = "state " + do
		case c.Do == screening.DoRemove:
			do = fmt.Sprintf("take out %q: %s", c.From, do)
		case c.From != "" && len(c.Without) == 0:
			do = "instead of " + c.From + ": " + do
		}
		x.Change = append(x.Change, reportedChange{c.Pointer, line(c.Pointer), do, c.Do, c.Fact, c.From, c.To, c.Without, c.Span})
	}
	if x.NoChange = flip.Why; len(x.Change) > 0 || x.State == screening.Upheld || x.Remedy == "" || len(x.Places) == 0 {
		return
	}
	if x.State == screening.Violated || x.Cause == screening.CauseHint {
		for _, at := range x.firstPlaces() {
			x.Change = append(x.Change, reportedChange{Pointer: at.Pointer, Line: at.Line, Do: x.Remedy})
		}
		x.NoChange = ""
	}
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

// says is the finding in printable lines: why, where, and what passes.
func (x *reported) says() []string {
	said := []string{printable(x.Reason)}
	for _, at := range x.Places {
		said = append(said, "At "+at.says())
	}
	if x.More {
		said = append(said, "And more of this kind.")
	}
	return append(said, x.advice()...)
}

// says names a place and what stands there, printable.
func (at reportedPlace) says() string {
	return printable(fmt.Sprintf("%s%s: %s = %s", at.Pointer, inLine(at.Line), at.Name, at.Value))
}

// advice is what passes, and what would have to change, in printable lines.
func (x *reported) advice() (said []string) {
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

// lines gives the lookup of lines, which remembers what it found. above is how
// many lines of the file are above the spec.
func (s sourceSpec) lines(above int) func(pointer string) int {
	known := map[string]int{}
	return func(pointer string) int {
		if s.ParsedSpec == nil {
			return 0
		}
		n, ok := known[pointer]
		if !ok {
			if n = s.Line(pointer); n > 0 {
				n += above
			}
			known[pointer] = n
		}
		return n
	}
}

// flips are the smallest changes by tagged term: those that the gate gave, or
// worked out here if the packs at hand give the very same decision.
func (from source) flips(s *client.Screening, spec sourceSpec) map[string]screening.Flip {
	x := s.Explanation
	if x == nil || x.Unavailable != "" {
		if x = from.explanation(s.Decision, spec); x == nil {
			return nil
		}
	}
	flips := make(map[string]screening.Flip, len(x.Flips))
	for _, f := range x.Flips {
		flips[f.Term] = f
	}
	return flips
}

func (from source) explanation(d *screening.Decision, spec sourceSpec) *client.Explanation {
	if spec.ParsedSpec == nil {
		return nil
	}
	v := from.packs.vocabulary(d.AuditOnly, d.Unratified)
	if v == nil {
		return nil
	}
	again, x, err := screening.Explain(spec.ParsedSpec, v, d.AsOf)
	if err != nil {
		return nil
	}
	have, err1 := screening.MarshalDecision(again)
	want, err2 := screening.MarshalDecision(d)
	if err1 != nil || err2 != nil || !bytes.Equal(have, want) {
		return nil
	}
	return &client.Explanation{Explanation: *x}
}
