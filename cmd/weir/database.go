package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"weir/store"
	"weir/store/localpg"
)

// database is where a command keeps or looks things up: one with a URL, or a
// private Postgres in the state directory.
type database struct {
	dsn     string
	private *localpg.Server // nil for one with a URL, and when another process runs it
	dir     string          // state directory of the private one
}

// dsnFile lets the commands of one machine find a private server that is
// running; it holds no secret, the socket is closed to others.
const dsnFile = "dsn"

// noDatabaseError: there is no private Postgres yet, and who only looks makes none.
type noDatabaseError struct{ dir string }

func (e *noDatabaseError) Error() string {
	return fmt.Sprintf("there is no database yet in %s, and DATABASE_URL is not set; weir serve makes one, or name another --state-dir", e.dir)
}

// databasePlace is where the database is, as settings name it.
type databasePlace struct {
	urlFile string // holds the URL; empty: DATABASE_URL, which may be empty too
	dir     string // of the private Postgres; empty: localpg.DefaultDir
}

// flags adds the settings. when heads what they are for ("with --database: "), or
// is empty.
func (p *databasePlace) flags(f *pflag.FlagSet, when string) {
	f.StringVar(&p.urlFile, "database-url-file", "", when+"file with the URL of the Postgres to use (default: the URL itself in $DATABASE_URL)")
	f.StringVar(&p.dir, "state-dir", "", when+"directory of the private Postgres, when no URL is given (default /var/lib/weir\nfor root, else ~/.local/state/weir)")
	useSettings(f, "database-url-file", "state-dir")
}

// given reports whether the command line says where the database is.
func (p *databasePlace) given(f *pflag.FlagSet) bool {
	return f.Changed("database-url-file") || f.Changed("state-dir")
}

// url is the URL of a database that weir does not run; empty for a private one.
func (p databasePlace) url() (string, error) {
	dsn := os.Getenv("DATABASE_URL")
	if p.urlFile != "" {
		data, err := os.ReadFile(p.urlFile)
		if err != nil {
			return "", fmt.Errorf("database URL: %w", err)
		}
		if dsn = strings.TrimSpace(string(data)); dsn == "" {
			return "", fmt.Errorf("database URL: %s is empty", p.urlFile)
		}
	}
	if dsn == "" {
		return "", nil
	}
	return dsn, store.CheckDSN(dsn)
}

// privateDir is the directory of the private Postgres.
func (p databasePlace) privateDir() (string, error) {
	if p.dir != "" {
		return p.dir, nil
	}
	return localpg.DefaultDir()
}

// lookDatabase is openDatabase for commands that only look: it makes no database.
// The error is a *noDatabaseError where there is none.
func lookDatabase(ctx context.Context, at databasePlace, log *slog.Logger) (*database, error) {
	dsn, err := at.url()
	if err != nil {
		return nil, err
	}
	if dsn == "" {
		dir, err := at.privateDir()
		if err != nil {
			return nil, err
		}
		if !localpg.Exists(dir) {
			return nil, &noDatabaseError{dir}
		}
	}
	return openDatabase(ctx, at, log)
}

// openDatabase finds, makes or starts the database. A private one that another process
// of this machine runs is used through it.
func openDatabase(ctx context.Context, at databasePlace, log *slog.Logger) (*database, error) {
	dsn, err := at.url()
	if err != nil || dsn != "" {
		return &database{dsn: dsn}, err
	}
	dir, err := at.privateDir()
	if err != nil {
		return nil, err
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

// openStore migrates the database, opens it, and works out what a migration left to do.
func (d *database) openStore(ctx context.Context, cfg store.Config) (*store.Store, error) {
	if err := store.Migrate(ctx, d.dsn, cfg.Log); err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	st, err := store.Open(ctx, d.dsn, cfg)
	if err != nil {
		return nil, err
	}
	if err := linkSpecs(ctx, st, cfg.Log); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// linkSpecs reads the specs that were kept before their lineage was: without it a
// recall would miss what comes from them.
func linkSpecs(ctx context.Context, st *store.Store, log *slog.Logger) error {
	read, told := 0, 0
	err := st.LinkSpecs(ctx, func(n int) {
		const often = 10_000
		if read += n; read-told >= often {
			told = read
			log.Info("working out the lineage of stored specs", "read", read)
		}
	})
	if read > 0 {
		log.Info("worked out the lineage of stored specs", "read", read)
	}
	return err
}
