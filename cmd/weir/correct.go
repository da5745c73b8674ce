package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

func newCorrect() *cobra.Command {
	var f askFlags
	var expects string
	cmd := &cobra.Command{
		Use:   "correct SCREENING FILE|-",
		Short: "Correct an earlier decision through the review gate",
		Long: "Sends the text of FILE as a correction of a screening. The review gate rejects\n" +
			"what tries to change who the model is, and what says nothing. An accepted\n" +
			"correction is a reviewed example; a curator then judges it.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(cmd.InOrStdin(), args[1])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			body := client.CorrectionRequest{ScreeningID: args[0], Text: string(text)}
			if expects != "" {
				term, finding, ok := strings.Cut(expects, "=")
				if !ok {
					return exitWith(exitUsage, errors.New("--expects is written TERM=violated, TERM=upheld or TERM=not_checkable"))
				}
				body.Expects = &review.Expectation{Term: term, Finding: screening.State(finding)}
			}
			return sendCorrection(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Correction, error) { return c.Correct(ctx, body) })
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&expects, "expects", "", "what a term should find on the corrected spec: TERM=violated|upheld|not_checkable")
	cmd.AddCommand(newJudge())
	return cmd
}

func newJudge() *cobra.Command {
	var f askFlags
	var status, reason string
	cmd := &cobra.Command{
		Use:   "judge CORRECTION",
		Short: "Give a correction its epistemic status; for curators, never for the author",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sendCorrection(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Correction, error) {
				return c.Judge(ctx, args[0], status, reason)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "speculative, coherent, contested or falsified")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

// sendCorrection has a correction made or judged, and ends with exitBlock when the
// review gate rejects it.
func sendCorrection(cmd *cobra.Command, f *askFlags, request func(context.Context, *client.Client) (*client.Correction, error)) error {
	var kept *client.Correction
	err := ask(cmd, f, func(ctx context.Context, c *client.Client) (_ *client.Correction, err error) {
		kept, err = request(ctx, c)
		return kept, err
	}, func(out *lines, k *client.Correction) {
		out.put("%s  %s", strings.ToUpper(printable(string(k.Outcome))), printable(k.ID))
		if len(k.Rules) > 0 {
			out.wrap("  rules        ", "               ", strings.Join(k.Rules, ", "))
		}
		out.put("  status       %s", printable(string(k.Status)))
		out.put("  review hash  %s", printable(k.Hash))
	})
	if err == nil && f.output != "json" && kept.Outcome != review.CorrectionAccepted {
		return exitWith(exitBlock, nil)
	}
	return err
}
