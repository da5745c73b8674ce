package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// MaxWaiverDays bounds a waiver.
const MaxWaiverDays = 30

// Waiver takes one finding of one ethics term out of the fold for a while. Two
// persons of the term's panel make it. It holds for one spec, or for runs whose
// run_ref has a prefix, with the inputs that it names; in both cases only while
// the finding is the one for which it was granted.
type Waiver struct {
	ID              string
	Project         string
	ScreeningID     string // on which it was granted
	Term            string // "ethics:<id>"
	FindingSHA256   screening.Digest256
	SpecSHA256      screening.Digest256 // zero: it is for runs
	RunPrefix       string              // "": it is for one spec
	Inputs          []string            // digests of the inputs, "alg:hex"
	Policy          string              // whose panel the two are of
	Reason          string
	Ticket          string
	Author          string
	CreatedAt       time.Time
	ExpiresAt       time.Time
	ConfirmedBy     string // "": not in force
	ConfirmedAt     *time.Time
	InForce         bool // as of the moment it was read
	Days            int  // only used when it is made
	AdmissionPeriod time.Duration
}

// WaiverRequest asks for a waiver. Without a run prefix it is for the spec of the
// screening alone, and inputs are not named.
type WaiverRequest struct {
	ScreeningID string
	Term        string
	Reason      string
	Ticket      string
	Days        int
	RunPrefix   string
	Inputs      []string // at least one digest of each input that is violated or unknown in the finding
}

const waiverWhat = "waiver"

// Waive asks for a waiver; a second person has to confirm it. Errors:
// *screening.InvalidError, *VoteError, ErrNotFound.
func (d *Desk) Waive(ctx context.Context, p Principal, req WaiverRequest) (*Waiver, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	s, err := d.store.Screening(ctx, p.Project, req.ScreeningID)
	if err != nil {
		return nil, err
	}
	if s.Erased != nil {
		return nil, &ErasedError{*s.Erased}
	}
	if err := s.recalled(); err != nil {
		return nil, err
	}
	rows, err := d.store.Findings(ctx, p.Project, s.ID)
	if err != nil {
		return nil, err
	}
	row, err := waivable(rows, req.Term, s)
	if err != nil {
		return nil, err
	}
	policy := setup.Policies.of(row, setup.Vocabulary, s.Team)
	if err := mayWaive(setup, policy, s, p.Subject); err != nil {
		return nil, err
	}
	w := &Waiver{Project: p.Project, ScreeningID: s.ID, Term: row.Term, FindingSHA256: row.SHA256, Policy: policy.ID, Reason: req.Reason,
		Ticket: req.Ticket, Author: p.Subject, Days: req.Days, AdmissionPeriod: d.cfg.AdmissionPeriod}
	if req.RunPrefix == "" {
		w.SpecSHA256 = s.SpecSHA256
	} else if w.Inputs, err = d.waivedInputs(ctx, s, row, req); err != nil {
		return nil, err
	} else {
		w.RunPrefix = req.RunPrefix
	}
	if err := d.store.KeepWaiver(ctx, w); err != nil {
		return nil, err
	}
	return d.store.Waiver(ctx, p.Project, w.ID)
}

func (r *WaiverRequest) check() error {
	if err := words(waiverWhat, "/reason", r.Reason); err != nil {
		return err
	}
	switch {
	case screening.IsBlank(r.Ticket) || len(r.Ticket) > 500 || !isText(r.Ticket):
		return invalid(waiverWhat, "/ticket", "must name where this was agreed, in at most 500 bytes")
	case r.Days < 1 || r.Days > MaxWaiverDays:
		return invalid(waiverWhat, "/days", "must be between 1 and %d", MaxWaiverDays)
	case r.RunPrefix == "" && len(r.Inputs) > 0:
		return invalid(waiverWhat, "/run_prefix", "must be given with inputs; without both the waiver is for this spec alone")
	case r.RunPrefix != "" && (screening.IsBlank(r.RunPrefix) || len(r.RunPrefix) > 500 || !isText(r.RunPrefix)):
		return invalid(waiverWhat, "/run_prefix", "must be the beginning of a run_ref")
	}
	return nil
}

// waivable finds the finding that is to be waived.
func waivable(rows []FindingRow, term string, s *Screening) (*FindingRow, error) {
	if strings.HasPrefix(term, string(screening.Safety)+":") {
		return nil, &VoteError{ErrFloor, "a safety term is never waived"}
	}
	i := slices.IndexFunc(rows, func(f FindingRow) bool { return f.Term == term && f.weighs() })
	switch {
	case i < 0:
		return nil, invalid(waiverWhat, "/term", "is not a term that escalates or blocks this screening, written ethics:<id>")
	case s.FloorViolated:
		return nil, &VoteError{ErrFloor, ErrFloor.Error()}
	case rows[i].Cause == screening.CauseError:
		return nil, &VoteError{ErrConflict, "this term failed and decided nothing; that is not waived"}
	case rows[i].SHA256.IsZero():
		return nil, &VoteError{ErrConflict, "this was decided by an older weir; submit it again first"}
	case s.DecidedBy == ByPeople:
		return nil, &VoteError{ErrConflict, "people decided this; a waiver does not change their answer"}
	}
	return &rows[i], nil
}

