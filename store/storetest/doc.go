// Package storetest gives each test a Postgres database of its own.
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		pool := storetest.Pool(t)
//		…
//
// The database is at the head of the migrations, empty, and dropped when the test ends. Tests may therefore commit, take
// advisory locks, LISTEN, and run in parallel, and see nothing of each other. A failed test's database stays if
// WEIR_KEEP_TEST_DB=1.
//
// # Which server
//
// WEIR_TEST_DSN names one; its role needs CREATEDB and CREATEROLE. DATABASE_URL is never looked at: tests must not be one forgotten
// variable away from a real database. A killed run leaves databases called weir_test_… behind there.
//
// Without it the tests start a private server from the binaries on this machine. No binaries is a failure, not a skip:
// a green run that tested nothing is worse than a red one. The server runs in +14:00, so that code which takes the
// server's day for the UTC day fails for more than half of every day.
//
// # One server for all packages of a run
//
// go test runs packages as separate processes, several at once and unaware of each other; a server each would cost each
// an initdb. So the first process that needs a server starts this same test binary once more as a daemon, which owns the
// server. Three files in a directory per user, each a lock and nothing else, keep the order:
//
//	start   exclusive, while a process looks for the daemon or starts it
//	users   shared, by every test process until it ends, however it ends
//	daemon  exclusive, by the daemon while its server can be used
//
// The daemon waits for an exclusive lock on users: the kernel grants it when the last test process is gone, and the
// daemon stops the server, removes its files and ends. Nobody has to remember to stop anything, there is no TestMain.
//
// # Templates
//
// Databases are clones of a template that is migrated once per server and named by the hash of the migrations, so that
// two branches can share a server.
package storetest
