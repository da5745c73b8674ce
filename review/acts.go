package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/screening"
)

const (
	// ClaimLease is how long a claim lasts unless it is renewed.
	ClaimLease = 30 * time.Minute
	// EvidenceDue is how long a submitter has to answer.
	EvidenceDue = 7 * 24 * time.Hour

	maxText = 10_000
)

// change applies what decide makes of a review, and gives the review after it.
func (d *Desk) change(ctx context.Context, p Principal, reviewID string, decide func(*Review, time.Time) (*Change, error)) (*Review, error) {
	var screeningID string
	err := d.store.ChangeReview(ctx, p.Project, reviewID, func(r *Review, now time.Time) (*Change, error) {
		screeningID = r.Screening.ID
		return decide(r, now)
	})
	if err != nil {
		return nil, err
	}
	d.waiters.wake(screeningID)
	return d.store.Review(ctx, p.Project, reviewID)
}

// words checks a text that somebody has to give.
func words(what, pointer, text string) error {
	switch {
	case screening.IsBlank(text):
		return invalid(what, pointer, "must say something, in words that can be read")
	case len(text) > maxText:
		return invalid(what, pointer, "is longer than 10,000 bytes")
	case !isText(text):
		return invalid(what, pointer, "must be text without a NUL in it")
	}
	return nil
}

// isText reports whether a string can be kept as it is: a form of a browser can hold
// any bytes.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func invalid(what, pointer, format string, args ...any) error {
	return &screening.InvalidError{What: what, Problems: []screening.Problem{{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}}}
}

// Claim shows for half an hour that somebody looks at the panels of their
// groups, and renews what they claimed before. Nothing else depends on it; it
// returns by itself. Errors: *VoteError, ErrNotFound.
// Version 0 asks for none, here and in the others that are not about what was seen.
func (d *Desk) Claim(ctx context.Context, p Principal, reviewID string, version int) (*Review, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	return d.change(ctx, p, reviewID, func(r *Review, now time.Time) (*Change, error) {
		c := &Change{Event: EventClaim, Actor: p.Subject, Lease: ClaimLease}
		mine, err := r.reviewer(EventClaim, p.Subject, version, now, setup.People)
		if err != nil {
			return nil, err
		}
		for _, panel := range mine {
			if panel.ClaimedBy == "" || setup.People.now(panel.ClaimedBy) == p.Subject {
				c.Claims = append(c.Claims, panel.Number)
			}
		}
		if len(c.Claims) == 0 {
			return nil, &VoteError{ErrConflict, fmt.Sprintf("%s looks at it until %s; you can vote all the same",
				mine[0].ClaimedBy, mine[0].ClaimedUntil.Format(time.RFC3339))}
		}
		return c, nil
	})
}

// Release gives a claim back before its time. Errors: *VoteError, ErrNotFound.
func (d *Desk) Release(ctx context.Context, p Principal, reviewID string, version int) (*Review, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err != nil {
		return nil, err
	}
	return d.change(ctx, p, reviewID, func(r *Review, now time.Time) (*Change, error) {
		c := &Change{Event: EventRelease, Actor: p.Subject}
		for _, panel := range r.Panels {
			if panel.ClaimedBy != "" && setup.People.now(panel.ClaimedBy) == p.Subject {
				c.Claims = append(c.Claims, panel.Number)
			}
		}
		if len(c.Claims) == 0 {
			return nil, &VoteError{ErrConflict, "you have no claim on it"}
		}
		return c, r.takes(EventRelease, version, now)
	})
}

// Ask puts a question to the submitter: the review waits for the answer, at most
// EvidenceDue, and the panels' clocks stand still. Errors as of Vote.
func (d *Desk) Ask(ctx context.Context, p Principal, reviewID string, version int, question string) (*Review, error) {
	setup := d.Setup()
	p, err := setup.person(p, ScopeReview)
	if err == nil {
		err = words("question", "/note", question)
	}
	if err != nil {
		return nil, err
	}
	return d.change(ctx, p, reviewID, func(r *Review, now time.Time) (*Change, error) {
		_, err := r.reviewer(EventAsk, p.Subject, version, now, setup.People)
		return &Change{Event: EventAsk, Actor: p.Subject, Due: EvidenceDue,
			Note: &Note{Kind: NoteQuestion, Person: p.Subject, Text: question}}, err
	})
}

