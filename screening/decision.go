package screening

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EngineVersion names the rules by which bytes become decisions. It changes
// whenever the same bytes, packs and day could give another decision, and stands
// beside a decision, not in it.
const EngineVersion = "3"

// Day is a UTC calendar day, written 2006-01-02.
type Day string

// ParseDay reads a day.
func ParseDay(s string) (Day, error) {
	if t, err := time.Parse(time.DateOnly, s); err != nil || t.Year() == 0 {
		return "", &valueError{"must be a day, written YYYY-MM-DD"}
	}
	return Day(s), nil
}

// UnmarshalJSON reads what ParseDay reads. A null is no day: a date that somebody
// began to write must not be taken for none.
func (d *Day) UnmarshalJSON(data []byte) (err error) {
	text := ""
	_ = json.Unmarshal(data, &text) // what is no text is no day
	*d, err = ParseDay(text)
	return err
}

// Decision is what the verdicts on one spec fold to. Its JSON is deterministic.
type Decision struct {
	Outcome         Outcome   `json:"outcome"`
	SpecSHA256      Digest256 `json:"spec_sha256"`
	CanonicalSHA256 Digest256 `json:"canonical_sha256"`
	AsOf            Day       `json:"as_of"`
	Packs           []PackRef `json:"packs"`
	// Causes are the findings that decided: those whose effect is the outcome, and every hedge.
	Causes []EffectiveFinding `json:"causes"`
	// NoPolicyMatched: no ethics term that decides anything could be checked.
	NoPolicyMatched bool            `json:"no_policy_matched"`
	AuditOnly       bool            `json:"audit_only,omitzero"`
	Unratified      bool            `json:"unratified,omitzero"`
	Refusal         string          `json:"refusal,omitzero"` // on block
	HedgeInjected   bool            `json:"hedge_injected"`   // the statement has to change; see Hedge
	Hedge           *InjectedHedge  `json:"hedge,omitzero"`   // travels with any admission, also one that people grant
	Missing         []Statement     `json:"missing"`          // shortest list of statements that would decide what is open
	Safety          []SafetyVerdict `json:"safety"`
	Ethics          []EthicsVerdict `json:"ethics"`

	effects []TermEffect
}

// EffectiveFinding is a finding together with what it leads to.
type EffectiveFinding struct {
	Term     string   `json:"term"` // "safety:<id>" or "ethics:<id>"
	Effect   Response `json:"effect"`
	Severity string   `json:"severity"`
	Title    string   `json:"title"`
	Remedy   string   `json:"remedy,omitzero"` // what would make it pass
	Raised   *Raised  `json:"raised,omitzero"` // by profiles, above what its own pack asks for
}

// InjectedHedge says what the disclosure statement becomes.
type InjectedHedge struct {
	Text      string   `json:"text"`
	Terms     []string `json:"terms"`     // that caused it
	Statement string   `json:"statement"` // with the text in front; the submitted one stays as it is
}

// SafetyVerdict is the floor's answer: all findings of one safety pack.
type SafetyVerdict struct {
	Pack             string     `json:"pack"`
	Upheld           bool       `json:"upheld"`
	Violated         []string   `json:"violated_boundaries"`
	RuntimeCheckable int        `json:"runtime_checkable_count"`
	Findings         []*Finding `json:"findings"` // in lexical order of term; read only: those with nothing to show are the vocabulary's own
}

// EthicsVerdict is a pledge's answer: all findings of one ethics pack.
type EthicsVerdict struct {
	Pack             string     `json:"pack"`
	Upheld           bool       `json:"upheld"`
	Violated         []string   `json:"violated_commitments"`
	RuntimeCheckable int        `json:"runtime_checkable_count"`
	Findings         []*Finding `json:"findings"` // in lexical order of term; read only, as in SafetyVerdict
}

// MarshalDecision gives the stored form of a decision.
func MarshalDecision(d *Decision) ([]byte, error) { return json.Marshal(d) }

