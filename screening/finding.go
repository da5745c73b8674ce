package screening

import (
	"fmt"
	"slices"
	"strings"
)

// Cause says why a finding is not checkable.
type Cause string

const (
	CauseNoEvidence  Cause = "no_evidence"  // the spec does not say
	CauseHint        Cause = "hint"         // something that may not decide speaks for a violation
	CauseStructural  Cause = "structural"   // cannot be seen in a spec; enforced elsewhere
	CauseNoPredicate Cause = "no_predicate" // the term has nothing that checks it
	CauseError       Cause = "error"        // the predicate failed; always escalates
)

const numCauses = 5

var causes = [numCauses]Cause{CauseNoEvidence, CauseHint, CauseStructural, CauseNoPredicate, CauseError}

// State is the public form of a finding.
type State string

const (
	Violated     State = "violated"
	Upheld       State = "upheld"
	NotCheckable State = "not_checkable"
)

// Finding is what one term comes to on one spec.
type Finding struct {
	Term     string         `json:"term"`
	State    State          `json:"finding"`
	Cause    Cause          `json:"cause,omitempty"` // set exactly when not checkable
	Reason   string         `json:"reason"`
	Evidence []Evidence     `json:"evidence,omitempty"`
	Inputs   []InputFinding `json:"inputs,omitempty"` // inputs that are violated or not checkable
	// OutOfForce is set when the term is not in force on the day of the decision:
	// the finding then leads to nothing, whatever it says.
	OutOfForce OutOfForce `json:"out_of_force,omitempty"`

	open [][][]Statement // per undecided input, the alternatives that would decide it
}

// InputFinding is the state of one input in a per-input finding.
type InputFinding struct {
	ID    string `json:"id"`
	State State  `json:"finding"`
}

// RuntimeCheckable reports whether the finding is a real answer.
func (f *Finding) RuntimeCheckable() bool { return f.State == Violated || f.State == Upheld }

func notCheckable(term string, cause Cause, reason string) Finding {
	return Finding{Term: term, State: NotCheckable, Cause: cause, Reason: reason}
}

// plainFinding is what the term comes to when there is nothing to show: upheld by
// its clause, or never checkable without one. It is the same for every spec.
func (t *compiledTerm) plainFinding() *Finding {
	f := Finding{Term: t.ID, State: Upheld, Reason: upheldReason}
	switch {
	case t.clause != nil:
	case t.Structural != "":
		f = notCheckable(t.ID, CauseStructural, "cannot be seen in a spec; "+t.Structural)
	default:
		f = notCheckable(t.ID, CauseNoPredicate, "no predicate is registered for this term")
	}
	return &f
}

// isPlain reports whether an answer is said by the plain finding.
func (t *compiledTerm) isPlain(a *answer) bool {
	return a.detail == 0 && (t.clause == nil || a.result == resultUpheld && !t.keeps)
}

// explain says an answer that is not plain in words. Saying it can fail too, and
// that is a failure of the term as well.
func (t *compiledTerm) explain(e *evaluation, a *answer) *Finding {
	f := &Finding{Term: t.ID, Reason: upheldReason}
	f.State, f.Cause = a.result.state()
	defer func() {
		if recover() != nil {
			*f = notCheckable(t.ID, CauseError, "the predicate failed and decided nothing")
		}
	}()
	if a.detail > 0 {
		switch d := &e.details[a.detail-1]; {
		case d.given != nil:
			*f = *d.given
		case d.noDataset:
			f.Reason = "the spec names no data set"
			f.open = [][][]Statement{{{{Pointer: "/inputs", Say: "{id: ID, kind: dataset, …}"}}}}
		default:
			f.Reason = d.failure
		}
		return f
	}
	switch {
	case t.over == 0:
		t.explainSpec(e, a.value, f)
	case a.value != no:
		t.explainInputs(e, f)
	}
	return f
}

// honest corrects a predicate's answer that contradicts itself or cannot be read.
func (f Finding) honest() Finding {
	switch {
	case f.State == Violated, f.State == Upheld:
		f.Cause = ""
	case f.State == NotCheckable && slices.Contains(causes[:], f.Cause):
	case f.State == NotCheckable && f.Cause == "":
		f.Cause = CauseNoEvidence
	default:
		return notCheckable(f.Term, CauseError, "the predicate gave no valid answer")
	}
	if IsBlank(f.Reason) {
		f.Reason = "the predicate gave no reason"
	}
	f.Evidence = compactEvidence(slices.Clone(f.Evidence))
	return f
}

const upheldReason = "nothing stated violates it"

func (t *compiledTerm) explainSpec(e *evaluation, v value, f *Finding) {
	var x explanation
	t.clause.explain(e, wholeSpec, &x)
	f.Reason, f.Evidence = joinReasons(x.reasons), compactEvidence(x.evidence)
	if !v.known() {
		f.open = [][][]Statement{x.open}
	}
}

func (t *compiledTerm) explainInputs(e *evaluation, f *Finding) {
	var reasons []string
	for i := range e.inputs {
		v := t.at(e, i)
		if v == no {
			continue
		}
		state, _ := valueResults[v].state()
		f.Inputs = append(f.Inputs, InputFinding{ID: e.spec.Inputs[i].ID, State: state})
		if state != f.State {
			continue // an open input beside a violated one is listed, not explained
		}
		var x explanation
		t.clause.explain(e, i, &x)
		f.Evidence = append(f.Evidence, x.evidence...)
		reasons = append(reasons, "input "+e.spec.Inputs[i].ID+": "+joinReasons(x.reasons))
		if v != yesValue {
			f.open = append(f.open, x.open)
		}
	}
	f.Evidence = compactEvidence(f.Evidence)
	f.Reason = joinInputs(reasons)
}

func joinReasons(reasons []string) string {
	if len(reasons) == 1 {
		return reasons[0]
	}
	return strings.Join(slices.Compact(slices.Clone(reasons)), "; ")
}

// joinInputs shortens what would repeat for every input.
func joinInputs(reasons []string) string {
	const most = 3
	if len(reasons) <= most {
		return strings.Join(reasons, "; ")
	}
	return strings.Join(reasons[:most], "; ") + fmt.Sprintf("; and %d more inputs", len(reasons)-most)
}

// compactEvidence drops repetitions, for a statement of the spec counts for
// every input but stands once, and says how much is left out beyond the bound.
func compactEvidence(all []Evidence) []Evidence {
	type key struct {
		name, value, pointer string
		span                 Span
	}
	if len(all) < 2 {
		return all
	}
	seen := make(map[key]bool, len(all))
	out := all[:0]
	for _, ev := range all {
		k := key{name: ev.Name, value: ev.Value, pointer: ev.Pointer}
		if ev.Span != nil {
			k.span = *ev.Span
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, ev)
		}
	}
	if more := len(out) - maxEvidence; more > 0 {
		out = append(out[:maxEvidence:maxEvidence], Evidence{Name: "more", Value: "there is more of this kind"})
	}
	return out
}
