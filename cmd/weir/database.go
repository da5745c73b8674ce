package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"weir/store"
	"weir/store/localpg"
)

// database is where a command keeps or looks things up: DATABASE_URL, or a
// private Postgres in the state directory.
type database struct {
	dsn     string
	private *localpg.Server // nil for DATABASE_URL, and when another process runs it
	dir     string          // state directory of the private one
}

// dsnFile lets the commands of one machine find a private server that is
// running; it holds no secret, the socket is closed to others.
const dsnFile = "dsn"

// openDatabase finds or starts the database. A private one that another process
// of this machine runs is used through it.
func openDatabase(ctx context.Context, dir string, log *slog.Logger) (*database, error) {
	if dsn := os.Getenv("DATABASE_URL"); dsn != "" {
		return &database{dsn: dsn}, store.CheckDSN(dsn)
	}
	if dir == "" {
		var err error
		if dir, err = localpg.DefaultDir(); err != nil {
			return nil, err
		}
	}
	server, err := localpg.Start(ctx, localpg.Config{Dir: dir, Log: log})
	var inUse *localpg.InUseError
	if errors.As(err, &inUse) {
		dsn, rerr := os.ReadFile(filepath.Join(dir, dsnFile))
		if rerr != nil {
			return nil, err
		}
		return &database{dsn: strings.TrimSpace(string(dsn)), dir: dir}, nil
	}
	if err != nil {
		return nil, err
	}
	db := &database{dsn: server.DSN(), private: server, dir: dir}
	if err := os.WriteFile(filepath.Join(dir, dsnFile), []byte(db.dsn+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, db.close(ctx))
	}
	return db, nil
}

func (d *database) close(ctx context.Context) error {
	if d.private == nil {
		return nil
	}
	return d.private.Stop(ctx)
}

// died is closed when the private server ends; nil, and so never, for others.
func (d *database) died() <-chan struct{} {
	if d.private == nil {
		return nil
	}
	return d.private.Done()
}

// openStore migrates the database and opens it.
func (d *database) openStore(ctx context.Context, cfg store.Config) (*store.Store, error) {
	if err := store.Migrate(ctx, d.dsn, cfg.Log); err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	return store.Open(ctx, d.dsn, cfg)
}