// Finding looks a finding up by its tagged id.
func (d *Decision) Finding(tagged string) (*Finding, bool) {
	layer, id, _ := strings.Cut(tagged, ":")
	in := func(fs []*Finding) *Finding {
		if i := slices.IndexFunc(fs, func(f *Finding) bool { return f.Term == id }); i >= 0 {
			return fs[i]
		}
		return nil
	}
	if layer == string(Safety) {
		for _, v := range d.Safety {
			if f := in(v.Findings); f != nil {
				return f, true
			}
		}
	} else {
		for _, v := range d.Ethics {
			if f := in(v.Findings); f != nil {
				return f, true
			}
		}
	}
	return nil, false
}

// Classify decides. It is pure: the same spec bytes, packs and day give the same
// decision bytes. The error is an [*InvalidError] when the spec lacks what the
// packs cannot do without (a disclosure statement to hedge).
func Classify(spec *ParsedSpec, v *Vocabulary, asOf Day) (*Decision, error) {
	if err := v.accepts(spec, asOf); err != nil {
		return nil, err
	}
	e := v.begin(spec)
	f := fold{v: v, effects: e.effects[:0], decision: &Decision{SpecSHA256: spec.SHA256, CanonicalSHA256: spec.CanonicalSHA256, AsOf: asOf, Packs: v.refs,
		AuditOnly: v.cfg.AuditOnly, Unratified: v.cfg.Unratified,
		Causes: []EffectiveFinding{}, Missing: []Statement{}, Safety: []SafetyVerdict{}, Ethics: []EthicsVerdict{}}}
	answers := e.answers
	for i := range v.packs {
		p := &v.packs[i]
		f.verdict(p, e, answers[:len(p.terms)])
		answers = answers[len(p.terms):]
	}
	d := f.finish(spec.DisclosureStatement)
	clear(f.effects) // room that is used again keeps nothing alive
	e.effects = f.effects
	v.end(e)
	return d, nil
}

// accepts refuses a spec without what the packs cannot do without.
func (v *Vocabulary) accepts(spec *ParsedSpec, asOf Day) error {
	if IsBlank(spec.DisclosureStatement) && v.HedgesOn(asOf) {
		return spec.Invalid(Problem{Pointer: "/disclosure_statement",
			Detail: "must not be blank: a term in force may put a hedge before it"})
	}
	return nil
}

// HedgesOn reports whether a term that can ask for a hedge is in force on a day.
func (v *Vocabulary) HedgesOn(day Day) bool {
	if !v.hedges {
		return false
	}
	for i := range v.packs {
		if slices.ContainsFunc(v.packs[i].terms, func(t compiledTerm) bool { return t.hedger != nil && t.outOfForce(day) == "" }) {
			return true
		}
	}
	return false
}

// fold gathers findings and their effects while the packs are gone through.
type fold struct {
	v        *Vocabulary
	decision *Decision
	effects  []effect
	tally    tally
}

type effect struct {
	EffectiveFinding
	term    *compiledTerm
	pack    *compiledPack
	finding *Finding
	hedges  bool // also one that a profile raised: admitted by people, the hedge still goes with the run
}

func (f *fold) verdict(p *compiledPack, e *evaluation, answers []answer) {
	findings, own := p.plain, false
	violated, checkable := []string{}, 0
	for i := range p.terms {
		t := &p.terms[i]
		fd := t.plain
		if a := &answers[i]; !t.isPlain(a) {
			fd = t.explain(e, a)
			if !own {
				findings, own = slices.Clone(findings), true
			}
			findings[i] = fd
		}
		if f.v.dated {
			if why := t.outOfForce(f.decision.AsOf); why != "" {
				aside := *fd // it may be shared
				aside.setAside(t.Term, why)
				if !own {
					findings, own = slices.Clone(findings), true
				}
				findings[i] = &aside
				continue
			}
		}
		if fd.RuntimeCheckable() {
			checkable++
		}
		if fd.State == Violated {
			violated = append(violated, t.ID)
		}
		res := fd.result()
		if r := f.tally.add(t, res); r > 0 {
			f.effects = append(f.effects, effect{EffectiveFinding{tagID(p.Layer, t.ID), r, t.Severity, t.Title, t.Remedy, t.raising.said(res, r)},
				t, p, fd, r == Hedge || t.raising != nil && t.raising.effects[res] == Hedge})
		}
	}
	if len(p.terms) == 0 {
		return // a profile without terms of its own finds nothing
	}
	if p.Layer == Safety {
		f.decision.Safety = append(f.decision.Safety, SafetyVerdict{p.ID, len(violated) == 0, violated, checkable, findings})
	} else {
		f.decision.Ethics = append(f.decision.Ethics, EthicsVerdict{p.ID, len(violated) == 0, violated, checkable, findings})
	}
}

