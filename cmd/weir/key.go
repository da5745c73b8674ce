package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/review"
	"weir/screening"
	"weir/store"
)

func newKey() *cobra.Command {
	cmd := group("key", "Make, list and revoke API keys")
	var at databasePlace
	at.flags(cmd.PersistentFlags(), "")

	var subject, project string
	var scopes []string
	var expires time.Duration
	create := &cobra.Command{
		Use:   "create",
		Short: "Make a key; it is shown once",
		Args:  cobra.NoArgs,
		RunE: withStore(openDatabase, &at, func(cmd *cobra.Command, _ []string, st *store.Store) error {
			parsed, err := review.ParseScopes(scopes)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			if !screening.IsID(subject) || !screening.IsID(project) {
				return exitWith(exitUsage, fmt.Errorf("--for and --project must be ids: letters, digits and . _ -"))
			}
			if expires < 0 {
				return exitWith(exitUsage, fmt.Errorf("--expires-in must not be negative"))
			}
			token, key, err := review.NewAPIKey()
			if err != nil {
				return exitWith(exitFailed, err)
			}
			if err := st.CreateKey(cmd.Context(), store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: project,
				Subject: subject, Scopes: parsed, ExpiresIn: expires}); err != nil {
				return exitWith(exitFailed, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		}),
	}
	create.Flags().StringVar(&subject, "for", "", "person or service of people.yaml that the key speaks for")
	create.Flags().StringSliceVar(&scopes, "scopes", nil, "rights of the key: submit, review, audit, policy, curate, admin")
	create.Flags().StringVar(&project, "project", "default", "project that the key belongs to")
	create.Flags().DurationVar(&expires, "expires-in", 0, "how long the key works (default: until it is revoked)")
	for _, name := range []string{"for", "scopes"} {
		if err := create.MarkFlagRequired(name); err != nil {
			panic(err) // the flags are declared three lines up
		}
	}

	list := &cobra.Command{Use: "list", Short: "List the keys, without their secrets", Args: cobra.NoArgs,
		RunE: withStore(lookDatabase, &at, func(cmd *cobra.Command, _ []string, st *store.Store) error {
			keys, err := st.Keys(cmd.Context())
			if err != nil {
				return exitWith(exitFailed, err)
			}
			return printKeys(cmd.OutOrStdout(), keys)
		})}

	revoke := &cobra.Command{Use: "revoke ID", Short: "End a key at once", Args: cobra.ExactArgs(1),
		RunE: withStore(lookDatabase, &at, func(cmd *cobra.Command, args []string, st *store.Store) error {
			if err := st.RevokeKey(cmd.Context(), args[0]); err != nil {
				return exitWith(exitFailed, fmt.Errorf("revoke key %s: %w", args[0], err))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "revoked %s\n", args[0])
			return err
		})}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

// withStore opens the database, by openDatabase or lookDatabase, for a command that works on it, and closes it again.
func withStore(open func(context.Context, databasePlace, *slog.Logger) (*database, error), at *databasePlace, run func(cmd *cobra.Command, args []string, st *store.Store) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		log := slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute) // a private server may have to be made first
		defer cancel()
		cmd.SetContext(ctx)
		db, err := open(ctx, *at, log)
		if err != nil {
			return exitWith(exitFailed, err)
		}
		defer func() {
			if cerr := db.close(context.WithoutCancel(ctx)); cerr != nil && err == nil {
				err = exitWith(exitFailed, cerr)
			}
		}()
		st, err := db.openStore(ctx, store.Config{Log: log})
		if err != nil {
			return exitWith(exitFailed, err)
		}
		defer st.Close()
		return run(cmd, args, st)
	}
}

func printKeys(w io.Writer, keys []store.KeyInfo) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tPROJECT\tFOR\tSCOPES\tCREATED\tLAST USED\tSTATE")
	for _, k := range keys {
		state, used := "live", "never"
		switch {
		case k.RevokedAt != nil:
			state = "revoked"
		case k.ExpiresAt != nil:
			state = "until " + k.ExpiresAt.UTC().Format(time.DateOnly)
		}
		if k.LastUsedAt != nil {
			used = k.LastUsedAt.UTC().Format(time.DateOnly)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Project, k.Subject, strings.Join(k.Scopes, ","),
			k.CreatedAt.UTC().Format(time.DateOnly), used, state)
	}
	return tw.Flush()
}
