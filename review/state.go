package review

import "slices"

// State is where a review stands.
type State string

const (
	Open       State = "open"       // reviewers' turn
	Decided    State = "decided"    // people answered
	Expired    State = "expired"    // nobody answered in time; never an admit
	Superseded State = "superseded" // another spec took its run's place
	Withdrawn  State = "withdrawn"  // the submitter took it back
)

// transitions is the state machine of a review, in one table: which states can
// follow. The database's CHECK constraints mirror it.
var transitions = map[State][]State{
	Open:       {Decided, Expired, Superseded, Withdrawn},
	Decided:    {},
	Expired:    {},
	Superseded: {},
	Withdrawn:  {},
}

// CanBecome reports whether a review in state s may go to next.
func (s State) CanBecome(next State) bool { return slices.Contains(transitions[s], next) }
