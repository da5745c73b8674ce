package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/store/storetest"
)

// connect looks into a database past the program.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func emptyDatabase(t testing.TB) string { t.Helper(); return storetest.Empty(t) }