// Comment adds a remark to a review, also to one that is closed.
func (d *Desk) Comment(ctx context.Context, p Principal, reviewID string, version int, text string) (*Review, error) {
	p, err := d.Setup().person(p, ScopeReview)
	if err == nil {
		err = words("comment", "/text", text)
	}
	if err != nil {
		return nil, err
	}
	return d.change(ctx, p, reviewID, func(r *Review, _ time.Time) (*Change, error) {
		if version != 0 && version != r.Version {
			return nil, &VoteError{ErrConflict, "the review changed since you read it; read it again"}
		}
		return &Change{Event: EventComment, Actor: p.Subject, Note: &Note{Kind: NoteComment, Person: p.Subject, Text: text}}, nil
	})
}

// reviewer gives the panels in which a person has a say, or why an event is not theirs.
func (r *Review) reviewer(e Event, person string, version int, now time.Time, people *People) (mine []*Panel, err error) {
	if why := r.excludes(person, people); why != "" {
		return nil, &VoteError{ErrNotAllowed, why}
	}
	groups, mine := r.panelsOf(person, now, people)
	if len(groups) == 0 {
		return nil, &VoteError{ErrNotAllowed, "you are in no group that reviews this"}
	}
	if err := r.takes(e, version, now); err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		return nil, &VoteError{ErrConflict, "your panel has no say in this now; it is another panel's turn"}
	}
	return mine, nil
}

// answersFor reports whether a caller speaks for a screening: who submitted it,
// was submitted for, or owns it. Who only sent the same bytes does not.
func (s *Screening) answersFor(subject string, people *People) bool {
	return slices.ContainsFunc([]string{s.Submitter, s.Owner, s.OnBehalfOf}, func(name string) bool {
		return name != "" && people.now(name) == subject
	})
}

// Answer answers the reviewers' question with a note: the review is open again,
// and every panel has the time that it had left. Errors: *screening.InvalidError,
// *VoteError, ErrNotFound.
func (d *Desk) Answer(ctx context.Context, p Principal, screeningID, note string) (*Screening, error) {
	return d.fromSubmitter(ctx, p, screeningID, EventAnswer, NoteAnswer, note)
}

// Withdraw takes a screening back from review. A block that is appealed stays one.
func (d *Desk) Withdraw(ctx context.Context, p Principal, screeningID, reason string) (*Screening, error) {
	return d.fromSubmitter(ctx, p, screeningID, EventWithdraw, NoteWithdrawal, reason)
}

func (d *Desk) fromSubmitter(ctx context.Context, p Principal, screeningID string, e Event, kind NoteKind, text string) (*Screening, error) {
	setup := d.Setup()
	pointer := "/reason"
	if kind == NoteAnswer {
		pointer = "/note"
	}
	p, s, err := d.ofParty(ctx, p, screeningID, pointer, text)
	if err != nil {
		return nil, err
	}
	if s.Review == nil {
		return nil, &VoteError{ErrConflict, "nobody reviews this"}
	}
	_, err = d.change(ctx, p, s.Review.ID, func(r *Review, now time.Time) (*Change, error) {
		if !r.Screening.answersFor(p.Subject, setup.People) {
			return nil, ErrNotFound
		}
		return &Change{Event: e, Actor: p.Subject, Note: &Note{Kind: kind, Person: p.Subject, Text: text}}, r.takes(e, 0, now)
	})
	if err != nil {
		return nil, err
	}
	return d.screening(ctx, p.Project, screeningID)
}

// ofParty reads a screening for somebody who speaks for it.
func (d *Desk) ofParty(ctx context.Context, p Principal, screeningID, pointer, text string) (Principal, *Screening, error) {
	setup := d.Setup()
	p, err := setup.declared(p, ScopeSubmit)
	if err == nil {
		err = words("note", pointer, text)
	}
	if err != nil {
		return p, nil, err
	}
	s, err := d.Screening(ctx, p, screeningID)
	if err == nil && !s.answersFor(p.Subject, setup.People) {
		err = &VoteError{ErrNotAllowed, "only the submitter, the owner and the person submitted for can do this"}
	}
	return p, s, err
}

