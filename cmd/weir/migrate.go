package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"weir/store"
)

func newMigrate() *cobra.Command {
	cmd := group("migrate", "Bring the schema of a database with a URL up to date, or show its version")
	var at databasePlace
	cmd.PersistentFlags().StringVar(&at.urlFile, "database-url-file", "", "file with the URL of the database (default: the URL itself in $DATABASE_URL)")
	useSettings(cmd.PersistentFlags(), "database-url-file")
	dsn := func() (string, error) {
		dsn, err := at.url()
		if err == nil && dsn == "" {
			err = errors.New("DATABASE_URL is not set; a private Postgres is migrated by weir serve itself")
		}
		if err != nil {
			return "", exitWith(exitUsage, err)
		}
		return dsn, nil
	}
	cmd.AddCommand(
		&cobra.Command{Use: "up", Short: "Apply what is missing; heals a migration that died", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				url, err := dsn()
				if err != nil {
					return err
				}
				log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
				st, err := (&database{dsn: url}).openStore(cmd.Context(), store.Config{Log: log})
				if err != nil {
					return exitWith(exitFailed, err)
				}
				st.Close()
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
