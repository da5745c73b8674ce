package webhooks

import (
	"context"
	"errors"
	"time"
)

// Delivery is one message to one endpoint, as claimed.
type Delivery struct {
	ID         string
	EndpointID string
	// MessageID is the webhook-id: "msg_" and 128 random bits, the same on
	// every attempt and redelivery.
	MessageID string
	Type      string // review.opened, …
	// Body is sent as it is. It was frozen when the delivery was written.
	Body []byte
	// Attempt is the number of the attempt this claim is for, from 1: the
	// claim itself counts up, so that a crash cannot make a delivery endless.
	Attempt int
	// RoundStart is how many attempts were made before this round of the
	// schedule: a person's request begins the schedule anew.
	RoundStart int
	// Request is the id of the request by which a person asked for this attempt;
	// otherwise empty.
	Request string
	// Probe marks the one delivery that finds out whether an endpoint whose
	// breaker is open works again.
	Probe bool
	// Claim is the fencing token of this claim.
	Claim string
}

// State is what becomes of a delivery. The zero value is invalid.
type State string

// The states an attempt can lead to.
const (
	StateDelivered State = "delivered" // final: the receiver has it
	StateRetry     State = "retry"     // due again after Outcome.RetryIn
	StateDead      State = "dead"      // final until somebody redelivers: the schedule is used up
	StateHeld      State = "held"      // kept until the endpoint is enabled or declared again
)

// Outcome is what follows from an attempt.
type Outcome struct {
	State   State
	RetryIn time.Duration // with StateRetry: counted from now, by the outbox's clock
	// Disable says why the endpoint is to get no more; otherwise empty.
	Disable string
}

// Declared is what the outbox has to know of an endpoint.
type Declared struct {
	ID     string
	Host   string // of the URL
	Format Format
	Types  []string // of messages it is told of; nil means all
}

// ErrClaimLost is returned by [Outbox.Finish] when the delivery is no longer
// held under the given claim: its lease ran out and somebody else has it.
var ErrClaimLost = errors.New("delivery is no longer held by this claim")

// Outbox is the store of deliveries. It is safe for concurrent use. Due times
// and leases go by its own clock. It keeps the breaker of each endpoint, see
// [Breaker]: it alone sees the attempts of all replicas.
type Outbox interface {
	// Declare tells which endpoints this process has, at its start and from
	// then on as a sign of life. What nobody declares any more is removed after
	// a while, and what waits for it is cancelled.
	Declare(ctx context.Context, endpoints []Declared) error

	// Claim leases up to limit deliveries that are due, or whose lease ran out,
	// to the given endpoints, oldest due first, and counts up their attempts.
	// What goes to an endpoint that is disabled or cooling down stays, but for
	// the one delivery that probes and, for an hour after somebody asked, pings.
	Claim(ctx context.Context, limit int, lease time.Duration, endpoints []string) ([]Delivery, error)

	// Finish records an attempt and moves the delivery, in one transaction,
	// and only under d.Claim; otherwise it changes nothing and returns
	// ErrClaimLost. An attempt with Number 0 is not to be recorded.
	Finish(ctx context.Context, d Delivery, a Attempt, o Outcome) error

	// Release gives claims back unused: due at once, the attempt not counted.
	// Claims that were lost meanwhile are passed over.
	Release(ctx context.Context, ds []Delivery) error
}