// Appeal asks other people than those who blocked to look at a block again. The
// block holds until they admit. Not of a violated safety term, which is final.
// Errors: *screening.InvalidError, *VoteError, ErrNotFound.
func (d *Desk) Appeal(ctx context.Context, p Principal, screeningID, reason string) (*Screening, error) {
	setup := d.Setup()
	p, _, err := d.ofParty(ctx, p, screeningID, "/reason", reason)
	if err != nil {
		return nil, err
	}
	return d.open(ctx, p, screeningID, func(c *Closed) (*Opening, error) {
		s := c.Screening
		switch {
		case s.FloorViolated:
			return nil, &VoteError{ErrFloor, ErrFloor.Error()}
		case s.Status != StatusBlocked:
			return nil, &VoteError{ErrConflict, "only a block can be appealed; this is " + string(s.Status)}
		case !c.Latest:
			return nil, &VoteError{ErrConflict, "these bytes were submitted again since; appeal the newer screening"}
		}
		o := c.opening(setup, KindAppeal, NoteAppeal, p.Subject, reason)
		return o, o.reachable(c, setup.People)
	})
}

// Reopen goes on with a review that expired: a linked one with the panels of the
// policies of now. The submitter's side may ask for it, and who reviews it.
func (d *Desk) Reopen(ctx context.Context, p Principal, screeningID, reason string) (*Screening, error) {
	setup := d.Setup()
	scope := ScopeSubmit
	if p.May(ScopeReview) {
		scope = ScopeReview
	}
	p, err := setup.declared(p, scope)
	if err == nil {
		err = words("note", "/reason", reason)
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Screening(ctx, p, screeningID); err != nil {
		return nil, err
	}
	if _, err := d.Expire(ctx); err != nil { // what is overdue is closed before it goes on
		return nil, err
	}
	return d.open(ctx, p, screeningID, func(c *Closed) (*Opening, error) {
		s := c.Screening
		o := c.opening(setup, KindReopen, NoteReopen, p.Subject, reason)
		mayReview := p.May(ScopeReview) && slices.ContainsFunc(o.Panels, func(panel Panel) bool {
			return slices.Contains(setup.People.Members(panel.Group), p.Subject)
		})
		switch {
		case !mayReview && !s.answersFor(p.Subject, setup.People):
			return nil, &VoteError{ErrNotAllowed, "only the submitter, the owner, the person submitted for and its reviewers can do this"}
		case s.Status != StatusExpired || c.Last == nil || c.Last.State != Expired:
			return nil, &VoteError{ErrConflict, "only a review that expired can be reopened; submit the bytes again instead"}
		case !c.Latest:
			return nil, &VoteError{ErrConflict, "these bytes were submitted again since; the newer screening answers"}
		}
		return o, o.reachable(c, setup.People)
	})
}

func (d *Desk) open(ctx context.Context, p Principal, screeningID string, decide func(*Closed) (*Opening, error)) (*Screening, error) {
	if _, err := d.store.OpenReview(ctx, p.Project, screeningID, func(c *Closed) (*Opening, error) {
		if c.Screening.Erased != nil { // there is nothing that people could look at
			return nil, &ErasedError{*c.Screening.Erased}
		}
		if err := c.Screening.recalled(); err != nil {
			return nil, err
		}
		return decide(c)
	}); err != nil {
		return nil, err
	}
	d.waiters.wake(screeningID)
	return d.screening(ctx, p.Project, screeningID)
}

func (c *Closed) opening(setup Setup, kind Kind, note NoteKind, actor, text string) *Opening {
	o := &Opening{Kind: kind, Actor: actor, Note: &Note{Kind: note, Person: actor, Text: text},
		Panels: setup.route(c.Findings, c.Screening.Team)}
	if c.Last != nil {
		o.Origin = c.Last.ID
	}
	return o
}

// reachable reports a panel that can never have its quorum: too few of its group
// are left who have no part in it. Such a review could only expire.
func (o *Opening) reachable(c *Closed, people *People) error {
	r := &Review{Screening: c.Screening}
	if o.Kind == KindAppeal {
		r.Excluded = c.Blockers
	}
	for _, panel := range o.Panels {
		left := 0
		for _, member := range people.Members(panel.Group) {
			if r.excludes(member, people) == "" {
				left++
			}
		}
		if left < panel.Quorum {
			return &VoteError{ErrConflict, fmt.Sprintf("policy %s needs %d persons of group %s who have no part in it; there are %d",
				panel.Policy, panel.Quorum, panel.Group, left)}
		}
	}
	return nil
}

// CorrectReview sends a correction of the screening that a review is about.
func (d *Desk) CorrectReview(ctx context.Context, p Principal, reviewID string, req CorrectionRequest) (c *Correction, existing bool, err error) {
	r, err := d.Review(ctx, p, reviewID)
	if err != nil {
		return nil, false, err
	}
	req.ScreeningID = r.Screening.ID
	return d.Correct(ctx, p, req)
}
