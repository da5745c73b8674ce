// Package store keeps what the gate decides, in Postgres. It is the only place
// that knows pgx and SQL.
//
// A submission is written in one transaction and one round trip: spec bytes,
// screening, findings, review, audit event, outbox rows and the idempotency
// record, or nothing. What waits to be written at the same moment shares a
// transaction, each with its own outcome. All stored times are the database's.
//
// SQL stands beside the code that scans its rows; errors of the database become
// the errors of package review here and go no further.
package store
