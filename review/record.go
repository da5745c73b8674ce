package review

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

// Status is where a screening stands now.
type Status string

const (
	StatusAdmitted   Status = "admitted"   // may train; the orchestrator's turn
	StatusBlocked    Status = "blocked"    // may not train; the submitter's turn
	StatusPending    Status = "pending"    // escalated; the reviewers' turn
	StatusExpired    Status = "expired"    // nobody decided in time, or the admission ran out
	StatusSuperseded Status = "superseded" // another spec took its run's place
	StatusWithdrawn  Status = "withdrawn"  // taken back by its submitter
	StatusRevoked    Status = "revoked"    // was admitted, and its data recalled
)

// Statuses are all that there are.
func Statuses() []Status {
	return []Status{StatusAdmitted, StatusBlocked, StatusPending, StatusExpired, StatusSuperseded, StatusWithdrawn, StatusRevoked}
}

// StatusOf gives the status that a screening with an outcome begins with, "" for
// what is none.
func StatusOf(o screening.Outcome) Status {
	switch o {
	case screening.OutcomeAdmit:
		return StatusAdmitted
	case screening.OutcomeEscalate:
		return StatusPending
	case screening.OutcomeBlock:
		return StatusBlocked
	}
	return ""
}

// Decider is who or what the status of a screening is from.
type Decider string

const (
	ByPacks  Decider = "packs"
	ByPeople Decider = "people"
	ByWaiver Decider = "waiver"
	ByRecall Decider = "recall"
)

// Final reports whether the status can no longer change by itself.
func (s Status) Final() bool { return s != StatusPending }

// Screening is one submission with its decision and current status.
type Screening struct {
	ID              string
	Project         string
	SpecSHA256      screening.Digest256
	CanonicalSHA256 screening.Digest256
	RunRef          string
	Team            string
	Submitter       string
	Owner           string
	OnBehalfOf      string
	Parties         []string // who submitted these bytes, was submitted for, or owns it, under every name they had then
	AsOf            screening.Day
	Engine          string
	PacksSHA256     screening.Digest256 // of the packs that decided it
	Outcome         screening.Outcome
	Decision        []byte // JSON bytes of the screening.Decision, nil when they were erased
	Status          Status // as of the moment it was read
	DecidedBy       Decider
	AdmittedUntil   *time.Time
	SupersededBy    string
	CreatedAt       time.Time
	FloorViolated   bool          // a safety term is violated: final for these bytes
	Unmatched       bool          // no ethics term that decides was checkable: no waiver helps
	ReportUntil     screening.Day // the project only reported when this was decided; "" = it enforced
	WaivedUntil     *time.Time    // waivers admit it until then, nil when they do not
	ReadOn          screening.Day // the database's day when it was read
	Review          *ReviewRef    // the latest review, nil when there was none
	Erased          *Erased       // the bytes of spec and decision are gone; nil = they are there
	Recall          *RecallRef    // the recall that it falls under, or that ended it; nil = none
}

// ReviewRef points from a screening to its review.
type ReviewRef struct {
	ID    string
	State State
	DueAt time.Time
}

// Panel is the part of a review that one policy decides. Panels of later tiers
// are there from the beginning and have no due time yet.
type Panel struct {
	Number       int // within the review, from 1
	Policy       string
	Group        string
	Quorum       int
	Due          time.Duration
	DueAt        *time.Time // nil: its turn has not come
	Next         int        // the panel that takes over at the due time; 0 = the review expires
	PassedAt     *time.Time // when that one took over
	AnsweredAt   *time.Time // when it had its quorum
	Terms        []string   // findings routed here, by tagged id
	Endpoints    []string
	Votes        []Vote
	ClaimedBy    string     // who is looking at it right now, "" = nobody
	ClaimedUntil *time.Time // until then, unless renewed

	members []string // every name of the group's people; only used when a review is opened
}

// Live reports whether the panel has a say now.
func (p *Panel) Live() bool { return p.DueAt != nil && p.PassedAt == nil }

// overdue: the next panel takes over, or the review expires.
func (p *Panel) overdue(now time.Time) bool {
	return p.Live() && p.AnsweredAt == nil && !now.Before(*p.DueAt)
}

// Members gives every name under which people of the panel's group may be kept.
func (p *Panel) Members() []string { return p.members }

// Vote is one person's answer for one panel.
type Vote struct {
	Person string
	Choice Choice
	Reason string
	Terms  []string // cited
	Facts  []Fact   // stated where the floor could not be checked
	CastAt time.Time
	Origin string // the review it was cast in, when it was carried over; "" = this one
}

// Fact is something a voter states in place of the submitter: a value at a place
// of the spec that says nothing yet, or a disclosure more.
type Fact struct {
	Pointer string         `json:"pointer"` // /inputs/0/disclosures, /objective/purposes, …
	Value   jsontext.Value `json:"value"`
}

// Note is what a person said about a review beside a vote.
type Note struct {
	Kind   NoteKind
	Person string
	Text   string
	At     time.Time
}

// NoteKind is what a note was for.
type NoteKind string

const (
	NoteComment    NoteKind = "comment"
	NoteQuestion   NoteKind = "question"   // what evidence is needed
	NoteAnswer     NoteKind = "answer"     // the submitter's
	NoteWithdrawal NoteKind = "withdrawal" // why it was taken back
	NoteAppeal     NoteKind = "appeal"     // why the block should be looked at again
	NoteReopen     NoteKind = "reopen"     // why the expired review goes on
)

