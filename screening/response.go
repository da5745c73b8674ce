package screening

import (
	"fmt"
	"maps"
	"slices"
)

// Response is what a violated term asks for. The order is the fold's: the
// largest wins. The zero value is invalid and cannot be written.
type Response uint8

const (
	Observe  Response = iota + 1 // recorded only
	Hedge                        // admitted; the disclosure statement must start with the hedge text
	Escalate                     // people decide
	Block                        // refused
)

var responseNames = map[Response]string{Observe: "observe", Hedge: "hedge", Escalate: "escalate", Block: "block"}

func (r Response) String() string {
	if s, ok := responseNames[r]; ok {
		return s
	}
	return fmt.Sprintf("invalid response %d", uint8(r))
}

// MarshalText refuses the zero value.
func (r Response) MarshalText() ([]byte, error) { return marshalName(r, responseNames) }

// UnmarshalText reads observe, hedge, escalate or block.
func (r *Response) UnmarshalText(text []byte) (err error) {
	*r, err = unmarshalName(text, responseNames)
	return err
}

// Outcome is what a screening comes to. The zero value is invalid and cannot be
// written, so a forgotten assignment never reads as an admit.
type Outcome uint8

const (
	OutcomeAdmit    Outcome = iota + 1 // may train
	OutcomeEscalate                    // people decide
	OutcomeBlock                       // may not train
)

var outcomeNames = map[Outcome]string{OutcomeAdmit: "admit", OutcomeEscalate: "escalate", OutcomeBlock: "block"}

func (o Outcome) String() string {
	if s, ok := outcomeNames[o]; ok {
		return s
	}
	return fmt.Sprintf("invalid outcome %d", uint8(o))
}

// MarshalText refuses the zero value.
func (o Outcome) MarshalText() ([]byte, error) { return marshalName(o, outcomeNames) }

// UnmarshalText reads admit, escalate or block.
func (o *Outcome) UnmarshalText(text []byte) (err error) {
	*o, err = unmarshalName(text, outcomeNames)
	return err
}

func marshalName[T ~uint8](v T, names map[T]string) ([]byte, error) {
	if s, ok := names[v]; ok {
		return []byte(s), nil
	}
	return nil, fmt.Errorf("value %d is not valid and cannot be written", v)
}

func unmarshalName[T ~uint8](text []byte, names map[T]string) (T, error) {
	for v, s := range names {
		if s == string(text) {
			return v, nil
		}
	}
	return 0, &valueError{"must be one of " + oneOf(slices.Sorted(maps.Values(names)))}
}
