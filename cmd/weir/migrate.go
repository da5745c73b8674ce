package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/store"
)

func newMigrate() *cobra.Command {
	cmd := group("migrate", "Bring the schema of DATABASE_URL up to date, or show its version")
	dsn := func() (string, error) {
		if v := os.Getenv("DATABASE_URL"); v != "" {
			if err := store.CheckDSN(v); err != nil {
				return "", exitWith(exitUsage, err)
			}
			return v, nil
		}
		return "", exitWith(exitUsage, errors.New("DATABASE_URL is not set; a private Postgres is migrated by weir serve itself"))
	}
	cmd.AddCommand(
		&cobra.Command{Use: "up", Short: "Apply what is missing; heals a migration that died", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				url, err := dsn()
				if err != nil {
					return err
				}
				if err := store.Migrate(cmd.Context(), url, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))); err != nil {
					return exitWith(exitFailed, err)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
				return err
			}},
		&cobra.Command{Use: "status", Short: "Show the schema version", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				url, err := dsn()
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
				defer cancel()
				st, err := store.Open(ctx, url, store.Config{})
				if err != nil {
					return exitWith(exitFailed, err)
				}
				defer st.Close()
				s, err := st.Schema(ctx)
				if err != nil {
					return exitWith(exitFailed, err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "version %d of %d, dirty %t, migrating %t\n", s.Version, s.Head, s.Dirty, s.Running); err != nil {
					return err
				}
				if !s.Ready() {
					return exitWith(exitFailed, nil)
				}
				return nil
			}},
	)
	return cmd
}
