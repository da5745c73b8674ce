package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// SpecBytes gives the bytes as received. ErrNotFound, ErrErased.
	SpecBytes(ctx context.Context, project string, spec screening.Digest256) ([]byte, error)
	// Review reads one with its panels and votes. ErrNotFound.
	Review(ctx context.Context, project, id string) (*Review, error)
	// Reviews lists open ones by due time, or all by age.
	Reviews(ctx context.Context, project string, q ReviewQuery) ([]*Review, error)
	// ChangeReview locks a review, lets decide look at it as it is now, and keeps
	// the change it returns; nil changes nothing. ErrNotFound, ErrConflict, or decide's error.
	ChangeReview(ctx context.Context, project, id string, decide func(*Review, time.Time) (*Change, error)) error
	// OpenReview locks a screening, lets decide look at it and at what it was, and
	// opens the linked review that decide returns. ErrNotFound, ErrRunRefTaken,
	// ErrConflict, or decide's error.
	OpenReview(ctx context.Context, project, screeningID string, decide func(*Closed) (*Opening, error)) (reviewID string, err error)
	// KeepWaiver keeps a waiver that nobody has confirmed yet.
	KeepWaiver(ctx context.Context, w *Waiver) error
	// Findings gives the findings of a screening that lead to something. ErrNotFound.
	Findings(ctx context.Context, project, screeningID string) ([]FindingRow, error)
	// Waiver reads one. ErrNotFound.
	Waiver(ctx context.Context, project, id string) (*Waiver, error)
	// Waivers lists the newest first.
	Waivers(ctx context.Context, project string, q WaiverQuery) ([]*Waiver, error)
	// ConfirmWaiver locks a waiver, lets decide look at it and at its screening, and
	// puts it in force by the person it returns. affected are screenings whose status that may change.
	ConfirmWaiver(ctx context.Context, project, id string, decide func(*Waiver, *Screening, time.Time) (person string, err error)) (affected []Affected, err error)
	// KeepBypass keeps a report once; existing tells that its id was reported before.
	KeepBypass(ctx context.Context, b *Bypass) (existing bool, err error)
	// Bypass reads a report without its spec. ErrNotFound.
	Bypass(ctx context.Context, project, id string) (*Bypass, error)
	// Bypasses lists the latest reports first, without their specs.
	Bypasses(ctx context.Context, project string, limit int, after *Cursor) ([]*Bypass, error)
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
	// Erase erases the bytes of a spec and of every decision of it. ErrNotFound, or a *VoteError.
	Erase(ctx context.Context, r ErasureRequest) (*Erasure, error)
	SpecReader
	// SweepReviews does what time does to reviews: expires them, hands overdue
	// panels over, reminds. It returns the screenings of those that expired.
	SweepReviews(ctx context.Context) ([]string, error)
	Overviews
	Recalls
	Admissions
}

// ListQuery selects screenings. Zero fields do not restrict.
type ListQuery struct {
	Party  []string // every name of somebody who has a part in it: submitted, was submitted for, or owns it
	Status Status
	RunRef string
	After  *Cursor
	Limit  int
}

