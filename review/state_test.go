package review

import (
	"testing"
)

// Every state that waits for somebody has a way out, every state can be reached,
// and nothing leaves a final one.
func TestStateTable(t *testing.T) {
	t.Parallel()
	reached := map[State]bool{}
	for _, step := range Steps() {
		if len(step.From) == 0 {
			reached[step.To] = true
		}
		for _, from := range step.From {
			to, ok := from.After(step.Event)
			if !ok || !from.Live() {
				t.Errorf("%s %s leads to %q, %t", from, step.Event, to, ok)
			}
			reached[to] = true
		}
	}
	for _, s := range States() {
		if !reached[s] {
			t.Errorf("%s is never reached", s)
		}
		out := false
		for _, step := range Steps() {
			next, ok := s.After(step.Event)
			out = out || ok && next != s && !next.Live()
		}
		if out != s.Live() {
			t.Errorf("%s: waits for somebody %t, can end %t", s, s.Live(), out)
		}
		if _, ok := s.After(EventExpire); ok != s.Live() {
			t.Errorf("%s: expires %t; what waits for somebody ends by itself", s, ok)
		}
	}
	for _, s := range []State{"nonsense", ""} {
		if _, ok := s.After(EventVote); ok || s.Live() {
			t.Errorf("%q, which is no state, can become something", s)
		}
	}
	if _, ok := Open.After("nonsense"); ok {
		t.Error("what is no event moves a review")
	}
}

func TestOnlyAdmittedOpensTheGate(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{StatusAdmitted, StatusBlocked, StatusExpired, StatusSuperseded, StatusWithdrawn} {
		if !s.Final() || (Answer{Status: s}).Open() != (s == StatusAdmitted) {
			t.Errorf("%s: final %t, opens the gate %t", s, s.Final(), (Answer{Status: s}).Open())
		}
	}
	if StatusPending.Final() || (Answer{Status: StatusPending}).Open() || (Answer{}).Open() {
		t.Error("pending is final or opens the gate")
	}
}