// mayWaive: of the panel that reviews the term, and without a part in the run.
func mayWaive(setup Setup, policy *Policy, s *Screening, person string) error {
	if policy == nil || !slices.Contains(setup.People.Members(policy.Group), person) {
		return &VoteError{ErrNotAllowed, "only the panel that reviews this term can waive it"}
	}
	if why := (&Review{Screening: s}).excludes(person, setup.People); why != "" {
		return &VoteError{ErrNotAllowed, why}
	}
	return nil
}

// waivedInputs checks that a waiver for runs names every input that is violated
// or unknown in the finding, and nothing else.
func (d *Desk) waivedInputs(ctx context.Context, s *Screening, row *FindingRow, req WaiverRequest) ([]string, error) {
	if !strings.HasPrefix(s.RunRef, req.RunPrefix) {
		return nil, invalid(waiverWhat, "/run_prefix", "must be the beginning of this screening's run_ref, %s", s.RunRef)
	}
	raw, err := d.store.SpecBytes(ctx, s.Project, s.SpecSHA256)
	if err != nil {
		return nil, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: stored spec of screening %s: %w", ErrUnavailable, s.ID, err)
	}
	var decision screening.Decision
	if err := json.Unmarshal(s.Decision, &decision); err != nil {
		return nil, fmt.Errorf("decision of screening %s: %w", s.ID, err)
	}
	f, ok := decision.Finding(row.Term)
	if !ok || !row.Pinned {
		return nil, &VoteError{ErrConflict, "an input of this finding has no digest (sha256 or stronger), so that it could be another next time; " +
			"waive it for this spec alone, or add digests and submit it again"}
	}
	named := map[string]bool{}
	for _, digest := range req.Inputs {
		named[strings.ToLower(digest)] = true
	}
	var all []string
	for _, in := range inputsOf(f, spec) {
		digests := pins(in)
		if !slices.ContainsFunc(digests, func(digest string) bool { return named[digest] }) {
			return nil, invalid(waiverWhat, "/inputs", "must name a digest of every input of the finding; none of input %s is there (%s)",
				in.ID, strings.Join(digests, ", "))
		}
		all = append(all, digests...)
	}
	for i, digest := range req.Inputs {
		if !slices.Contains(all, strings.ToLower(digest)) {
			return nil, invalid(waiverWhat, fmt.Sprintf("/inputs/%d", i), "is no digest of an input of the finding, written sha256:<hex>")
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// ConfirmWaiver puts a waiver in force: a second person of the panel, neither the
// author nor a party. Errors: *VoteError, ErrNotFound.
func (d *Desk) ConfirmWaiver(ctx context.Context, p Principal, id string) (*Waiver, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	w, err := d.store.Waiver(ctx, p.Project, id)
	if err != nil {
		return nil, err
	}
	s, err := d.store.Screening(ctx, p.Project, w.ScreeningID)
	if err != nil {
		return nil, err
	}
	// Not what it leaves open: that is a finding of its own, which no waiver takes away.
	if err := d.checkFloor(ctx, s, nil); errors.Is(err, ErrFloor) || errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	affected, err := d.store.ConfirmWaiver(ctx, p.Project, id, func(w *Waiver, s *Screening, now time.Time) (string, error) {
		if err := s.recalled(); err != nil {
			return "", err
		}
		switch err := mayWaive(setup, setup.Policies.policy(w.Policy), s, p.Subject); {
		case err != nil:
			return "", err
		case setup.People.now(w.Author) == p.Subject:
			return "", &VoteError{ErrNotAllowed, "a second person has to confirm a waiver"}
		case w.ConfirmedBy != "":
			return "", &VoteError{ErrConflict, "the waiver is confirmed already"}
		case !now.Before(w.ExpiresAt):
			return "", &VoteError{ErrConflict, "the waiver has expired"}
		}
		return p.Subject, nil
	})
	if err != nil {
		return nil, err
	}
	if s.Review != nil { // it may be an appeal, which waits for nobody
		affected = append(affected, Affected{s.ID, s.Review.ID})
	}
	// The votes on the rest may be there already, and nobody left to cast another. The
	// waiver is in force whatever comes of one of these.
	for _, a := range affected {
		if a.ReviewID != "" {
			err = errors.Join(err, d.settle(ctx, p.Project, a.ReviewID))
		}
		d.waiters.wake(a.ScreeningID)
	}
	if err != nil {
		return nil, err
	}
	return d.store.Waiver(ctx, p.Project, id)
}

// Waiver reads one.
func (d *Desk) Waiver(ctx context.Context, p Principal, id string) (*Waiver, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Waiver(ctx, p.Project, id)
}

// Waivers lists the newest first.
func (d *Desk) Waivers(ctx context.Context, p Principal, q WaiverQuery) ([]*Waiver, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Waivers(ctx, p.Project, q)
}
