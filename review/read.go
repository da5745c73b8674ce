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
}

// Open reports whether training may start. Nothing but a live admission opens the gate.
func (a Answer) Open() bool { return a.Status == StatusAdmitted }

// AnswerTo is the gate's answer to a submission of bytes with this digest that s
// answered. It is asked for anew: a replayed key names its first screening, which
// need not be the latest of these bytes.
func (d *Desk) AnswerTo(ctx context.Context, p Principal, s *Screening, spec screening.Digest256) (Answer, error) {
	if s.SpecSHA256 != spec { // a block of the same content in other bytes
		return Answer{Status: s.Status, Screening: s}, nil
	}
	return d.Check(ctx, p, spec)
}

// Check answers for exactly these bytes. ErrNotFound when they were never screened here.
func (d *Desk) Check(ctx context.Context, p Principal, spec screening.Digest256) (Answer, error) {
	if !p.May(ScopeSubmit) {
		return Answer{}, ErrNotAllowed
	}
	s, err := d.store.ScreeningOfSpec(ctx, p.Project, spec)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: s.Status, Screening: s}, nil
}

// Screening reads one; submitters see those they have a part in.
func (d *Desk) Screening(ctx context.Context, p Principal, id string) (*Screening, error) {
	if !p.May(ScopeSubmit) && !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	s, err := d.store.Screening(ctx, p.Project, id)
	if err == nil && !p.mayReadAll() && !slices.Contains(s.Parties, d.subject(p)) {
		return nil, ErrNotFound // whether it exists is not theirs to know
	}
	return s, err
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
		q.Party = d.subject(p)
	}
	return d.store.Screenings(ctx, p.Project, q)
}

// SpecBytes gives the bytes of a screening's spec as they were received.
func (d *Desk) SpecBytes(ctx context.Context, p Principal, id string) ([]byte, error) {
	s, err := d.Screening(ctx, p, id)
	if err != nil {
		return nil, err
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
