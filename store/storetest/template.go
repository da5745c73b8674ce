package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"

	"weir/migrations"
)

var template struct {
	sync.Mutex
	name string // once this process has seen it complete
}

// migrated returns the name of a database at the head of the migrations, to be cloned. The first process to ask makes it.
func migrated(ctx context.Context, dsn string) (string, error) {
	template.Lock()
	defer template.Unlock()
	if template.name != "" {
		return template.name, nil
	}
	name, err := templateName()
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // gives the lock back too
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext($1))`, name); err != nil {
		return "", err
	}
	// The mark is set last: a database of this name without it is what a killed process left.
	var complete bool
	err = conn.QueryRow(ctx, `select datistemplate from pg_database where datname = $1`, name).Scan(&complete)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", err
	}
	if !complete {
		if err := build(ctx, conn, dsn, name); err != nil {
			return "", err
		}
	}
	template.name = name
	return name, nil
}

func templateName() (string, error) {
	names, err := fs.Glob(migrations.FS, "*.sql") // sorted
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range names {
		sql, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(sql), sql)
	}
	return fmt.Sprintf("weir_template_%x", hash.Sum(nil)[:8]), nil
}

func build(ctx context.Context, conn *pgx.Conn, dsn, name string) error {
	for _, sql := range []string{
		`drop database if exists ` + name,
		`create database ` + name + ` template template0`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := migrate(ctx, withDatabase(dsn, name)); err != nil {
		return err
	}
	// Closed to sessions, because a database cannot be cloned while anybody is connected to it.
	_, err := conn.Exec(ctx, `alter database `+name+` with is_template true allow_connections false`)
	return err
}

// migrate runs the up files. Not with store.Migrate: tests of store import this package.
func migrate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	names, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		return err
	}
	head := 0
	for _, name := range names {
		sql, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return err
		}
		if head, err = strconv.Atoi(name[:6]); err != nil {
			return fmt.Errorf("%s: name does not start with a version: %w", name, err)
		}
		// The simple protocol takes the file as one batch, one implicit transaction, as in production.
		if _, err := conn.PgConn().Exec(ctx, string(sql)).ReadAll(); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	// What store.Migrate does after the files.
	if _, err := conn.Exec(ctx, `select let_requests_in()`); err != nil {
		return err
	}
	// What the migration library would leave, so that store.Migrate finds nothing to do.
	_, err = conn.Exec(ctx, `create table schema_migrations (version bigint not null primary key, dirty boolean not null)`)
	if err == nil {
		_, err = conn.Exec(ctx, `insert into schema_migrations (version, dirty) values ($1, false)`, head)
	}
	return err
}
