// Package migrations holds the database schema as numbered SQL files, built into the binary.
//
// A migration is a pair, NNNNNN_name.up.sql and NNNNNN_name.down.sql; versions count from 1 without gaps. The server
// only ever goes up, at start; down files exist for developers and for the test that both directions agree.
//
// # A file is one transaction
//
// Each file is sent as one batch, which Postgres runs as one implicit transaction, and every up file ends by recording
// its own version:
//
//	insert into schema_history(version) values (N);
//
// That row is the only witness that cannot lie. The migration library marks its own table dirty before a file and clean
// after it, in transactions of their own, so a process that dies in between leaves "dirty" behind without saying
// whether the file was committed; the server may even commit it after the client is gone. The history row commits with
// the file or not at all, and store.Migrate heals by it. Hence the rules, which a test holds for every file: no begin,
// commit or rollback, which would split the file in two, and no concurrent index builds, which cannot run inside a
// transaction and deadlock with replicas that wait for the migration lock.
//
// A file that alters a big table starts with set local lock_timeout = '5s', so that it gives up rather than queue all
// traffic behind itself.
package migrations

import "embed"

// FS holds the migration files, at its root.
//
//go:embed *.sql
var FS embed.FS
