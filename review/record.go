package review

import (
	"errors"
	"time"

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
	Parties         []string // who submitted these bytes, was submitted for, or owns it
	AsOf            screening.Day
	Engine          string
	Outcome         screening.Outcome
	Decision        []byte // JSON bytes of the screening.Decision
	Status          Status // as of the moment it was read
	DecidedBy       string // packs or people
	AdmittedUntil   *time.Time
	SupersededBy    string
	CreatedAt       time.Time
	Review          *ReviewRef // the latest review, nil when there was none
}

// ReviewRef points from a screening to its review.
type ReviewRef struct {
	ID    string
	State State
	DueAt time.Time
}

// Panel is the part of a review that one policy decides.
type Panel struct {
	Policy    string
	Group     string
	Quorum    int
	Due       time.Duration // from opening; only used when a review is opened
	DueAt     time.Time
	Terms     []string // findings routed here, by tagged id
	Endpoints []string
	Votes     []Vote
}

// Vote is one person's answer for one panel.
type Vote struct {
	Person string
	Choice Choice
	Reason string
	Terms  []string // cited
	CastAt time.Time
}

// Choice is what a vote is for.
type Choice string

const (
	VoteAdmit Choice = "admit"
	VoteBlock Choice = "block"
)

// Review is the human side of an escalation.
type Review struct {
	ID        string
	Project   string
	State     State
	Outcome   Choice // "" until decided
	Version   int
	OpenedAt  time.Time
	DueAt     time.Time
	ClosedAt  *time.Time
	Panels    []Panel
	Screening *Screening
}

// Submission is what a Desk hands to its Store to keep, all or nothing.
type Submission struct {
	Principal       Principal
	IdempotencyKey  *screening.Digest256 // nil when the client sent none
	Spec            *screening.ParsedSpec
	Owner           string // resolved person ids
	OnBehalfOf      string
	AnswersFor      string   // who may replace this run's spec besides the submitter
	Parties         []string // submitter, owner and the person submitted for
	Decision        *screening.Decision
	DecisionJSON    []byte
	PacksSHA256     screening.Digest256 // of the packs the decision names
	FindingsSHA256  screening.Digest256 // of the causing findings and their evidence
	Findings        []FindingRow
	Panels          []Panel       // set exactly when the outcome is escalate
	AdmissionPeriod time.Duration // how long an admit holds
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
}

// Kept says what became of a submission.
type Kept struct {
	ID       string
	Existing bool // an earlier screening answers; nothing new was stored
}

var (
	// ErrNotFound: no such screening or review in the caller's project, or not the caller's to see.
	ErrNotFound = errors.New("not found")
	// ErrUnauthenticated: the key is unknown, wrong, expired or revoked. Which of these is not told.
	ErrUnauthenticated = errors.New("the API key is not valid")
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
	// ErrConflict: the review changed or closed in between.
	ErrConflict = errors.New("the review changed in between; read it again")
	// ErrDayChanged: the database's day is not the decision's; decide again.
	ErrDayChanged = errors.New("the day changed")
	// ErrUnavailable: the store did not answer; nothing is known.
	ErrUnavailable = errors.New("the store is unavailable; nothing is known, try again")
)
