package review

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// Overviews are what a Store reads for people who look at many screenings, and
// the count of what they opened. Like all of a Store: one project, this
// package's errors.
type Overviews interface {
	// Queue lists reviews without their decisions.
	Queue(ctx context.Context, project string, q QueueQuery) ([]*QueueItem, error)
	// History gives the events of a screening after seq, in order.
	History(ctx context.Context, project, screeningID string, after, limit int) ([]HistoryEvent, error)
	// SupersededBy reads the latest screening that another one of its run took the place of. ErrNotFound.
	SupersededBy(ctx context.Context, project, runRef, by string) (*Screening, error)
	// Dashboard counts over the last days.
	Dashboard(ctx context.Context, project string, days int) (*Dashboard, error)
	// Exposure counts how often a person opened excerpts.
	Exposure(ctx context.Context, project, person string) (Exposure, error)
	// NoteExposure keeps that a person is shown excerpts, and counts it in.
	NoteExposure(ctx context.Context, project, person, screeningID string, excerpts int) (Exposure, error)
}

// Ballot is what a person could do about a review now.
type Ballot struct {
	Block error // why they cannot vote block; nil = they can
	Admit error // why they cannot vote admit
	Floor error // an admit has to state facts for it: why; nil = it has not
	Ask   error // why they cannot ask for evidence, and claim
}

// Ballot asks the rules of voting what a vote of the caller would come to, so
// that nobody learns it only after writing a reason. It promises nothing: Vote
// asks again. Errors: ErrUnavailable.
func (d *Desk) Ballot(ctx context.Context, p Principal, r *Review) (Ballot, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return Ballot{Block: err, Admit: err, Ask: err}, nil
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return Ballot{}, err
	}
	if e := r.Screening.Erased; e != nil {
		err := &ErasedError{*e}
		return Ballot{Block: err, Admit: err, Ask: err}, nil
	}
	var decision screening.Decision
	if err := json.Unmarshal(r.Screening.Decision, &decision); err != nil {
		return Ballot{}, err
	}
	probe := VoteRequest{ExpectedVersion: r.Version, SpecSHA256: r.Screening.SpecSHA256, Reason: "?"}
	for _, c := range decision.Causes {
		probe.Terms = append(probe.Terms, c.Term)
	}
	ask := func(choice Choice) error {
		probe.Choice = choice
		_, err := d.cast(r, now, p.Subject, setup.People, nil, probe)
		return err
	}
	s := Ballot{Block: ask(VoteBlock), Admit: ask(VoteAdmit)}
	_, s.Ask = r.reviewer(EventAsk, p.Subject, 0, now, setup.People)
	if s.Block != nil || s.Admit != nil {
		return s, nil
	}
	switch err := d.checkFloor(ctx, r.Screening, nil); {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrNotFound):
		return Ballot{}, err
	case errors.Is(err, ErrFloor):
		s.Admit = err
	default:
		s.Floor = err
	}
	return s, nil
}