// Choice is what a vote is for.
type Choice string

const (
	VoteAdmit Choice = "admit"
	VoteBlock Choice = "block"
)

// Kind is why there is a review.
type Kind string

const (
	KindEscalation Kind = "escalation" // the packs could not decide
	KindAppeal     Kind = "appeal"     // of a block; it holds until the appeal admits
	KindReopen     Kind = "reopen"     // of a review that expired
)

// Review is the human side of an escalation.
type Review struct {
	ID        string
	Project   string
	Kind      Kind
	Origin    string // the review that an appeal or reopen goes on from, "" = none
	State     State
	Outcome   Choice // "" until decided
	Version   int
	OpenedAt  time.Time
	DueAt     time.Time  // when something happens next if nobody acts
	ExpiresAt *time.Time // when it expires if nobody acts; nil while a panel passes on first
	ClosedAt  *time.Time
	Panels    []Panel
	Notes     []Note
	Waived    []Waived // findings that waivers take away now
	Screening *Screening

	// Excluded may not vote, beside the parties: who wrote a waiver that is about
	// it, and who blocked what an appeal is about.
	Excluded []string
}

// Waived is a finding that a waiver takes away until a time.
type Waived struct {
	Term  string
	Until time.Time // when the waiver, or an admission under it, ends
}

// Submission is what a Desk hands to its Store to keep, all or nothing.
type Submission struct {
	Principal       Principal
	IdempotencyKey  *screening.Digest256 // nil when the client sent none
	Spec            *screening.ParsedSpec
	Owner           string // resolved person ids
	OnBehalfOf      string
	SubmitterNames  []string // every name of the submitter
	AnswersFor      []string // every name of who may replace this run's spec besides the submitter
	Parties         []string // submitter, owner and the person submitted for
	Decision        *screening.Decision
	DecisionJSON    []byte
	PacksSHA256     screening.Digest256 // of the packs the decision names
	FindingsSHA256  screening.Digest256 // of the causing findings and their evidence
	Findings        []FindingRow
	Panels          []Panel  // of a review, if one has to be opened; none when nobody may decide
	PartyNames      []string // every name of the people among the parties
	FloorViolated   bool
	Unmatched       bool // no ethics term that decides was checkable: no waiver helps
	ReportUntil     screening.Day
	AdmissionPeriod time.Duration // how long an admit holds
	Lineage         Lineage
	// Ends is the screening whose admission this one ends, "" for none: the gate's own
	// look at bytes that are admitted. It is kept only while that one still admits them.
	Ends string
}

// FindingRow is one finding that leads to something.
type FindingRow struct {
	Term     string
	Pack     string
	State    screening.State
	Cause    screening.Cause
	Effect   screening.Response
	Severity string
	Causing  bool
	SHA256   screening.Digest256 // what it is: term, state, evidence pairs, digests of its inputs
	Pinned   bool                // every input it speaks of has a digest
}

// weighs reports whether the finding stands between a spec and its admission.
func (f *FindingRow) weighs() bool { return f.Effect >= screening.Escalate }

// Kept says what became of a submission.
type Kept struct {
	ID       string
	Existing bool   // an earlier screening answers; nothing new was stored
	ReviewID string // of the review that was opened with votes of the superseded one; "" = none
}

var (
	// ErrNotFound: no such screening or review in the caller's project, or not the caller's to see.
	ErrNotFound = errors.New("not found")
	// ErrUnauthenticated: the key or token is unknown, wrong, expired or revoked. Which of these is not told.
	ErrUnauthenticated = errors.New("the key or token is not valid")
	// ErrIssuerAway: whether a token is good cannot be told, as the keys of its issuer cannot be fetched.
	ErrIssuerAway = errors.New("the keys of the token's issuer cannot be fetched; nothing is known, try again")
	// ErrNotAllowed: the caller may not do this.
	ErrNotAllowed = errors.New("not allowed")
	// ErrKeyReused: the idempotency key was used with another body.
	ErrKeyReused = errors.New("the idempotency key was used before with another body; use a new key")
	// ErrInFlight: the same submission is being processed.
	ErrInFlight = errors.New("the same submission is still being processed; try again shortly")
	// ErrRunRefTaken: somebody else has an open review or an admission under this run_ref.
	ErrRunRefTaken = errors.New("this run_ref belongs to an open review or admission of another submitter; use another run_ref")
	// ErrReviewExpired: the review of these bytes expired and nobody reopened it.
	ErrReviewExpired = errors.New("the review of these bytes expired; a reviewer has to reopen it, or submit a changed spec")
	// ErrFloor: a safety term is violated, or not shown to be upheld; nobody admits over it.
	ErrFloor = errors.New("a violated safety term is final for these bytes; correct the facts in a new spec")
	// ErrConflict: the review changed or closed in between.
	ErrConflict = errors.New("the review changed in between; read it again")
	// ErrErased: the bytes of the spec and its decisions were erased, on request or by age.
	ErrErased = errors.New("the bytes of this spec and its decisions were erased; submit the spec again to have it looked at")
	// ErrDayChanged: the database's day is not the decision's; decide again.
	ErrDayChanged = errors.New("the day changed")
	// ErrUnavailable: the store did not answer; nothing is known.
	ErrUnavailable = errors.New("the store is unavailable; nothing is known, try again")
)
