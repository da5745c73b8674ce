package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// Admissions reads what is admitted now, to look at it again when the packs in
// force are others than those that gave it.
type Admissions interface {
	// Projects lists those in which something was screened.
	Projects(ctx context.Context) ([]string, error)
	// Admitted looks at q.Limit screenings, oldest first, and gives those that are
	// admitted now. next is nil when there are no more.
	Admitted(ctx context.Context, project string, q AdmittedQuery) (list []Admitted, next *Cursor, err error)
}

// AdmittedQuery says what decides now.
type AdmittedQuery struct {
	Packs  screening.Digest256 // as in Submission.PacksSHA256
	Engine string
	After  *Cursor
	Limit  int
}

// Admitted is a screening that is admitted now.
type Admitted struct {
	At    Cursor
	Other bool // other packs or another engine decided it
}

// Drift is an admission that lives and would not be given now. Then is what the
// packs said; where people or a waiver admitted it, only what they did not answer
// counts.
type Drift struct {
	Replayed
	AdmittedUntil time.Time    `json:"admitted_until"`
	DecidedBy     Decider      `json:"decided_by"`
	Packs         []PackChange `json:"packs"`
}

// PackChange is a pack that is another one than when an admission was given.
type PackChange struct {
	ID   string               `json:"id"`
	Then *screening.Digest256 `json:"then,omitzero"` // nil: there was none
	Now  *screening.Digest256 `json:"now,omitzero"`
}

// DriftPage is the answer for a number of admissions. Pages add up.
type DriftPage struct {
	AsOf   screening.Day `json:"as_of"`
	Live   int           `json:"live"`            // admissions that hold now
	Other  int           `json:"other"`           // of them, those that other packs or another engine decided
	Erased int           `json:"erased,omitzero"` // of those, specs whose bytes are gone
	Drift  []Drift       `json:"drift"`
	Next   *Cursor       `json:"-"` // nil at the end
}

// lookedAtOnce is how many rows one statement looks at for admissions: few of a
// long history are alive.
const lookedAtOnce = 1000

// Drift decides the live admissions of the caller's project again, where other
// packs gave them, and keeps nothing. enough is asked after each, and now and then
// where none lives.
func (d *Desk) Drift(ctx context.Context, p Principal, after *Cursor, enough func(page *DriftPage) bool) (*DriftPage, error) {
	if !p.May(ScopeAudit) && !p.May(ScopePolicy) {
		return nil, ErrNotAllowed
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return nil, err
	}
	page := &DriftPage{AsOf: day, Drift: []Drift{}}
	v := d.Setup().Vocabulary
	page.Next, err = d.admitted(ctx, p.Project, v, after, func(a Admitted) error {
		if a.Other {
			err := page.look(ctx, d.store, p.Project, a.At.ID, v)
			if errors.Is(err, errEnded) {
				return nil
			}
			if err != nil {
				return err
			}
			page.Other++
		}
		page.Live++
		return nil
	}, func() bool { return enough(page) })
	return page, err
}

// admitted gives each of the live admissions of a project until it is enough; next is
// where it goes on then.
func (d *Desk) admitted(ctx context.Context, project string, v *screening.Vocabulary, after *Cursor, each func(Admitted) error, enough func() bool) (next *Cursor, err error) {
	packs, err := packsDigest(v.Packs())
	if err != nil {
		return nil, err
	}
	for {
		list, more, err := d.store.Admitted(ctx, project, AdmittedQuery{Packs: packs, Engine: screening.EngineVersion, After: after, Limit: lookedAtOnce})
		if err != nil {
			return nil, err
		}
		for i := range list {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if err := each(list[i]); err != nil {
				return nil, err
			}
			if enough() {
				return &list[i].At, nil
			}
		}
		if more == nil || enough() {
			return more, nil
		}
		after = more
	}
}

// errEnded: the admission is over, since it was listed.
var errEnded = errors.New("the admission ended")

// bytesOf reads what a screening screened. ErrErased, also where the same bytes were
// submitted again since.
func bytesOf(ctx context.Context, store Store, s *Screening) ([]byte, error) {
	if s.Erased != nil {
		return nil, ErrErased
	}
	return store.SpecBytes(ctx, s.Project, s.SpecSHA256)
}

