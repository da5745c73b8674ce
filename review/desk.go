package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// Store keeps what a Desk decides. Every method is all or nothing, scoped to
// one project, and gives this package's errors; ErrUnavailable when it cannot
// tell.
type Store interface {
	// Today is the database's UTC day. It may be a moment old: Submit checks it again.
	Today(ctx context.Context) (screening.Day, error)
	// Submit keeps a submission, or names the screening that answers already.
	// Errors: ErrKeyReused, ErrInFlight, ErrRunRefTaken, ErrReviewExpired, ErrDayChanged.
	Submit(ctx context.Context, s *Submission) (Kept, error)
	// Screening reads one. ErrNotFound.
	Screening(ctx context.Context, project, id string) (*Screening, error)
	// ScreeningOfSpec reads the latest screening of exactly these bytes. ErrNotFound.
	ScreeningOfSpec(ctx context.Context, project string, spec screening.Digest256) (*Screening, error)
	// Screenings lists the newest first.
	Screenings(ctx context.Context, project string, q ListQuery) ([]*Screening, error)
	// SpecBytes gives the bytes as received. ErrNotFound.
	SpecBytes(ctx context.Context, project string, spec screening.Digest256) ([]byte, error)
	// Review reads one with its panels and votes. ErrNotFound.
	Review(ctx context.Context, project, id string) (*Review, error)
	// Reviews lists open ones by due time, or all by age.
	Reviews(ctx context.Context, project string, q ReviewQuery) ([]*Review, error)
	// ChangeReview locks a review, lets decide look at it as it is now, and keeps
	// the change it returns. ErrNotFound, or decide's error.
	ChangeReview(ctx context.Context, project, id string, decide func(*Review, time.Time) (*Change, error)) error
	// Turn is the ordinal of a screening within its run_ref, from 0. ErrNotFound.
	Turn(ctx context.Context, project, screeningID string) (int, error)
	// KeepCorrection keeps a correction once; existing tells that it was there before.
	KeepCorrection(ctx context.Context, c *Correction) (existing bool, err error)
	// Correction reads one with its history. ErrNotFound.
	Correction(ctx context.Context, project string, id CorrectionID) (*Correction, error)
	// Corrections lists the newest first.
	Corrections(ctx context.Context, project string, q CorrectionQuery) ([]*Correction, error)
	// ChangeCorrection locks a correction, lets decide look at it, and keeps the
	// judgement it returns. ErrNotFound, or decide's error.
	ChangeCorrection(ctx context.Context, project string, id CorrectionID, decide func(*Correction) (StatusChange, error)) error
	// ExpireReviews closes every open review whose due time has passed and returns their screenings' ids.
	ExpireReviews(ctx context.Context) ([]string, error)
}

// ListQuery selects screenings. Zero fields do not restrict.
type ListQuery struct {
	Party  string // has a part in it: submitted, was submitted for, or owns it
	Status Status
	RunRef string
	After  *Cursor
	Limit  int
}

// ReviewQuery selects reviews.
type ReviewQuery struct {
	OpenOnly bool
	After    *Cursor
	Limit    int
}

// Cursor is the place after which a page goes on: the last row's time and id.
type Cursor struct {
	At time.Time
	ID string
}

// Change is what a vote does to a review.
type Change struct {
	Actor           string
	Votes           []PanelVote
	Outcome         Choice // "" while the review stays open
	AdmissionPeriod time.Duration
}

// PanelVote is one vote row.
type PanelVote struct {
	Policy string
	Group  string
	Vote
}

// Setup is what a desk decides by. It is replaced as a whole, never changed.
type Setup struct {
	Vocabulary *screening.Vocabulary
	People     *People
	Policies   *Policies
}

// Config tunes a Desk.
type Config struct {
	// AdmissionPeriod is how long an admit holds. Default 7 days.
	AdmissionPeriod time.Duration
}

// Desk is the one entrance to the gate. Safe for concurrent use.
type Desk struct {
	store   Store
	setup   atomic.Pointer[Setup]
	cfg     Config
	waiters waiters
}

// NewDesk opens a desk on a store.
func NewDesk(store Store, setup Setup, cfg Config) (*Desk, error) {
	if store == nil || setup.Vocabulary == nil || setup.People == nil || setup.Policies == nil {
		return nil, errors.New("a desk needs a store, a vocabulary, people and policies")
	}
	if cfg.AdmissionPeriod == 0 {
		cfg.AdmissionPeriod = 7 * 24 * time.Hour
	}
	d := &Desk{store: store, cfg: cfg}
	d.setup.Store(&setup)
	return d, nil
}

// Setup is what the desk decides by now.
func (d *Desk) Setup() Setup { return *d.setup.Load() }

// declared gives a principal that has the scope under the id that people.yaml
// has for it, so that a person is the same one under every alias. A key whose
// subject is declared nowhere may do nothing that counts, whatever its scopes.
func (s Setup) declared(p Principal, scope Scope) (Principal, error) {
	if !p.May(scope) {
		return p, ErrNotAllowed
	}
	id, ok := s.People.Subject(p.Subject)
	if !ok {
		return p, fmt.Errorf("%w: this key speaks for nobody whom people.yaml declares", ErrNotAllowed)
	}
	p.Subject = id
	return p, nil
}

