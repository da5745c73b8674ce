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
	Facts           []Fact   // what upholds safety terms that the spec leaves open
}

// Vote casts a vote in every panel that has a say, whose group the person belongs
// to, and in which they have not voted. One block vote ends the review; it is
// admitted when every panel has its quorum. Errors: *screening.InvalidError,
// *VoteError, ErrNotFound.
func (d *Desk) Vote(ctx context.Context, p Principal, reviewID string, req VoteRequest) (*Review, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	var floor error
	if req.Choice == VoteAdmit {
		r, err := d.store.Review(ctx, p.Project, reviewID)
		if err != nil {
			return nil, err
		}
		if floor = d.checkFloor(ctx, r.Screening, req.Facts); errors.Is(floor, ErrUnavailable) || errors.Is(floor, ErrNotFound) {
			return nil, floor
		}
	}
	return d.change(ctx, p, reviewID, func(r *Review, now time.Time) (*Change, error) {
		return d.cast(r, now, p.Subject, setup.People, floor, req)
	})
}

// person is declared for what only a declared person may do.
func (s Setup) person(p Principal, scope Scope) (Principal, error) {
	p, err := s.declared(p, scope)
	if err == nil && s.People.IsService(p.Subject) {
		err = &VoteError{ErrNotAllowed, "only a declared person can do this"}
	}
	return p, err
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
	} else if !isText(v.Reason) {
		found = append(found, screening.Problem{Pointer: "/reason", Detail: "must be text without a NUL in it"})
	}
	if v.SpecSHA256.IsZero() {
		found = append(found, screening.Problem{Pointer: "/spec_sha256", Detail: "must be the digest of the spec that was looked at"})
	}
	if v.ExpectedVersion < 1 {
		found = append(found, screening.Problem{Pointer: "/expected_version", Detail: "must be the version of the review that was looked at"})
	}
	if v.Choice == VoteBlock && len(v.Facts) > 0 {
		found = append(found, screening.Problem{Pointer: "/facts", Detail: "go with an admit; a block needs none"})
	}
	if found != nil {
		return &screening.InvalidError{What: "vote", Problems: found}
	}
	return nil
}

// cast is the pure part: what this vote does to the review as it is now. floor is
// why nobody may admit it, nil when somebody may.
func (d *Desk) cast(r *Review, now time.Time, person string, people *People, floor error, req VoteRequest) (*Change, error) {
	refuse := func(kind error, format string, args ...any) (*Change, error) {
		return nil, &VoteError{kind, fmt.Sprintf(format, args...)}
	}
	s := r.Screening
	if why := r.excludes(person, people); why != "" {
		return refuse(ErrNotAllowed, "%s", why)
	}
	groups, mine := r.panelsOf(person, now, people)
	if len(groups) == 0 {
		return refuse(ErrNotAllowed, "you are in no group that reviews this")
	}
	if err := r.takes(EventVote, req.ExpectedVersion, now); err != nil {
		return nil, err
	}
	if s.SpecSHA256 != req.SpecSHA256 {
		return refuse(ErrConflict, "the vote names other bytes than the ones under review")
	}
	var decision screening.Decision
	if err := json.Unmarshal(s.Decision, &decision); err != nil {
		return nil, fmt.Errorf("decision of screening %s: %w", s.ID, err)
	}
	if err := checkCited(req.Terms, &decision, r.Panels); err != nil {
		return nil, err
	}
	if req.Choice == VoteAdmit {
		switch {
		case s.FloorViolated:
			return refuse(ErrFloor, "%s", ErrFloor)
		case floor != nil:
			return nil, floor
		}
		if open := r.unwaivedBlocks(&decision); len(open) > 0 {
			return refuse(ErrConflict, "the packs block this (%s), and no waiver of that is in force any more", strings.Join(open, ", "))
		}
	}
	change := &Change{Event: EventVote, Actor: person, AdmissionPeriod: d.cfg.AdmissionPeriod}
	voted := false
	for _, panel := range mine {
		if slices.ContainsFunc(panel.Votes, func(v Vote) bool { return people.now(v.Person) == person }) {
			voted = true
			continue
		}
		change.Votes = append(change.Votes, PanelVote{panel.Number, panel.Policy, panel.Group,
			Vote{Person: person, Choice: req.Choice, Reason: req.Reason, Terms: req.Terms, Facts: req.Facts}})
	}
	switch {
	case len(change.Votes) == 0 && voted:
		return refuse(ErrConflict, "you voted on this already")
	case len(change.Votes) == 0:
		return refuse(ErrConflict, "your panel has no say in this now; it is another panel's turn")
	case req.Choice == VoteBlock:
		change.Event, change.Outcome = EventDecide, VoteBlock
		return change, nil
	}
	change.tally(r, people)
	return change, nil
}

// tally works out what the votes come to: which panels have their quorum now,
// and whether that was the last that was needed: waivers alone are nobody's
// answer. An admission that needs waivers ends with them.
func (c *Change) tally(r *Review, people *People) {
	var missing, answered bool
	for i := range r.Panels {
		p := &r.Panels[i]
		if !p.Live() {
			continue
		}
		full := p.quorate(c.Votes, r, people)
		if full && p.AnsweredAt == nil {
			c.Answered = append(c.Answered, p.Number)
		}
		missing, answered = missing || !full && !r.waives(p), answered || full
	}
	if !missing && answered {
		c.Event, c.Outcome = EventDecide, VoteAdmit
		for _, w := range r.Waived {
			if c.AdmittedUntil == nil || w.Until.Before(*c.AdmittedUntil) {
				c.AdmittedUntil = &w.Until
			}
		}
	}
}

