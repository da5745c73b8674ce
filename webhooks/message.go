package webhooks

import "encoding/json"

// Types of messages.
const (
	TypeOpened     = "review.opened"     // an escalation waits for people
	TypeReminder   = "review.reminder"   // it still does
	TypeOverdue    = "review.overdue"    // a panel's due time passed, and the review goes on
	TypeDecided    = "review.decided"    // people answered
	TypeExpired    = "review.expired"    // nobody answered in time; never an admit
	TypeSuperseded = "review.superseded" // another spec took its run's place
	TypeWithdrawn  = "review.withdrawn"  // its submitter took it back
	TypeRevoked    = "admission.revoked" // bytes that were admitted are not any more
	TypeDisabled   = "endpoint.disabled" // another endpoint gets no more messages
	TypePing       = "endpoint.ping"     // a person tests the endpoint
)

// Types lists all types of messages that an endpoint can be told of. A ping is
// not among them: it goes where it is sent.
func Types() []string {
	return []string{TypeOpened, TypeReminder, TypeOverdue, TypeDecided, TypeExpired, TypeSuperseded, TypeWithdrawn, TypeRevoked, TypeDisabled}
}

// Format is the form of a body. It is signed alike.
type Format string

// The formats. Text of a spec is in none of them.
const (
	FormatStandard Format = "standard" // {type, timestamp, data}
	FormatChat     Format = "chat"     // {text}: for the incoming webhooks of chat programs
	FormatTicket   Format = "ticket"   // {title, body, labels}: for trackers that make a ticket of a POST

	FormatCloudEvents Format = "cloudevents" // CloudEvents 1.0, structured: for event meshes
)

// Formats lists all formats.
func Formats() []Format { return []Format{FormatStandard, FormatChat, FormatTicket, FormatCloudEvents} }

// MaxBodyBytes bounds a body, whatever a review is about.
const MaxBodyBytes = 20_000

// mediaType tells what a body is. It asks the body and not the endpoint, which may
// have been declared with another format when the body was made.
func mediaType(body []byte) string {
	var event struct {
		SpecVersion string `json:"specversion"`
	}
	if err := json.Unmarshal(body, &event); err == nil && event.SpecVersion != "" {
		return "application/cloudevents+json"
	}
	return "application/json"
}
