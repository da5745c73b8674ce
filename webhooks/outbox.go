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
	// Manual marks an attempt that a person asked for.
	Manual bool
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
	// DisableEndpoint is the id of an endpoint that said 410, that it wants no
	// more; otherwise empty.
	DisableEndpoint string
}

// ErrClaimLost is returned by [Outbox.Finish] when the delivery is no longer
// held under the given claim: its lease ran out and somebody else has it.
var ErrClaimLost = errors.New("delivery is no longer held by this claim")

// Outbox is the store of deliveries. It is safe for concurrent use. Due times
// and leases go by its own clock.
type Outbox interface {
	// Claim leases up to limit deliveries that are due, or whose lease ran
	// out, oldest due first, and counts up their attempts. Deliveries to an
	// endpoint in skip, or to one that is disabled or cooling down, stay.
	Claim(ctx context.Context, limit int, lease time.Duration, skip []string) ([]Delivery, error)

	// Finish records an attempt and moves the delivery, in one transaction,
	// and only under d.Claim; otherwise it changes nothing and returns
	// ErrClaimLost. An attempt with Number 0 is not to be recorded.
	Finish(ctx context.Context, d Delivery, a Attempt, o Outcome) error

	// Release gives claims back unused: due at once, the attempt not counted.
	// Claims that were lost meanwhile are passed over.
	Release(ctx context.Context, ds []Delivery) error
}