// Submit screens the bytes of a spec and keeps the decision. existing tells that
// an earlier screening answers. Errors: *screening.InvalidError and the Store's.
func (d *Desk) Submit(ctx context.Context, p Principal, raw []byte, key *screening.Digest256) (s *Screening, existing bool, err error) {
	setup := d.Setup()
	if p, err = setup.declared(p, ScopeSubmit); err != nil {
		return nil, false, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, false, err
	}
	const tries = 3 // midnight can pass once between deciding and keeping, not thrice
	for range tries {
		var kept Kept
		var sub *Submission
		if sub, err = d.decide(ctx, p, spec, setup); err != nil {
			return nil, false, err
		}
		sub.IdempotencyKey = key
		kept, err = d.store.Submit(ctx, sub)
		if errors.Is(err, ErrDayChanged) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		s, err = d.store.Screening(ctx, p.Project, kept.ID)
		return s, kept.Existing, err
	}
	return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Preview decides without keeping anything.
func (d *Desk) Preview(ctx context.Context, p Principal, raw []byte) (*screening.Decision, error) {
	setup := d.Setup()
	p, err := setup.declared(p, ScopeSubmit)
	if err != nil {
		return nil, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, err
	}
	sub, err := d.decide(ctx, p, spec, setup)
	if err != nil {
		return nil, err
	}
	return sub.Decision, nil
}

// decide resolves the people of a spec, classifies it and lays out what is to be kept.
func (d *Desk) decide(ctx context.Context, p Principal, spec *screening.ParsedSpec, setup Setup) (*Submission, error) {
	sub := &Submission{Principal: p, Spec: spec, AdmissionPeriod: d.cfg.AdmissionPeriod}
	var problems []screening.Problem
	resolve := func(pointer, name string) string {
		id, ok := setup.People.Person(name)
		if !ok {
			problems = append(problems, screening.Problem{Pointer: pointer, Detail: "is not a person declared in people.yaml"})
		}
		return id
	}
	sub.Owner = resolve("/owner", spec.Owner)
	if spec.OnBehalfOf != "" {
		sub.OnBehalfOf = resolve("/on_behalf_of", spec.OnBehalfOf)
	} else if setup.People.IsService(p.Subject) {
		problems = append(problems, screening.Problem{Pointer: "/on_behalf_of",
			Detail: "must name the person for whom the service submits, so that they do not review their own run"})
	}
	if err := spec.Invalid(problems...); err != nil {
		return nil, err
	}
	// A service's run belongs to the person it submits for, who may go on with it
	// by hand. A person's claim to act for another gives no such right.
	sub.AnswersFor = p.Subject
	if setup.People.IsService(p.Subject) {
		sub.AnswersFor = sub.OnBehalfOf
	}
	sub.Parties = []string{p.Subject, sub.Owner}
	if sub.OnBehalfOf != "" {
		sub.Parties = append(sub.Parties, sub.OnBehalfOf)
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return nil, err
	}
	if sub.Decision, err = screening.Classify(spec, setup.Vocabulary, day); err != nil {
		return nil, err
	}
	if sub.DecisionJSON, err = screening.MarshalDecision(sub.Decision); err != nil {
		return nil, err
	}
	sub.Findings = findingRows(sub.Decision)
	if sub.PacksSHA256, err = sumJSON(sub.Decision.Packs); err != nil {
		return nil, err
	}
	if sub.FindingsSHA256, err = findingsDigest(sub.Decision, spec); err != nil {
		return nil, err
	}
	if sub.Decision.Outcome == screening.OutcomeEscalate {
		sub.Panels = setup.Policies.route(sub.Decision, spec.Team)
	}
	return sub, nil
}

func sumJSON(v any) (screening.Digest256, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	return screening.Sum(b), err
}

// findingRows lists the findings that lead to something.
func findingRows(d *screening.Decision) (rows []FindingRow) {
	causes := map[string]screening.EffectiveFinding{}
	for _, c := range d.Causes {
		causes[c.Term] = c
	}
	for _, e := range d.Effects() {
		f, _ := d.Finding(e.Term)
		_, causing := causes[e.Term]
		rows = append(rows, FindingRow{Term: e.Term, Pack: e.Pack, State: f.State, Cause: f.Cause,
			Effect: e.Effect, Severity: e.Severity, Causing: causing})
	}
	return rows
}

// findingsDigest is the identity of what a human answers: the causing terms,
// their evidence pairs, and the digests of the inputs they speak of.
func findingsDigest(d *screening.Decision, spec *screening.ParsedSpec) (screening.Digest256, error) {
	type cause struct {
		Term     string      `json:"term"`
		State    string      `json:"state"`
		Evidence [][2]string `json:"evidence"`
		Inputs   []string    `json:"inputs"`
	}
	causes := []cause{}
	for _, c := range d.Causes {
		f, _ := d.Finding(c.Term)
		out := cause{Term: c.Term, State: string(f.State)}
		for _, ev := range f.Evidence {
			out.Evidence = append(out.Evidence, [2]string{ev.Name, ev.Value})
		}
		for _, in := range f.Inputs {
			i := slices.IndexFunc(spec.Inputs, func(si screening.Input) bool { return si.ID == in.ID })
			digest := "no digest"
			if i >= 0 {
				digest = fmt.Sprint(spec.Inputs[i].Digests)
			}
			out.Inputs = append(out.Inputs, in.ID+" "+digest)
		}
		causes = append(causes, out)
	}
	return sumJSON(causes)
}
