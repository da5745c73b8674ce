// Package review is the desk of the gate: the one entrance for submissions,
// gate checks and votes.
//
// A [Desk] takes bytes and a [Principal], asks package screening for the
// decision, and hands one unit of work to its [Store]. Escalations open a
// review with one panel per review policy; people of each panel's group vote; a
// review is admitted when every panel has its quorum and blocked by one block
// vote. Reviews that nobody decides expire, and expiry never admits.
//
// Who may do what comes from two declared files: people.yaml ([People]) and
// policies.yaml ([Policies]). Nobody configured means nobody may.
//
// The package decides and holds no state of its own; all stored times are the
// database's.
package review
