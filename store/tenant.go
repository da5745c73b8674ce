package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tenant is the database as requests of one project see it. Its connections have
// a role of their own and the project set, and every table that holds what is a
// project's has a policy that shows them its rows alone, whatever a statement asks
// for. Whoever works over all projects uses Store.every instead, and says so by that.
type tenant struct {
	pool    *pgxpool.Pool
	project string
	nobody  bool // the project that a connection has is left as it is
}

// of gives the database as requests of a project see it.
func (s *Store) of(project string) tenant { return tenant{pool: s.requests, project: project} }

// nobody is for what is asked before anybody is known or is about no project: the
// clock, hashes of the log, functions that answer for one secret. Of a table with a
// policy it would show the rows of whoever had the connection before, so it must
// not read one; a statement that sets the project itself may.
func (s *Store) nobody() tenant { return tenant{pool: s.requests, nobody: true} }

// wanted is the key of the tenant in the context of who takes a connection.
type wanted struct{}

func (t tenant) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, wanted{}, t)
}

func (t tenant) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.pool.Query(t.context(ctx), sql, args...)
}

func (t tenant) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.pool.QueryRow(t.context(ctx), sql, args...)
}

func (t tenant) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.pool.Exec(t.context(ctx), sql, args...)
}

func (t tenant) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.pool.SendBatch(t.context(ctx), b)
}

func (t tenant) Begin(ctx context.Context) (pgx.Tx, error) { return t.pool.Begin(t.context(ctx)) }

func (t tenant) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	return t.pool.BeginTx(t.context(ctx), o)
}

// projectSetting is what the policies compare a row's project with, see tenant() in
// the migration that has them.
const projectSetting = `weir.project`

// setProjectSQL sets the project until the transaction ends or, if $2 is false,
// until it is set again.
const setProjectSQL = `select set_config('` + projectSetting + `', $1, $2)`

// giveProject is called for each connection that is taken for a request. One keeps
// its project, so that a gate of one project pays for it once.
func giveProject(ctx context.Context, conn *pgx.Conn) (bool, error) {
	t, ok := ctx.Value(wanted{}).(tenant)
	if !ok { // cannot be: only of and nobody lead to these connections
		return true, errors.New("a connection of requests was taken for no project")
	}
	has := conn.PgConn().CustomData()
	if t.nobody || has[projectSetting] == t.project {
		return true, nil
	}
	delete(has, projectSetting)
	if _, err := conn.Exec(ctx, setProjectSQL, t.project, false); err != nil {
		return false, err
	}
	has[projectSetting] = t.project
	return true, nil
}

// ErrTenants: nothing in the database would keep projects apart, so no request is
// answered.
var ErrTenants = errors.New("the database does not keep projects apart")

// lowerRights makes a new connection one of requests: it gets the role that the
// policies bind. Not by a parameter of the start-up, which a pooler may drop.
func lowerRights(ctx context.Context, conn *pgx.Conn) error {
	var bound bool
	err := conn.QueryRow(ctx, `select coalesce(row_security_active(to_regclass('screening')), false) from set_config('role', gate_role(), false)`,
		pgx.QueryExecModeSimpleProtocol).Scan(&bound)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && (pg.Code == "42704" || pg.Code == "42501"): // undefined_object, insufficient_privilege
		return fmt.Errorf("%w: %s; weir migrate up says how to make the role", ErrTenants, pg.Message)
	case err != nil:
		return err
	case !bound:
		return fmt.Errorf("%w: the role that requests use ignores row-level security; take superuser and bypassrls from it", ErrTenants)
	}
	return nil
}

// keepRights looks at a new connection that works over all projects: with a role that
// the policies bind, it would find nothing and say nothing.
func keepRights(ctx context.Context, conn *pgx.Conn) error {
	var bound bool
	err := conn.QueryRow(ctx, `select coalesce(row_security_active(to_regclass('screening')), false)`, pgx.QueryExecModeSimpleProtocol).Scan(&bound)
	if err == nil && bound {
		return fmt.Errorf("%w: the database's user does not own weir's tables, and so sees none of their rows; connect as the owner", ErrTenants)
	}
	return err
}