// quorate reports whether a panel has its quorum, with votes that are being cast.
// People are counted, by who they are now: a person that was renamed has voted
// once, and who has become a party since has not voted at all.
func (p *Panel) quorate(casting []PanelVote, r *Review, people *People) bool {
	admit := map[string]bool{}
	count := func(v Vote) {
		if person := people.now(v.Person); v.Choice == VoteAdmit && r.excludes(person, people) == "" {
			admit[person] = true
		}
	}
	for _, v := range p.Votes {
		count(v)
	}
	for _, v := range casting {
		if v.Panel == p.Number {
			count(v.Vote)
		}
	}
	return len(admit) >= p.Quorum
}

// excludes says why a person may not vote, "" if they may. Names are resolved
// again: people.yaml may have learnt an alias since they were kept.
func (r *Review) excludes(person string, people *People) (why string) {
	is := func(name string) bool { return name != "" && people.now(name) == person }
	s := r.Screening
	switch {
	case slices.ContainsFunc(s.Parties, is), is(s.Submitter), is(s.Owner), is(s.OnBehalfOf):
		return "the submitter, the owner and the person submitted for cannot review their own run"
	case slices.ContainsFunc(r.Excluded, is):
		return "who wrote a waiver about this, or blocked it before, cannot vote on it"
	}
	return ""
}

// panelsOf gives the panels of a person's groups, and of these the ones that have a say now.
func (r *Review) panelsOf(person string, now time.Time, people *People) (groups, live []*Panel) {
	for i := range r.Panels {
		p := &r.Panels[i]
		if !slices.Contains(people.Members(p.Group), person) {
			continue
		}
		groups = append(groups, p)
		if p.Live() && !p.overdue(now) {
			live = append(live, p)
		}
	}
	return groups, live
}

// takes reports why an event cannot happen to the review as it was seen; version
// 0 does not ask for one.
func (r *Review) takes(e Event, version int, now time.Time) error {
	_, ok := r.State.After(e)
	if err := r.Screening.recalled(); err != nil {
		return err
	}
	switch {
	case r.State == NeedsEvidence && !ok:
		return &VoteError{ErrConflict, "the review waits for evidence from the submitter"}
	case !ok, r.ExpiresAt != nil && !now.Before(*r.ExpiresAt):
		return &VoteError{ErrConflict, "the review is not open any more, or this is not its turn; it is " + string(r.State)}
	case version != 0 && version != r.Version:
		return &VoteError{ErrConflict, "the review changed since you read it; read it again"}
	}
	return nil
}

// waives reports whether waivers take every finding of a panel away: it has
// nothing left to decide. Where no ethics term was checkable, it has that.
func (r *Review) waives(p *Panel) bool {
	return !r.Screening.Unmatched && len(p.Terms) > 0 && !slices.ContainsFunc(p.Terms, func(term string) bool { return !r.waivesTerm(term) })
}

func (r *Review) waivesTerm(term string) bool {
	return slices.ContainsFunc(r.Waived, func(w Waived) bool { return w.Term == term })
}

// unwaivedBlocks lists the terms by which the packs block, and which nothing
// gives the reviewers to decide: a block is theirs by a waiver or an appeal.
func (r *Review) unwaivedBlocks(d *screening.Decision) (open []string) {
	if r.Kind == KindAppeal {
		return nil
	}
	for _, c := range d.Causes {
		if c.Effect == screening.Block && !r.waivesTerm(c.Term) {
			open = append(open, c.Term)
		}
	}
	return open
}

// settle decides a review at once if the votes that are there are all that was
// needed: they were carried over to it, or a waiver took away what was missing.
func (d *Desk) settle(ctx context.Context, project, reviewID string) error {
	r, err := d.store.Review(ctx, project, reviewID)
	if err != nil {
		return err
	}
	floor := d.checkFloor(ctx, r.Screening, nil)
	err = d.store.ChangeReview(ctx, project, reviewID, func(r *Review, now time.Time) (*Change, error) {
		if err := r.takes(EventDecide, 0, now); err != nil {
			return nil, err
		}
		var decision screening.Decision
		if err := json.Unmarshal(r.Screening.Decision, &decision); err != nil {
			return nil, fmt.Errorf("decision of screening %s: %w", r.Screening.ID, err)
		}
		change := &Change{Event: EventVote, Actor: "weir", AdmissionPeriod: d.cfg.AdmissionPeriod}
		change.tally(r, d.Setup().People)
		if change.Outcome == "" || floor != nil || len(r.unwaivedBlocks(&decision)) > 0 {
			return nil, nil
		}
		return change, nil
	})
	if errors.Is(err, ErrConflict) { // somebody else was quicker
		return nil
	}
	return err
}

// checkCited: a vote names the findings it answers.
func checkCited(cited []string, d *screening.Decision, panels []Panel) error {
	// With no_policy_matched there may be nothing that escalated: nothing to cite.
	escalated := slices.ContainsFunc(d.Causes, func(e screening.EffectiveFinding) bool { return e.Effect >= screening.Escalate })
	var found []screening.Problem
	if len(cited) == 0 && escalated {
		found = append(found, screening.Problem{Pointer: "/terms", Detail: "must cite at least one of the findings that caused the review"})
	}
	for i, c := range cited {
		if !slices.ContainsFunc(d.Causes, func(e screening.EffectiveFinding) bool { return e.Term == c }) &&
			!slices.ContainsFunc(panels, func(p Panel) bool { return slices.Contains(p.Terms, c) }) {
			found = append(found, screening.Problem{Pointer: fmt.Sprintf("/terms/%d", i), Detail: "is not a finding that caused the review"})
		}
	}
	if found != nil {
		return &screening.InvalidError{What: "vote", Problems: found}
	}
	return nil
}
