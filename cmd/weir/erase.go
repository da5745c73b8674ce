package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
)

func newErase() *cobra.Command {
	var f askFlags
	var spec, reason string
	cmd := &cobra.Command{
		Use:   "erase SCREENING --reason TEXT | erase --spec SHA256 --reason TEXT",
		Short: "Erase the bytes of a spec and of all its decisions",
		Long: "Erases the bytes of a spec and of every decision of it in the project, for good.\n" +
			"What is said about them stays: digests, findings, votes, and the log, which still\n" +
			"verifies. Not while a review of them is open or an admission lives. The reason is\n" +
			"in the log, which nothing can be erased from: put nothing personal into it.\n\n" +
			"Needs a key of scope admin for a declared person. Exit codes: 0 erased, 2 refused,\n" +
			"20 the gate did not answer.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := client.ErasureRequest{Reason: reason}
			switch {
			case (len(args) == 1) == (spec != ""):
				return exitWith(exitUsage, errors.New("give the id of a screening, or --spec"))
			case spec != "":
				if err := body.SpecSHA256.UnmarshalText([]byte(spec)); err != nil {
					return exitWith(exitUsage, fmt.Errorf("--spec must be a SHA-256 in hex: %w", err))
				}
			case uuid.Validate(args[0]) != nil:
				return exitWith(exitUsage, errors.New("that is not the id of a screening"))
			default:
				body.Screening = args[0]
			}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Erasure, error) { return c.Erase(ctx, body) },
				func(out *lines, done *client.Erasure) {
					out.put("ERASED  spec %s", printable(done.SpecSHA256))
					out.wrap("  ", "  ", fmt.Sprintf("the bytes of %s, at %s by %s", count(done.Screenings, "screening", "screenings"),
						done.Erased.At.UTC().Format(minute), done.Erased.Actor))
				})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&spec, "spec", "", "SHA-256 of the spec, instead of a screening")
	cmd.Flags().StringVar(&reason, "reason", "", "why; everybody who sees the screening sees it")
	return cmd
}
