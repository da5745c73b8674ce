package review

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"weir/screening"
)

// Line is a spec among others that are submitted together.
type Line struct {
	Raw []byte
	Key *screening.Digest256 // nil: submitting it again screens it again
}

// Submitted is what became of a line: what Submit gives for it.
type Submitted struct {
	Screening *Screening
	Existing  bool
	Err       error
}

// SubmitAll screens several specs of one caller, each with its own outcome, in
// the order of lines. Specs of one run go one after another, so that the last of
// them is the one that stands; the others go side by side, so that the store can
// commit them together. The caller bounds how many those are. The error is
// ErrNotAllowed, for all of them.
func (d *Desk) SubmitAll(ctx context.Context, p Principal, lines []Line) ([]Submitted, error) {
	if _, err := d.Setup().declared(p, ScopeSubmit); err != nil {
		return nil, err
	}
	done := make([]Submitted, len(lines))
	specs := make([]*screening.ParsedSpec, len(lines))
	runs := map[string][]int{}
	for i, l := range lines {
		if specs[i], done[i].Err = screening.ParseSpec(l.Raw); done[i].Err == nil {
			runs[specs[i].RunRef] = append(runs[specs[i].RunRef], i)
		}
	}
	var group sync.WaitGroup
	for _, of := range runs {
		group.Go(func() {
			for _, i := range of {
				done[i] = d.submitGuarded(ctx, p, specs[i], lines[i].Key)
			}
		})
	}
	group.Wait()
	return done, nil
}

// submitGuarded is submit on a goroutine of its own: a panic there would end the
// program, and with it what has nothing to do with this spec.
func (d *Desk) submitGuarded(ctx context.Context, p Principal, spec *screening.ParsedSpec, key *screening.Digest256) (s Submitted) {
	defer func() {
		if r := recover(); r != nil {
			s = Submitted{Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	s.Screening, s.Existing, s.Err = d.submit(ctx, p, spec, key)
	return s
}
