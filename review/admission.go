package review

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// Admission is what can be said about a screening that is admitted now.
type Admission struct {
	Screening *Screening
	Decision  *screening.Decision
	Spec      *screening.ParsedSpec
	Votes     []PanelVote // of the people who admitted it, none when the packs did
	Statement string      // the disclosure statement that goes with the run
	At        time.Time   // the database's time
}

// ClosedError: nothing is admitted, so there is no admission.
type ClosedError struct{ Answer Answer }

func (e *ClosedError) Error() string { return "the gate is closed: " + string(e.Answer.Status) }

// Admission gives what an admission of a screening says. The error is a
// *ClosedError unless exactly this screening admits its bytes now: a report of a
// gate that does not enforce is none.
func (d *Desk) Admission(ctx context.Context, p Principal, id string) (*Admission, error) {
	s, err := d.Screening(ctx, p, id)
	if err != nil {
		return nil, err
	}
	latest, err := d.latest(ctx, p.Project, s.SpecSHA256)
	if err != nil {
		return nil, err
	}
	if latest.ID != s.ID {
		return nil, &ClosedError{Answer{Status: StatusSuperseded, Screening: latest}}
	}
	if latest.Status != StatusAdmitted || latest.AdmittedUntil == nil {
		return nil, &ClosedError{Answer{Status: latest.Status, Screening: latest}}
	}
	if latest.Erased != nil {
		return nil, &ErasedError{*latest.Erased}
	}
	a := &Admission{Screening: latest, Decision: &screening.Decision{}}
	if err := json.Unmarshal(latest.Decision, a.Decision); err != nil {
		return nil, fmt.Errorf("decision of screening %s: %w", id, err)
	}
	raw, err := d.store.SpecBytes(ctx, p.Project, latest.SpecSHA256)
	if err != nil {
		return nil, err
	}
	if a.Spec, err = screening.ParseSpec(raw); err != nil {
		return nil, fmt.Errorf("spec of screening %s: %w", id, err)
	}
	a.Statement = a.Spec.DisclosureStatement
	if a.Decision.Hedge != nil {
		a.Statement = a.Decision.Hedge.Statement
	}
	if latest.DecidedBy == ByPeople && latest.Review != nil {
		r, err := d.store.Review(ctx, p.Project, latest.Review.ID)
		if err != nil {
			return nil, err
		}
		for _, panel := range r.Panels {
			for _, v := range panel.Votes {
				if v.Choice == VoteAdmit {
					a.Votes = append(a.Votes, PanelVote{Panel: panel.Number, Policy: panel.Policy, Group: panel.Group, Vote: v})
				}
			}
		}
	}
	a.At, err = d.store.Now(ctx)
	return a, err
}

// Upheld lists the terms that were checked and hold, by tagged id.
func (a *Admission) Upheld() (terms []string) {
	terms = []string{}
	add := func(layer screening.Layer, findings []*screening.Finding) {
		for _, f := range findings {
			if f.State == screening.Upheld && f.OutOfForce == "" {
				terms = append(terms, string(layer)+":"+f.Term)
			}
		}
	}
	for _, v := range a.Decision.Safety {
		add(screening.Safety, v.Findings)
	}
	for _, v := range a.Decision.Ethics {
		add(screening.Ethics, v.Findings)
	}
	return terms
}

// Revoked is an admission that ended before its time.
type Revoked struct {
	ScreeningID string
	SpecSHA256  screening.Digest256
	At          time.Time
	Reason      string
}
