package webhooks

import (
	"errors"
	"time"
)

// Record is a delivery as people see it.
type Record struct {
	ID          string
	EndpointID  string
	MessageID   string
	Type        string
	Project     string // "" when it is of the whole deployment
	ScreeningID string // "" when it is about none
	ReviewID    string // likewise
	State       string // pending, delivering, delivered, held, dead or cancelled
	Attempts    int
	DueAt       time.Time // of the next attempt, while it is pending
	CreatedAt   time.Time
	FinishedAt  *time.Time
	Last        *Logged // the last attempt that is over; nil when there was none

	Body []byte   // with one only
	Log  []Logged // with one only: every attempt, in order
}

// Logged is one attempt in the log. What the receiver answered is not in it: it
// is kept for whoever looks into the database, and shown to nobody else, or an
// endpoint would be a way to read what its address serves.
type Logged struct {
	Number    int
	Request   string // id of the request by which a person asked for it
	StartedAt time.Time
	Duration  time.Duration
	Address   string // host, and the IP address that was dialled
	Status    int    // 0 without an answer
	Class     Class  // "" on success
	Detail    string
}

// States lists the states of a delivery.
func States() []string {
	return []string{"pending", "delivering", "delivered", "held", "dead", "cancelled"}
}

// RecordQuery selects deliveries, newest first. Zero fields do not restrict.
type RecordQuery struct {
	EndpointID string
	State      string
	Type       string
	ReviewID   string
	After      *RecordCursor
	Limit      int
}

// RecordCursor is the place after which a page goes on.
type RecordCursor struct {
	At time.Time
	ID string
}

// EndpointStatus is an endpoint as people see it.
type EndpointStatus struct {
	ID           string
	Host         string
	Format       Format
	Types        []string // nil = all
	DisabledAt   *time.Time
	DisabledBy   string
	DisabledWhy  string
	Failures     int // in a row
	FailingSince *time.Time
	OpenUntil    *time.Time // the breaker is open: nothing is sent before
	Waiting      int        // deliveries that are pending or under way
	Held         int
	Dead         int // that nobody asked for again

	Events []EndpointEvent // with one only: the newest 100
}

// State is one word for an endpoint: enabled, cooling or disabled.
func (e EndpointStatus) State() string {
	switch {
	case e.DisabledAt != nil:
		return "disabled"
	case e.OpenUntil != nil:
		return "cooling"
	}
	return "enabled"
}

// EndpointEvent is something that was done to an endpoint.
type EndpointEvent struct {
	ID     string
	Type   string // declared, removed, disabled, enabled, pinged or redelivered
	Actor  string
	Reason string
	At     time.Time
}

// Order is what a person asks of an endpoint or a delivery.
type Order struct {
	Actor   string
	Project string
	Reason  string
}

var (
	// ErrUnderWay: an attempt is being made right now.
	ErrUnderWay = errors.New("an attempt is under way; look again when it is over")
	// ErrDisabled: the endpoint gets nothing until it is enabled.
	ErrDisabled = errors.New("the endpoint is disabled; enable it, which also releases what is held")
)
