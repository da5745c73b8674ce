package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/review"
	"weir/screening"
)

func newCorrect() *cobra.Command {
	var conn clientFlags
	var expects, output string
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
			body := map[string]any{"screening_id": args[0], "correction_text": string(text)}
			if expects != "" {
				term, finding, ok := strings.Cut(expects, "=")
				if !ok {
					return exitWith(exitUsage, errors.New("--expects is written TERM=violated, TERM=upheld or TERM=not_checkable"))
				}
				body["expects"] = review.Expectation{Term: term, Finding: screening.State(finding)}
			}
			return sendCorrection(cmd, conn, "/v1/corrections", body, output)
		},
	}
	conn.add(cmd)
	cmd.Flags().StringVar(&expects, "expects", "", "what a term should find on the corrected spec: TERM=violated|upheld|not_checkable")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	cmd.AddCommand(newJudge())
	return cmd
}

func newJudge() *cobra.Command {
	var conn clientFlags
	var status, reason, output string
	cmd := &cobra.Command{
		Use:   "judge CORRECTION",
		Short: "Give a correction its epistemic status; for curators, never for the author",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sendCorrection(cmd, conn, "/v1/corrections/"+url.PathEscape(args[0])+"/status",
				map[string]any{"status": status, "reason": reason}, output)
		},
	}
	conn.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "speculative, coherent, contested or falsified")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

func sendCorrection(cmd *cobra.Command, conn clientFlags, path string, body any, output string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	c, err := conn.client()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return exitWith(exitFailed, err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), conn.timeout)
	defer cancel()
	data, err := c.ask(ctx, http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, raw)
	if err != nil {
		return err
	}
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), data)
	}
	var kept struct {
		ID      string                   `json:"id"`
		Outcome review.CorrectionOutcome `json:"outcome"`
		Rules   []string                 `json:"rules"`
		Status  review.EpistemicStatus   `json:"epistemic_status"`
		Hash    string                   `json:"review_hash"`
	}
	if err := json.Unmarshal(data, &kept); err != nil || kept.ID == "" {
		return exitWith(exitNoAnswer, fmt.Errorf("%w: the answer was not a correction", errNoAnswer))
	}
	out := &lines{w: cmd.OutOrStdout()}
	out.put("%s  %s", strings.ToUpper(string(kept.Outcome)), kept.ID)
	if len(kept.Rules) > 0 {
		out.put("  rules        %s", strings.Join(kept.Rules, ", "))
	}
	out.put("  status       %s", kept.Status)
	out.put("  review hash  %s", kept.Hash)
	if out.err == nil && kept.Outcome != review.CorrectionAccepted {
		return exitWith(exitBlock, nil)
	}
	return out.err
}
