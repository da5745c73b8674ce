package review

import (
	"fmt"
	"slices"
	"strings"
)

// State is where a review stands.
type State string

const (
	Open          State = "open"           // the reviewers' turn
	Claimed       State = "claimed"        // open, and somebody looks at it right now; never stored, see Step.Lease
	NeedsEvidence State = "needs_evidence" // the submitter's turn
	Decided       State = "decided"        // people answered, or a recall did
	Expired       State = "expired"        // nobody answered in time; never an admit
	Superseded    State = "superseded"     // another spec took its run's place
	Withdrawn     State = "withdrawn"      // the submitter took it back
)

// Event is what moves a review.
type Event string

const (
	EventOpen      Event = "open"
	EventClaim     Event = "claim"
	EventRelease   Event = "release"
	EventLapse     Event = "lapse"
	EventVote      Event = "vote"
	EventDecide    Event = "decide"
	EventAsk       Event = "ask"
	EventAnswer    Event = "answer"
	EventPass      Event = "pass"
	EventExpire    Event = "expire"
	EventSupersede Event = "supersede"
	EventWithdraw  Event = "withdraw"
	EventRecall    Event = "recall"
	// EventComment moves nothing, in any state, and so has no row in the table.
	EventComment Event = "comment"
)

// Step is one row of the state machine.
type Step struct {
	Event Event
	From  []State // none: the review comes into being
	To    State   // "" = it stays where it is
	Who   string
	What  string
	// Lease: the step is a lease of a panel by the database's time. Nothing else
	// depends on it, and the review's row does not change.
	Lease bool
}

// Steps is the state machine of a review, the whole of it. The database has it
// as one CHECK, docs/reviews.md as a drawing; tests compare all three.
var steps = []Step{
	{Event: EventOpen, To: Open, Who: "submitter", What: "an escalation, an appeal or a reopen begins it"},
	{Event: EventClaim, From: []State{Open, Claimed}, To: Claimed, Who: "reviewer of a panel", What: "shows who is looking", Lease: true},
	{Event: EventRelease, From: []State{Claimed}, To: Open, Who: "who claimed it", What: "gives the claim back", Lease: true},
	{Event: EventLapse, From: []State{Claimed}, To: Open, Who: "time", What: "the claim returns by itself", Lease: true},
	{Event: EventVote, From: []State{Open, Claimed}, Who: "reviewer of a panel", What: "an admit that leaves a quorum open"},
	{Event: EventDecide, From: []State{Open, Claimed}, To: Decided, Who: "reviewer of a panel", What: "the last admit that was needed, or one block"},
	{Event: EventAsk, From: []State{Open, Claimed}, To: NeedsEvidence, Who: "reviewer of a panel", What: "asks the submitter"},
	{Event: EventAnswer, From: []State{NeedsEvidence}, To: Open, Who: "submitter or owner", What: "answers with a note"},
	{Event: EventPass, From: []State{Open, Claimed}, Who: "time", What: "an overdue panel hands over to the next policy"},
	{Event: EventExpire, From: []State{Open, Claimed, NeedsEvidence}, To: Expired, Who: "time", What: "nobody answered in time"},
	{Event: EventSupersede, From: []State{Open, Claimed, NeedsEvidence}, To: Superseded, Who: "submitter", What: "another spec takes the run's place"},
	{Event: EventWithdraw, From: []State{Open, Claimed, NeedsEvidence}, To: Withdrawn, Who: "submitter or owner", What: "takes it back"},
	{Event: EventRecall, From: []State{Open, Claimed, NeedsEvidence}, To: Decided, Who: "who recalls data", What: "blocks what it was made from"},
}

// Steps gives the state machine, row by row.
func Steps() []Step { return slices.Clone(steps) }

// States lists every state, in the order of a review's life.
func States() []State {
	return []State{Open, Claimed, NeedsEvidence, Decided, Expired, Superseded, Withdrawn}
}

// Live reports whether the review waits for somebody.
func (s State) Live() bool { return s == Open || s == Claimed || s == NeedsEvidence }

// After gives the state that an event leads to; ok is false where it cannot happen.
func (s State) After(e Event) (next State, ok bool) {
	for _, step := range steps {
		if step.Event == e && slices.Contains(step.From, s) {
			if step.To == "" {
				return s, true
			}
			return step.To, true
		}
	}
	return "", false
}

// StoredSteps lists "from event to" of everything that changes a review's row,
// as the database's CHECK has it: a claim is no state there.
func StoredSteps() (list []string) {
	for _, step := range steps {
		if step.Lease {
			continue
		}
		if len(step.From) == 0 {
			list = append(list, fmt.Sprintf("none %s %s", step.Event, step.To))
		}
		for _, from := range step.From {
			if to, _ := from.After(step.Event); from != Claimed {
				list = append(list, fmt.Sprintf("%s %s %s", from, step.Event, to))
			}
		}
	}
	return list
}

// Drawing is the state machine as a Mermaid diagram and a table of its steps, in
// Markdown.
func Drawing() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, step := range steps {
		if len(step.From) == 0 {
			fmt.Fprintf(&b, "    [*] --> %s: %s\n", step.To, step.Event)
		}
		for _, from := range step.From {
			to, _ := from.After(step.Event)
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, step.Event)
		}
	}
	for _, s := range States() {
		if !s.Live() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\n| event | from | to | who | what |\n|---|---|---|---|---|\n")
	for _, step := range steps {
		var from []string
		for _, s := range step.From {
			from = append(from, string(s))
		}
		to := string(step.To)
		if to == "" {
			to = "the same"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", step.Event, strings.Join(from, ", "), to, step.Who, step.What)
	}
	return b.String()
}