func (f *fold) finish(statement string) *Decision {
	d := f.decision
	d.NoPolicyMatched = !f.tally.checked
	d.Outcome = f.tally.outcome(f.v.cfg)
	worst := Response(0) // no effect
	switch d.Outcome {
	case OutcomeBlock:
		worst = Block
	case OutcomeEscalate:
		worst = Escalate
	}
	var open [][][]Statement
	var refused []string
	for _, e := range f.effects {
		if e.Effect == Hedge || e.Effect == worst {
			d.Causes = append(d.Causes, e.EffectiveFinding)
		}
		if e.finding.State == NotCheckable && e.Effect >= Hedge {
			open = append(open, e.finding.open...)
		}
		if e.Effect == Block {
			refused = append(refused, e.Term)
		}
	}
	d.effects = make([]TermEffect, len(f.effects))
	for i, e := range f.effects {
		d.effects[i] = TermEffect{e.EffectiveFinding, e.pack.ID}
	}
	sortCauses(d.Causes)
	d.Missing = shortest(append(open, f.toMatch()))
	d.Refusal = Refusal(refused)
	if d.Hedge = f.hedge(statement); d.Hedge != nil {
		d.HedgeInjected = d.Hedge.Statement != statement
	}
	return d
}

// toMatch gives, if no policy matched, the ways to make one match: for each
// ethics term that decides something, the statements that would decide it.
func (f *fold) toMatch() (alternatives [][]Statement) {
	for _, e := range f.effects {
		open := e.finding.open
		undecidable := slices.ContainsFunc(open, func(part [][]Statement) bool { return len(part) == 0 })
		if f.tally.checked || !e.term.decides || len(open) == 0 || undecidable {
			continue
		}
		alternatives = append(alternatives, shortest(open))
	}
	return alternatives
}

func sortCauses(causes []EffectiveFinding) {
	slices.SortFunc(causes, func(a, b EffectiveFinding) int {
		if a.Effect != b.Effect {
			return int(b.Effect) - int(a.Effect)
		}
		return strings.Compare(a.Term, b.Term)
	})
}

// hedge injects the text of the lowest pack id among those that ask for one, once.
func (f *fold) hedge(statement string) *InjectedHedge {
	var h *InjectedHedge
	var lowest string
	for _, e := range f.effects {
		if !e.hedges {
			continue
		}
		if by := e.term.hedger; h == nil || by.ID < lowest {
			if h == nil {
				h = &InjectedHedge{}
			}
			h.Text, lowest = by.HedgeText(), by.ID
		}
		h.Terms = append(h.Terms, e.Term)
	}
	if h != nil {
		slices.Sort(h.Terms)
		h.Statement = InjectHedge(h.Text, statement)
	}
	return h
}

// MarshalJSON keeps a decision without an outcome from being written.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	if d.Outcome == 0 {
		return nil, fmt.Errorf("a decision without an outcome cannot be written")
	}
	return json.Marshal(plain(d), jsontext.EscapeForHTML(false))
}

// ID is the term's id without its layer.
func (e EffectiveFinding) ID() string {
	_, id, _ := strings.Cut(e.Term, ":")
	return id
}

// TermEffect is one finding that leads to something, with its pack.
type TermEffect struct {
	EffectiveFinding
	Pack string
}

// Effects lists every finding that is not upheld with what it leads to, in the
// order of the verdicts.
func (d *Decision) Effects() []TermEffect { return d.effects }
