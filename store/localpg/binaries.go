package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries says that this machine has no Postgres server to start.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries found: install them (Debian, Ubuntu: apt-get install postgresql) or set DATABASE_URL to a running server")

// minVersion is the oldest major version of Postgres that weir's SQL runs on.
const minVersion = 14

// search is where to look for binaries. Tests narrow it.
type search struct {
	env      func(string) string
	pgConfig func(context.Context) (string, error) // prints the directory that pg_config knows
	globs    []string
	lookPath func(string) (string, error)
}

var systemSearch = search{
	env: os.Getenv,
	pgConfig: func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
		return strings.TrimSpace(string(out)), err
	},
	globs: []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // the PostgreSQL project's RPMs
		"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on ARM
		"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	},
	lookPath: exec.LookPath,
}

// find returns the directory that holds initdb and postgres. A directory that was asked for by name is used or refused,
// never silently replaced by another.
func (s search) find(ctx context.Context, binDir string) (string, error) {
	source := "BinDir"
	if binDir == "" {
		binDir, source = s.env("WEIR_PG_BIN"), "WEIR_PG_BIN"
	}
	if binDir != "" {
		if !hasServer(binDir) {
			return "", fmt.Errorf("%s %s does not hold initdb and postgres: %w", source, binDir, ErrNoBinaries)
		}
		return binDir, nil
	}

	// pg_config comes with the client libraries too, so what it names need not have a server.
	if dir, err := s.pgConfig(ctx); err == nil && hasServer(dir) {
		return dir, nil
	}
	for _, glob := range s.globs {
		dirs, err := filepath.Glob(glob)
		if err != nil {
			return "", err
		}
		slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(firstNumber(b), firstNumber(a)) })
		for _, dir := range dirs {
			if hasServer(dir) {
				return dir, nil
			}
		}
	}
	if path, err := s.lookPath("postgres"); err == nil {
		// A link in PATH may stand alone; initdb is next to what it points to.
		if path, err = filepath.EvalSymlinks(path); err == nil && hasServer(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	return "", ErrNoBinaries
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

var number = regexp.MustCompile(`\d+`)

// firstNumber reads the major version from a path or a version text: 15 from "postgres (PostgreSQL) 15.18 (Debian)".
func firstNumber(s string) int {
	n, err := strconv.Atoi(number.FindString(s))
	if err != nil {
		return 0
	}
	return n
}

// majorVersion asks the postgres binary for its major version.
func majorVersion(ctx context.Context, binDir string) (int, error) {
	postgres := filepath.Join(binDir, "postgres")
	out, err := exec.CommandContext(ctx, postgres, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", postgres, err)
	}
	version := firstNumber(string(out))
	if version < minVersion {
		return 0, fmt.Errorf("%s is version %q, weir needs PostgreSQL %d or newer: install one, name its directory in WEIR_PG_BIN, or set DATABASE_URL",
			postgres, strings.TrimSpace(string(out)), minVersion)
	}
	return version, nil
}