// WaiverQuery selects waivers. Zero fields do not restrict.
type WaiverQuery struct {
	ScreeningID string // granted on it
	After       *Cursor
	Limit       int
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

// Change is what an event does to a review.
type Change struct {
	Event Event
	Actor string
	Note  *Note // what was said with it; its time is the store's

	Votes           []PanelVote // with vote and decide
	Answered        []int       // numbers of panels that have their quorum now
	Outcome         Choice      // with decide
	AdmissionPeriod time.Duration
	AdmittedUntil   *time.Time // an admission ends no later; nil = no limit but its period

	Claims []int         // numbers of panels, with claim and release
	Lease  time.Duration // of a claim
	Due    time.Duration // for the evidence, with ask
}

// Closed is a screening that has no open review, and what there was.
type Closed struct {
	Screening *Screening
	Latest    bool // no newer screening of the same bytes is there
	Last      *Review
	Findings  []FindingRow
	Blockers  []string // who voted block in any review of it
}

// Affected is a screening whose status a waiver may change.
type Affected struct {
	ScreeningID string
	ReviewID    string // open, and some panel of it has its quorum; "" = none
}

// Opening is a linked review to be opened.
type Opening struct {
	Kind   Kind
	Origin string
	Actor  string
	Note   *Note
	Panels []Panel
}

// PanelVote is one vote row.
type PanelVote struct {
	Panel  int
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
	if _, err := d.Setup().declared(p, ScopeSubmit); err != nil { // who may not submit gets no spec read
		return nil, false, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, false, err
	}
	return d.submit(ctx, p, spec, key)
}

func (d *Desk) submit(ctx context.Context, p Principal, spec *screening.ParsedSpec, key *screening.Digest256) (s *Screening, existing bool, err error) {
	setup := d.Setup()
	if p, err = setup.declared(p, ScopeSubmit); err != nil {
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
		if errors.Is(err, ErrReviewExpired) && sub.ReportUntil != "" {
			// Nobody may be there to review while a project only reports, and that
			// must stop no run: what expired is told, to those whose run it is.
			if s, serr := d.latest(ctx, p.Project, spec.SHA256); serr == nil && s.hasPart(p.Subject, setup.People) {
				return s, true, nil
			}
		}
		if err != nil {
			return nil, false, err
		}
		if kept.ReviewID != "" {
			if err := d.settle(ctx, p.Project, kept.ReviewID); err != nil {
				return nil, false, err
			}
		}
		if s, err = d.screening(ctx, p.Project, kept.ID); err != nil || kept.Existing || s.Status != StatusSuperseded {
			return s, kept.Existing, err
		}
		// Somebody submitted the same bytes at the same moment, and theirs is the
		// latest of them: that one answers, to both.
		if latest, lerr := d.latest(ctx, p.Project, spec.SHA256); lerr == nil && latest.ID != s.ID {
			return latest, true, nil
		}
		return s, false, nil
	}
	return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Preview decides without keeping anything. recall is the one in force that a
// submission would be blocked by; nil without one.
func (d *Desk) Preview(ctx context.Context, p Principal, raw []byte) (decision *screening.Decision, recall *RecallRef, err error) {
	setup := d.Setup()
	if p, err = setup.declared(p, ScopeSubmit); err != nil {
		return nil, nil, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, nil, err
	}
	sub, err := d.decide(ctx, p, spec, setup)
	if err != nil {
		return nil, nil, err
	}
	recall, err = d.store.LiveRecall(ctx, p.Project, sub.Lineage.Points())
	return sub.Decision, recall, err
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
	sub.SubmitterNames = setup.People.names(p.Subject)
	sub.AnswersFor = sub.SubmitterNames
	if setup.People.IsService(p.Subject) {
		sub.AnswersFor = setup.People.names(sub.OnBehalfOf)
	}
	sub.Parties = []string{p.Subject, sub.Owner}
	if sub.OnBehalfOf != "" {
		sub.Parties = append(sub.Parties, sub.OnBehalfOf)
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return nil, err
	}
	decision, err := screening.Classify(spec, setup.Vocabulary, day)
	if err != nil {
		return nil, err
	}
	if err := sub.decided(decision); err != nil {
		return nil, err
	}
	sub.ReportUntil = setup.Policies.ReportUntil(p.Project, day)
	sub.PartyNames = setup.People.names(sub.Parties...)
	// A block has panels too: a waiver may leave something that people have to decide.
	if sub.Decision.Outcome != screening.OutcomeAdmit && !sub.FloorViolated {
		sub.Panels = setup.route(sub.Findings, spec.Team)
	}
	return sub, nil
}

// decided sets what a decision says, and what its spec says of lineage: none that is
// kept is without.
func (sub *Submission) decided(d *screening.Decision) (err error) {
	sub.Decision, sub.Lineage = d, LineageOf(sub.Spec)
	if sub.DecisionJSON, err = screening.MarshalDecision(d); err != nil {
		return err
	}
	if sub.Findings, err = findingRows(d, sub.Spec); err != nil {
		return err
	}
	if sub.PacksSHA256, err = packsDigest(d.Packs); err != nil {
		return err
	}
	sub.FloorViolated, sub.Unmatched = floorViolated(d), d.NoPolicyMatched && !d.AuditOnly
	sub.FindingsSHA256, err = findingsDigest(d, sub.Spec)
	return err
}

// packsDigest is the identity of the packs that decide.
func packsDigest(packs []screening.PackRef) (screening.Digest256, error) { return sumJSON(packs) }

func sumJSON(v any) (screening.Digest256, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	return screening.Sum(b), err
}

// floorViolated reports whether a safety term is violated: final for these bytes.
func floorViolated(d *screening.Decision) bool {
	return slices.ContainsFunc(d.Safety, func(v screening.SafetyVerdict) bool { return len(v.Violated) > 0 })
}

// findingRows lists the findings that lead to something.
func findingRows(d *screening.Decision, spec *screening.ParsedSpec) (rows []FindingRow, err error) {
	causes := map[string]bool{}
	for _, c := range d.Causes {
		causes[c.Term] = true
	}
	for _, e := range d.Effects() {
		f, _ := d.Finding(e.Term)
		row := FindingRow{Term: e.Term, Pack: e.Pack, State: f.State, Cause: f.Cause, Effect: e.Effect, Severity: e.Severity, Causing: causes[e.Term]}
		if row.SHA256, row.Pinned, err = findingDigest(e.Term, f, spec); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// findingDigest is the identity of one finding: the term, what was found, the
// evidence pairs, and the digests of the inputs that are violated or unknown in
// it; of all inputs where the finding names none, for then it speaks of the
// whole. pinned tells that each of them has a digest.
func findingDigest(term string, f *screening.Finding, spec *screening.ParsedSpec) (sum screening.Digest256, pinned bool, err error) {
	identity := struct {
		Term     string      `json:"term"`
		State    string      `json:"state"`
		Cause    string      `json:"cause"`
		Evidence [][2]string `json:"evidence"`
		Inputs   []string    `json:"inputs"`
	}{Term: term, State: string(f.State), Cause: string(f.Cause), Evidence: [][2]string{}, Inputs: []string{}}
	for _, ev := range f.Evidence {
		identity.Evidence = append(identity.Evidence, [2]string{ev.Name, ev.Value})
	}
	slices.SortFunc(identity.Evidence, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	pinned = true
	for _, in := range inputsOf(f, spec) {
		digests := pins(in)
		pinned = pinned && len(digests) > 0
		if len(digests) == 0 {
			digests = []string{"no digest of " + in.ID}
		}
		identity.Inputs = append(identity.Inputs, strings.Join(digests, " "))
	}
	slices.Sort(identity.Inputs)
	sum, err = sumJSON(identity)
	return sum, pinned && len(identity.Inputs) > 0, err
}

// inputsOf gives the inputs that a finding is about.
func inputsOf(f *screening.Finding, spec *screening.ParsedSpec) (inputs []*screening.Input) {
	for i := range spec.Inputs {
		in := &spec.Inputs[i]
		if len(f.Inputs) == 0 || slices.ContainsFunc(f.Inputs, func(named screening.InputFinding) bool { return named.ID == in.ID }) {
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// pins gives the digests of an input that say which bytes it has, "alg:hex", sorted.
func pins(in *screening.Input) (digests []string) {
	for _, d := range in.Digests {
		if d.Pins() {
			digests = append(digests, d.Alg+":"+strings.ToLower(d.Value))
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests)
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
