// Package localpg runs a private Postgres server: the database of a weir that was not given one.
//
// It downloads nothing. It uses the server binaries already on the machine, keeps its files in one directory and listens
// on a unix socket only, in a directory that nobody else may enter. That is for trying weir out and for single-node use;
// anything bigger sets DATABASE_URL.
//
// # The state directory
//
//	DIR/lock       held with flock for the life of the server, holds the owner's pid
//	DIR/data       the database cluster
//	DIR/data.init  a cluster being created; renamed to data when complete, so that data is never half of one
//	DIR/run        the socket (a short path in the temp directory if DIR is too long for a socket address)
//
// A data directory is never deleted or overwritten, whatever is wrong with it: Start refuses and says why.
//
// # The server dies with its owner
//
// Postgres runs as a direct child, not through pg_ctl, which would let it outlive us. On Linux the kernel sends it a fast
// shutdown when this process dies, even by kill -9. Elsewhere an orphan may live on; the next Start then says so.
// The reverse is the caller's: Done tells that the server is gone.
//
// Postgres refuses to run as root. Started by root, the server runs as the account WEIR_PG_USER names, else postgres,
// else nobody, and only the directories that are its own are given to that account. The directories above them must let
// it pass.
package localpg
