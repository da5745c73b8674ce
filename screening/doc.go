// Package screening decides what a training specification may do: block,
// escalate or admit.
//
// Data flows one way. Received bytes are parsed strictly into a [Spec]
// ([ParseSpec]); the facts of the spec are looked up once; every term of every
// [Pack] in the [Vocabulary] is evaluated against those facts and gives a
// [Finding]; the findings of one pack are its [Verdict]; the verdicts fold to a
// [Decision] ([Classify]).
//
// The package is pure: no clock, network, file or randomness. The same bytes,
// packs and day give the same decision bytes, so a decision can be replayed
// years later. Evaluation is three-valued: a predicate that cannot see what it
// needs says "not checkable" and why, and never passes for upheld. A predicate
// that fails escalates. Nothing in here can turn an error into an admit.
package screening
