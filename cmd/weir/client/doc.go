// Package client asks a running gate. The command line uses it for all that it asks.
//
// An answer is either read and whole, or an error: a screening without a decision,
// a page of a proxy, half a body are [ErrNoAnswer], and so is a gate that cannot tell.
// Nothing that this package returns without an error is a guess, so a caller that
// treats every error as closed fails closed. What a gate refuses is a [*Problem].
//
// Requests are repeated until the context ends, but only where that cannot do a
// thing twice: those that only read, those that a gate knows again (a submission
// under its key, a bypass by its id, a correction by its text), and others only when
// the gate certainly did nothing.
//
// The types hold what callers have needed of the gate's answers, which is less than
// the OpenAPI document says; a test holds them to it. The rest is in Raw.
package client