// look decides an admission again and notes what would be different.
func (page *DriftPage) look(ctx context.Context, store Store, project, id string, v *screening.Vocabulary) error {
	s, err := store.Screening(ctx, project, id)
	if err != nil {
		return err
	}
	if s.Status != StatusAdmitted || s.AdmittedUntil == nil {
		return errEnded
	}
	raw, err := bytesOf(ctx, store, s)
	if errors.Is(err, ErrErased) {
		page.Erased++
		return nil
	}
	if err != nil {
		return err
	}
	var then struct {
		Packs []screening.PackRef `json:"packs"`
	}
	if err := json.Unmarshal(s.Decision, &then); err != nil {
		return fmt.Errorf("decision of screening %s: %w", s.ID, err)
	}
	stored := &StoredSpec{At: Cursor{ID: s.ID}, RunRef: s.RunRef, SpecSHA256: s.SpecSHA256, AsOf: s.AsOf, Engine: s.Engine, Outcome: s.Outcome,
		Raw: raw, Effects: map[string]Effect{}}
	rows, err := store.Findings(ctx, project, s.ID) // a decision that was read back does not know every effect
	if err != nil {
		return err
	}
	for _, f := range rows {
		stored.Effects[f.Term] = Effect{f.Effect, f.State}
	}
	r, err := replayOne(stored, v, page.AsOf)
	if err != nil {
		return err
	}
	if r.closes() {
		page.Drift = append(page.Drift, Drift{Replayed: r, AdmittedUntil: s.AdmittedUntil.UTC(), DecidedBy: s.DecidedBy,
			Packs: changedPacks(then.Packs, v.Packs())})
	}
	return nil
}

// closes reports whether something stands against a run now that did not when it
// was admitted, by whomever.
func (r *Replayed) closes() bool {
	return r.Now == ReplayRefused || slices.ContainsFunc(r.Changes, func(c EffectChange) bool {
		return c.Now != nil && c.Now.Effect >= screening.Escalate && (c.Then == nil || c.Then.Effect < c.Now.Effect)
	})
}

