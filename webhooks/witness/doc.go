// Package witness asks witnesses to cosign the checkpoints of the log (C2SP
// tlog-witness). A witness is somebody else: it keeps the last state of the log
// that it saw, and cosigns a new one only if that goes on from it. Who trusts the
// witnesses need not trust that the operators show everybody the same history.
//
// An [Asker] works beside the log and never in its way: each round is bounded in
// time, what a witness does not answer is asked again with the next, and nothing
// waits for it. A witness is reached as webhook receivers are: names are resolved
// at each dial and the address is held to the egress guard, redirects are not
// followed, and what it answers is believed only if its key signed it.
package witness
