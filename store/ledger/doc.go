// Package ledger is what outsiders can check: signatures over what the gate
// says. It is pure: keys and bytes go in, bytes come out.
//
// Signatures are DSSE envelopes (Dead Simple Signing Envelope) with ed25519
// keys, so that any DSSE implementation can verify them.
package ledger
