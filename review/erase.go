package review

import (
	"context"
	"fmt"
	"time"

	"weir/screening"
)

// Erased says when, by whom and why the bytes of a screening were erased.
type Erased struct {
	At     time.Time
	Actor  string // a declared person or service, or weir itself
	Reason string
}

// ErasedError is ErrErased with what is known about it.
type ErasedError struct{ Erased Erased }

func (e *ErasedError) Error() string {
	return fmt.Sprintf("the bytes of this spec and its decisions were erased at %s by %s: %s",
		e.Erased.At.UTC().Format(time.RFC3339), e.Erased.Actor, e.Erased.Reason)
}
func (e *ErasedError) Unwrap() error { return ErrErased }

// ErasureRequest names what to erase: the spec of a screening, or a spec by its digest.
type ErasureRequest struct {
	Project     string
	ScreeningID string // "" = by digest
	SpecSHA256  screening.Digest256
	Actor       string
	Reason      string
}

// Erasure is what was erased.
type Erasure struct {
	SpecSHA256 screening.Digest256
	Screenings int // whose bytes these were
	Erased
}

// Erase erases the bytes of a spec and of every decision of it in the caller's
// project. What is said about them stays: digests, findings, votes, the log. Not
// while a review of them is open or an admission lives: those who look at them or
// train by them need them. Errors: *screening.InvalidError, *VoteError, ErrNotFound.
func (d *Desk) Erase(ctx context.Context, p Principal, r ErasureRequest) (*Erasure, error) {
	p, err := d.Setup().declared(p, ScopeAdmin)
	if err == nil {
		err = words("erasure", "/reason", r.Reason)
	}
	if err != nil {
		return nil, err
	}
	r.Project, r.Actor = p.Project, p.Subject
	return d.store.Erase(ctx, r)
}
