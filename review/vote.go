package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// VoteError says why a vote does not count; it wraps ErrNotAllowed or ErrConflict.
type VoteError struct {
	Kind   error
	Reason string
}

func (e *VoteError) Error() string { return e.Reason }
func (e *VoteError) Unwrap() error { return e.Kind }

// VoteRequest is one person's answer.
type VoteRequest struct {
	ExpectedVersion int
	SpecSHA256      screening.Digest256 // the bytes the voter looked at
	Choice          Choice
	Reason          string
	Terms           []string // cited findings, by tagged id
}

// Vote casts a vote in every panel whose group the person belongs to. One block
// vote ends the review; it is admitted when every panel has its quorum. Errors:
// *screening.InvalidError, *VoteError, ErrNotFound.
func (d *Desk) Vote(ctx context.Context, p Principal, reviewID string, req VoteRequest) (*Review, error) {
	setup := d.Setup()
	p, err := setup.declared(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	people := setup.People
	if people.IsService(p.Subject) {
		return nil, &VoteError{ErrNotAllowed, "only a declared person can vote"}
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	var screeningID string
	err = d.store.ChangeReview(ctx, p.Project, reviewID, func(r *Review, now time.Time) (*Change, error) {
		screeningID = r.Screening.ID
		return d.cast(r, now, p.Subject, people, req)
	})
	if err != nil {
		return nil, err
	}
	d.waiters.wake(screeningID)
	return d.store.Review(ctx, p.Project, reviewID)
}

func (v *VoteRequest) check() error {
	var found []screening.Problem
	if v.Choice != VoteAdmit && v.Choice != VoteBlock {
		found = append(found, screening.Problem{Pointer: "/vote", Detail: "must be admit or block"})
	}
	if screening.IsBlank(v.Reason) {
		found = append(found, screening.Problem{Pointer: "/reason", Detail: "must say why, in words that can be read"})
	} else if len(v.Reason) > 10_000 {
		found = append(found, screening.Problem{Pointer: "/reason", Detail: "is longer than 10,000 bytes"})
	}
	if v.SpecSHA256.IsZero() {
		found = append(found, screening.Problem{Pointer: "/spec_sha256", Detail: "must be the digest of the spec that was looked at"})
	}
	if v.ExpectedVersion < 1 {
		found = append(found, screening.Problem{Pointer: "/expected_version", Detail: "must be the version of the review that was looked at"})
	}
	if found != nil {
		return &screening.InvalidError{What: "vote", Problems: found}
	}
	return nil
}

// cast is the pure part: what this vote does to the review as it is now.
func (d *Desk) cast(r *Review, now time.Time, person string, people *People, req VoteRequest) (*Change, error) {
	refuse := func(kind error, format string, args ...any) (*Change, error) {
		return nil, &VoteError{kind, fmt.Sprintf(format, args...)}
	}
	s := r.Screening
	// Resolved again: people.yaml may have learnt an alias since they were kept.
	if slices.ContainsFunc(slices.Concat(s.Parties, []string{s.Submitter, s.Owner, s.OnBehalfOf}), func(name string) bool {
		id, _ := people.Subject(name)
		return id == person
	}) {
		return refuse(ErrNotAllowed, "the submitter, the owner and the person submitted for cannot review their own run")
	}
	var mine []Panel
	for _, panel := range r.Panels {
		if slices.Contains(people.Members(panel.Group), person) {
			mine = append(mine, panel)
		}
	}
	if len(mine) == 0 {
		return refuse(ErrNotAllowed, "you are in no group that reviews this")
	}
	if r.State != Open || !now.Before(r.DueAt) {
		return refuse(ErrConflict, "the review is not open any more")
	}
	if r.Version != req.ExpectedVersion {
		return refuse(ErrConflict, "the review changed since you read it; read it again")
	}
	if s.SpecSHA256 != req.SpecSHA256 {
		return refuse(ErrConflict, "the vote names other bytes than the ones under review")
	}
	var decision screening.Decision
	if err := json.Unmarshal(s.Decision, &decision); err != nil {
		return nil, fmt.Errorf("decision of screening %s: %w", s.ID, err)
	}
	if err := checkCited(req.Terms, &decision); err != nil {
		return nil, err
	}
	if req.Choice == VoteAdmit {
		if open := unansweredFloor(&decision); len(open) > 0 {
			return refuse(ErrConflict, "the safety floor could not be checked (%s); nobody can admit over it. "+
				"The submitter has to state the missing facts in a new spec", strings.Join(open, ", "))
		}
	}
	change := &Change{Actor: person, AdmissionPeriod: d.cfg.AdmissionPeriod}
	for _, panel := range mine {
		if slices.ContainsFunc(panel.Votes, func(v Vote) bool { return people.now(v.Person) == person }) {
			return refuse(ErrConflict, "you voted on this already")
		}
		change.Votes = append(change.Votes, PanelVote{panel.Policy, panel.Group,
			Vote{Person: person, Choice: req.Choice, Reason: req.Reason, Terms: req.Terms}})
	}
	switch {
	case req.Choice == VoteBlock:
		change.Outcome = VoteBlock
	case quorate(r.Panels, mine, people):
		change.Outcome = VoteAdmit
	}
	return change, nil
}

// quorate reports whether one more admit vote in the given panels gives every
// panel its quorum. People are counted, by who they are now: a person that was
// renamed has voted once.
func quorate(panels, mine []Panel, people *People) bool {
	for _, panel := range panels {
		admit := map[string]bool{}
		for _, v := range panel.Votes {
			if v.Choice == VoteAdmit {
				admit[people.now(v.Person)] = true
			}
		}
		n := len(admit)
		if slices.ContainsFunc(mine, func(m Panel) bool { return m.Policy == panel.Policy }) {
			n++
		}
		if n < panel.Quorum {
			return false
		}
	}
	return len(panels) > 0
}

// checkCited: a vote names the findings it answers.
func checkCited(cited []string, d *screening.Decision) error {
	// With no_policy_matched there may be nothing that escalated: nothing to cite.
	escalated := slices.ContainsFunc(d.Causes, func(e screening.EffectiveFinding) bool { return e.Effect >= screening.Escalate })
	var found []screening.Problem
	if len(cited) == 0 && escalated {
		found = append(found, screening.Problem{Pointer: "/terms", Detail: "must cite at least one of the findings that caused the review"})
	}
	for i, c := range cited {
		if !slices.ContainsFunc(d.Causes, func(e screening.EffectiveFinding) bool { return e.Term == c }) {
			found = append(found, screening.Problem{Pointer: fmt.Sprintf("/terms/%d", i), Detail: "is not a finding that caused the review"})
		}
	}
	if found != nil {
		return &screening.InvalidError{What: "vote", Problems: found}
	}
	return nil
}

// unansweredFloor lists the safety terms that could not be checked.
func unansweredFloor(d *screening.Decision) (open []string) {
	for _, v := range d.Safety {
		for _, f := range v.Findings {
			if !f.RuntimeCheckable() {
				open = append(open, string(screening.Safety)+":"+f.Term)
			}
		}
	}
	return open
}
