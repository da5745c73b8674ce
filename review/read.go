package review

import (
	"context"
	"slices"

	"weir/screening"
)

// Answer is what the gate says about a spec's bytes right now.
type Answer struct {
	Status    Status
	Screening *Screening
	// Would and Until are set in report mode, where the gate lets pass what it
	// would stop: the outcome it stands for, and the day on which it enforces.
	Would screening.Outcome
	Until screening.Day
}

// Open reports whether training may start. Nothing but a live admission opens the
// gate, and none does whose bytes were erased (which a waiver of later could admit):
// what has to go with the run is not known any more.
func (a Answer) Open() bool {
	return a.Status == StatusAdmitted && (a.Screening == nil || a.Screening.Erased == nil)
}

// AnswerTo is the gate's answer to a submission of bytes with this digest that s
// answered. It is asked for anew: a replayed key names its first screening, which
// need not be the latest of these bytes.
func (d *Desk) AnswerTo(ctx context.Context, p Principal, s *Screening, spec screening.Digest256) (Answer, error) {
	if s.SpecSHA256 != spec { // a block of the same content in other bytes
		return d.Standing(s), nil
	}
	return d.Check(ctx, p, spec)
}

// Check answers for exactly these bytes. ErrNotFound when they were never screened here.
func (d *Desk) Check(ctx context.Context, p Principal, spec screening.Digest256) (Answer, error) {
	if !p.May(ScopeSubmit) {
		return Answer{}, ErrNotAllowed
	}
	s, err := d.latest(ctx, p.Project, spec)
	if err != nil {
		return Answer{}, err
	}
	return d.Standing(s), nil
}

// Standing is the gate's answer by a screening that the desk just gave. In report mode it tells what would
// stop the run; a violated safety term and a recall stop it all the same. What ended for
// another reason than a decision (superseded, withdrawn, an admission that ran
// out) is no outcome to report.
func (d *Desk) Standing(s *Screening) Answer {
	a := Answer{Status: s.Status, Screening: s}
	until := d.Setup().Policies.ReportUntil(s.Project, s.ReadOn)
	switch {
	case until == "" || s.FloorViolated || s.recalled() != nil:
	case s.Status == StatusBlocked:
		a.Would, a.Until = screening.OutcomeBlock, until
	case s.Status == StatusPending, s.Status == StatusExpired && s.Review != nil && s.Review.State == Expired:
		a.Would, a.Until = screening.OutcomeEscalate, until
	}
	return a
}

// Screening reads one; submitters see those they have a part in.
func (d *Desk) Screening(ctx context.Context, p Principal, id string) (*Screening, error) {
	if !p.May(ScopeSubmit) && !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	s, err := d.screening(ctx, p.Project, id)
	if err == nil && !p.mayReadAll() && !s.hasPart(d.subject(p), d.Setup().People) {
		return nil, ErrNotFound // whether it exists is not theirs to know
	}
	return s, err
}

// hasPart reports whether somebody submitted a screening's bytes, was submitted for, or
// owns it, whatever they were called then.
func (s *Screening) hasPart(subject string, people *People) bool {
	return slices.ContainsFunc(s.Parties, func(name string) bool { return people.now(name) == subject })
}

// subject is the name under which a principal's submissions are kept.
func (d *Desk) subject(p Principal) string {
	id, _ := d.Setup().People.Subject(p.Subject)
	return id
}

// Screenings lists; submitters see their own.
func (d *Desk) Screenings(ctx context.Context, p Principal, q ListQuery) ([]*Screening, error) {
	if !p.mayReadAll() {
		if !p.May(ScopeSubmit) {
			return nil, ErrNotAllowed
		}
		q.Party = d.Setup().People.names(p.Subject)
	}
	return d.store.Screenings(ctx, p.Project, q)
}

// SpecBytes gives the bytes of a screening's spec as they were received.
func (d *Desk) SpecBytes(ctx context.Context, p Principal, id string) ([]byte, error) {
	s, err := d.Screening(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if s.Erased != nil { // also when the same bytes were submitted again since
		return nil, &ErasedError{*s.Erased}
	}
	return d.store.SpecBytes(ctx, p.Project, s.SpecSHA256)
}

// Review reads one with its panels and votes.
func (d *Desk) Review(ctx context.Context, p Principal, id string) (*Review, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Review(ctx, p.Project, id)
}

// Reviews lists the queue.
func (d *Desk) Reviews(ctx context.Context, p Principal, q ReviewQuery) ([]*Review, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Reviews(ctx, p.Project, q)
}
