package screening

import "fmt"

// evaluation is one run over one spec. Its room is used again for the next.
type evaluation struct {
	*facts
	failure string   // first failure of the term being evaluated, "" = none
	answers []answer // of all terms, in the order of the vocabulary
	details []detail // of answers that have more to say
	effects []effect // room for a fold
}

func (e *evaluation) fail(format string, args ...any) {
	if e.failure == "" {
		e.failure = fmt.Sprintf(format, args...)
	}
}

// answer is what one term comes to on one spec. Deciding needs no more; a
// finding says it in words, with evidence.
type answer struct {
	result result
	value  value // of the clause; of one over inputs, the largest
	detail int32 // in evaluation.details, from 1
}

// detail is what an answer that comes from no clause has to say.
type detail struct {
	failure   string   // why the predicate failed
	given     *Finding // what a registered predicate gave
	noDataset bool     // the spec has no data set to look at
}

// result is a finding's state and cause in one.
type result uint8

const (
	resultUpheld result = iota
	resultViolated
	resultOpen // and above: not checkable, by cause in the order of causes
)

func (r result) state() (State, Cause) {
	switch r {
	case resultUpheld:
		return Upheld, ""
	case resultViolated:
		return Violated, ""
	}
	return NotCheckable, causes[r-resultOpen]
}

// openFor is the result of a term that is not checkable.
func openFor(c Cause) result {
	for i := range causes {
		if causes[i] == c {
			return resultOpen + result(i)
		}
	}
	return openFor(CauseError) // a cause that is none is a mistake, and those escalate
}

func (f *Finding) result() result {
	switch f.State {
	case Upheld:
		return resultUpheld
	case Violated:
		return resultViolated
	}
	return openFor(f.Cause)
}

// valueResults says what a clause's value means for its term.
var valueResults = [...]result{no: resultUpheld, yesValue: resultViolated, hinted: openFor(CauseHint), silent: openFor(CauseNoEvidence)}

// tally folds results to an outcome while they come in.
type tally struct {
	worst   Response
	checked bool // an ethics term that decides something was checkable
}

// add counts a result and gives its effect, 0 if it has none.
func (t *tally) add(term *compiledTerm, r result) Response {
	t.checked = t.checked || term.decides && r < resultOpen
	effect := term.effects[r]
	t.worst = max(t.worst, effect)
	return effect
}

// outcome is what the terms come to: any block blocks, any escalation escalates,
// and so does a spec that no ethics term could say anything about.
func (t *tally) outcome(cfg VocabularyConfig) Outcome {
	switch {
	case t.worst == Block:
		return OutcomeBlock
	case t.worst == Escalate, !t.checked && !cfg.AuditOnly:
		return OutcomeEscalate
	}
	return OutcomeAdmit
}

// begin looks at a spec: its facts are prepared and every term is answered;
// nothing short-circuits. end gives the room back.
func (v *Vocabulary) begin(p *ParsedSpec) *evaluation {
	e, _ := v.scratch.Get().(*evaluation)
	if e == nil {
		e = &evaluation{facts: new(facts)}
	}
	e.reset(p.Spec, &p.coded, v.matcher)
	e.answers, e.details = e.answers[:0], e.details[:0]
	for i := range v.packs {
		terms := v.packs[i].terms
		for len(terms) > 0 {
			terms = e.answer(terms)
		}
	}
	return e
}

func (v *Vocabulary) end(e *evaluation) { v.scratch.Put(e) }

// answer answers terms up to the first that panics, and gives those that are
// left. A panic is a failure of that term alone, and a failure escalates.
func (e *evaluation) answer(terms []compiledTerm) (left []compiledTerm) {
	n := 0
	defer func() {
		if recover() != nil { // what it panicked with may quote the spec
			e.answers = append(e.answers, e.failed("the predicate failed and decided nothing"))
			left = terms[n+1:]
		}
	}()
	for ; n < len(terms); n++ {
		e.answers = append(e.answers, terms[n].answer(e))
	}
	return nil
}

func (t *compiledTerm) answer(e *evaluation) answer {
	switch {
	case t.clause != nil:
	case t.Structural != "":
		return answer{result: openFor(CauseStructural)}
	case t.predicate != nil:
		f := t.predicate(e.spec)
		f.Term = t.ID // a predicate that answers under another id is rebound
		f = f.honest()
		return e.detailed(f.result(), detail{given: &f})
	default:
		return answer{result: openFor(CauseNoPredicate)}
	}
	e.failure = ""
	var a answer
	if t.over == 0 {
		a.value = t.clause.value(e, wholeSpec)
		a.result = valueResults[a.value]
	} else {
		a = t.overInputs(e)
	}
	if e.failure != "" && (a.result != resultViolated || t.Response < Escalate) {
		return e.failed(e.failure)
	}
	return a
}

// overInputs: any violated → violated; else any unknown → not checkable; else
// upheld. A spec without a data set cannot uphold anything about its data.
func (t *compiledTerm) overInputs(e *evaluation) answer {
	worst := no
	for i := range e.inputs {
		worst = max(worst, t.at(e, i))
	}
	if worst == no && !e.hasDataset {
		return e.detailed(openFor(CauseNoEvidence), detail{noDataset: true})
	}
	return answer{result: valueResults[worst], value: worst}
}

// at is what the term finds at one input; no where it does not look. A kind that
// it does not ask about is not excused either: there it looks as soon as one of
// its tags is stated for the worse, or as not known.
func (t *compiledTerm) at(e *evaluation, i int) value {
	kind := e.inputs[i].kind
	if (t.over|t.ifStated)&kind == 0 {
		return no
	}
	v := t.clause.value(e, i)
	if row := &e.tags[i+1]; v == silent && t.over&kind == 0 && (row.worse|row.unknown)&t.tags == 0 {
		return no
	}
	return v
}

func (e *evaluation) detailed(r result, d detail) answer {
	e.details = append(e.details, d)
	return answer{result: r, detail: int32(len(e.details))}
}

func (e *evaluation) failed(why string) answer {
	return e.detailed(openFor(CauseError), detail{failure: why})
}

// Decide gives the outcome that [Classify] gives, without saying why: a replay
// over many specs asks for the decision of those that come out otherwise. For a
// spec of which every term is upheld it allocates nothing.
func Decide(spec *ParsedSpec, v *Vocabulary, asOf Day) (Outcome, error) {
	if err := v.accepts(spec, asOf); err != nil {
		return 0, err
	}
	e := v.begin(spec)
	var t tally
	answers := e.answers
	for i := range v.packs {
		terms := v.packs[i].terms
		for j := range terms {
			if v.dated && terms[j].outOfForce(asOf) != "" {
				continue
			}
			t.add(&terms[j], answers[j].result)
		}
		answers = answers[len(terms):]
	}
	v.end(e)
	return t.outcome(v.cfg), nil
}
