package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/console"
	"weir/review"
	"weir/screening"
	"weir/store"
)

func newConsole() *cobra.Command {
	cmd := group("console", "Let people into the reviewers' pages")
	var person, project, server string
	var at databasePlace
	var scopes []string
	link := &cobra.Command{
		Use:   "link",
		Short: "Make a login link for a person; it works once, for 10 minutes",
		Long: "Makes a login link for a person of people.yaml. It works once, within 10\n" +
			"minutes. Works on the database, as weir key does: whoever can run it can\n" +
			"already make keys.",
		Args: cobra.NoArgs,
		RunE: withStore(openDatabase, &at, func(cmd *cobra.Command, _ []string, st *store.Store) error {
			parsed, err := review.ParseScopes(scopes)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			if screening.IsBlank(person) || !screening.IsID(project) {
				return exitWith(exitUsage, fmt.Errorf("--for must name a person, and --project be an id: letters, digits and . _ -"))
			}
			token, digest := console.NewLink()
			if err := st.CreateLoginLink(cmd.Context(), digest, review.Principal{Subject: person, Project: project, Scopes: parsed}); err != nil {
				return exitWith(exitFailed, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(server, "/")+console.LinkPath+token)
			return err
		}),
	}
	at.flags(link.Flags(), "")
	link.Flags().StringVar(&person, "for", "", "person of people.yaml whom the link signs in")
	link.Flags().StringSliceVar(&scopes, "scopes", []string{string(review.ScopeReview)}, "rights of the session: review, audit, policy, curate")
	link.Flags().StringVar(&project, "project", "default", "project that the session is for")
	link.Flags().StringVar(&server, "base-url", "http://127.0.0.1:8080", "where the person reaches the gate")
	useSettings(link.Flags(), "base-url")
	if err := link.MarkFlagRequired("for"); err != nil {
		panic(err) // the flag is declared above
	}
	cmd.AddCommand(link)
	return cmd
}