func changedPacks(then, now []screening.PackRef) []PackChange {
	changes := []PackChange{}
	find := func(list []screening.PackRef, id string) *screening.Digest256 {
		if i := slices.IndexFunc(list, func(p screening.PackRef) bool { return p.ID == id }); i >= 0 {
			return &list[i].SHA256
		}
		return nil
	}
	for _, p := range then {
		if is := find(now, p.ID); is == nil || *is != p.SHA256 {
			changes = append(changes, PackChange{ID: p.ID, Then: &p.SHA256, Now: is})
		}
	}
	for _, p := range now {
		if find(then, p.ID) == nil {
			changes = append(changes, PackChange{ID: p.ID, Now: &p.SHA256})
		}
	}
	slices.SortFunc(changes, func(a, b PackChange) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

// FloorEnforced says what a look at the floor came to.
type FloorEnforced struct {
	Looked int      // live admissions that other packs gave
	Ended  []string // screenings whose admission the floor ended
	// Undecided are screenings that could not be decided again: their bytes are gone,
	// or the rules of now refuse them. Nothing shows that the floor blocks them; they
	// end by themselves.
	Undecided []string
}

// EnforceFloor decides the live admissions of all projects again, where other packs
// or another engine gave them, and ends those that the safety floor in force blocks,
// before anybody asks for them. Other changes of packs end nothing; see Drift. Every
// replica may call it at any time.
func (d *Desk) EnforceFloor(ctx context.Context) (*FloorEnforced, error) {
	done := &FloorEnforced{}
	projects, err := d.store.Projects(ctx)
	if err != nil {
		return done, err
	}
	v := d.Setup().Vocabulary
	for _, project := range projects {
		if _, err := d.admitted(ctx, project, v, nil, func(a Admitted) error {
			if !a.Other {
				return nil
			}
			done.Looked++
			_, says, err := d.underFloor(ctx, func() (*Screening, error) { return d.store.Screening(ctx, project, a.At.ID) })
			switch says {
			case floorEnds:
				done.Ended = append(done.Ended, a.At.ID)
			case floorCannotTell:
				done.Undecided = append(done.Undecided, a.At.ID)
			}
			return err
		}, func() bool { return false }); err != nil {
			return done, err
		}
	}
	return done, nil
}

// floorSays is what a look at one screening came to.
type floorSays int

const (
	floorLeaves     floorSays = iota // nothing passes by it, or the packs in force decided it, or their floor does not block it
	floorEnds                        // the floor ended its admission
	floorCannotTell                  // it could not be decided again; see FloorEnforced.Undecided
)

// screening reads one, as the floor in force leaves it.
func (d *Desk) screening(ctx context.Context, project, id string) (*Screening, error) {
	s, _, err := d.underFloor(ctx, func() (*Screening, error) { return d.store.Screening(ctx, project, id) })
	return s, err
}

// latest reads the one that answers for these bytes, as the floor in force leaves it.
func (d *Desk) latest(ctx context.Context, project string, spec screening.Digest256) (*Screening, error) {
	s, _, err := d.underFloor(ctx, func() (*Screening, error) { return d.store.ScreeningOfSpec(ctx, project, spec) })
	return s, err
}

// underFloor is what every answer that lets a run pass goes through. Where other packs
// or another engine decided what is read, the floor in force is asked first: this gate
// may be newer than what was decided, and than the replica that decided it. An
// admission that the floor blocks is ended, in a transaction of its own, as a new
// screening of the same bytes that takes its place, and what stands then is read. What
// report mode lets pass is only marked: nothing has to be ended.
func (d *Desk) underFloor(ctx context.Context, read func() (*Screening, error)) (s *Screening, says floorSays, err error) {
	const tries = 3 // as in submit
	for range tries {
		if s, err = read(); err != nil {
			return nil, says, err
		}
		admitted := s.Status == StatusAdmitted && s.AdmittedUntil != nil
		if says == floorEnds || !admitted && d.Standing(s).Would == 0 {
			return s, says, nil
		}
		inForce, err := packsDigest(d.Setup().Vocabulary.Packs())
		if err != nil || s.PacksSHA256 == inForce && s.Engine == screening.EngineVersion {
			return s, says, err
		}
		sub, err := d.again(ctx, s)
		if invalid := (*screening.InvalidError)(nil); errors.Is(err, ErrErased) || errors.As(err, &invalid) {
			return s, floorCannotTell, nil
		}
		if err != nil {
			return nil, says, fmt.Errorf("screening %s: %w", s.ID, err)
		}
		if !sub.FloorViolated {
			return s, says, nil
		}
		if !admitted {
			s.FloorViolated = true
			return s, says, nil
		}
		switch _, err := d.store.Submit(ctx, sub); {
		case errors.Is(err, ErrDayChanged), errors.Is(err, ErrInFlight), errors.Is(err, ErrConflict): // it ended otherwise meanwhile
		case err != nil:
			return nil, says, fmt.Errorf("screening %s: %w", s.ID, err)
		default:
			says = floorEnds
			d.waiters.wake(s.ID)
		}
	}
	return nil, says, fmt.Errorf("%w: screening %s is being submitted again and again", ErrUnavailable, s.ID)
}

// again decides the bytes of an admission anew, for those who submitted them. Who
// they are is not asked again: that somebody is not declared any more does not keep
// a run going.
func (d *Desk) again(ctx context.Context, s *Screening) (*Submission, error) {
	raw, err := bytesOf(ctx, d.store, s)
	if err != nil {
		return nil, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, err
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return nil, err
	}
	setup := d.Setup()
	decision, err := screening.Classify(spec, setup.Vocabulary, day)
	if err != nil {
		return nil, err
	}
	sub := &Submission{Principal: Principal{Project: s.Project, Subject: s.Submitter}, Spec: spec, Owner: s.Owner, OnBehalfOf: s.OnBehalfOf,
		Parties: []string{s.Submitter, s.Owner}, PartyNames: s.Parties,
		AdmissionPeriod: d.cfg.AdmissionPeriod, Ends: s.ID, ReportUntil: setup.Policies.ReportUntil(s.Project, day)}
	if s.OnBehalfOf != "" {
		sub.Parties = append(sub.Parties, s.OnBehalfOf)
	}
	return sub, sub.decided(decision)
}
