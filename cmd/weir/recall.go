package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
)

func newRecall() *cobra.Command {
	var f askFlags
	var sum, uri, reason string
	cmd := &cobra.Command{
		Use:   "recall (--sha256 HEX | --uri URI) --reason TEXT",
		Short: "Take data out of use: nothing that comes from it is admitted",
		Long: "Takes data out of use, by the SHA-256 of an input or by its URI. From then on\n" +
			"nothing that names it, or comes from it by the lineage of any stored spec, is\n" +
			"admitted in the project: admissions are revoked, reviews end blocked, new\n" +
			"submissions are blocked. Until it is lifted. Everybody who sees a screening that\n" +
			"falls under it sees the reason.\n\n" +
			"Needs a key of scope policy for a declared person or service; a person lifts.\n" +
			"Exit codes: 0 done, 2 refused, 20 the gate did not answer.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body := client.RecallRequest{Reason: reason}
			switch {
			case (sum == "") == (uri == ""):
				return exitWith(exitUsage, errors.New("give --sha256 or --uri"))
			case uri != "":
				body.URI = uri
			default:
				if err := body.SHA256.UnmarshalText([]byte(strings.TrimPrefix(sum, "sha256:"))); err != nil {
					return exitWith(exitUsage, fmt.Errorf("--sha256 must be a SHA-256 in hex: %w", err))
				}
			}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Recall, error) { return c.Recall(ctx, body) }, showOneRecall)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&sum, "sha256", "", "SHA-256 of the input's bytes")
	cmd.Flags().StringVar(&uri, "uri", "", "URI or other name of the input, as specs write it")
	cmd.Flags().StringVar(&reason, "reason", "", "why; everybody who sees a screening of it sees it")
	cmd.AddCommand(newRecallLift(), newRecallList(), newRecallShow())
	return cmd
}

func newRecallLift() *cobra.Command {
	var f askFlags
	var reason string
	cmd := &cobra.Command{
		Use:   "lift ID --reason TEXT",
		Short: "Let recalled data be used again; what the recall ended stays ended",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if uuid.Validate(args[0]) != nil {
				return exitWith(exitUsage, errors.New("that is not the id of a recall"))
			}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Recall, error) {
				return c.LiftRecall(ctx, args[0], reason)
			}, showOneRecall)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func newRecallList() *cobra.Command {
	var f askFlags
	var live bool
	var limit int
	var cursor string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List recalls, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.RecallList, error) {
				return c.Recalls(ctx, live, cursor, limit)
			}, func(out *lines, answer *client.RecallList) {
				if len(answer.Recalls) == 0 {
					out.put("no recalls")
				}
				for i := range answer.Recalls {
					if i > 0 {
						out.put("")
					}
					showRecall(out, &answer.Recalls[i])
				}
				if answer.Next != "" {
					out.put("")
					out.put("more with --cursor %s", printable(answer.Next))
				}
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "only those in force")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, at most 500")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on after an earlier list")
	return cmd
}

func isRecalled(r *client.RecallRef) bool { return r != nil && r.LiftedAt == nil }

func recallWords(r *client.RecallRef) string {
	switch {
	case r == nil:
		return "Data that it comes from was recalled."
	case r.LiftedAt != nil:
		return fmt.Sprintf("Ended by recall %s, which is lifted. Submit it again.", r.ID)
	}
	return fmt.Sprintf("Data that it comes from was recalled at %s: %s (recall %s)", r.MadeAt.UTC().Format(minute), r.Reason, r.ID)
}

func recallData(r *client.RecallState) string {
	if r.SHA256 != "" {
		return "sha256:" + r.SHA256
	}
	return r.URI
}

func showOneRecall(out *lines, r *client.Recall) { showRecall(out, &r.RecallState) }

func showRecall(out *lines, r *client.RecallState) {
	p := paintFor(out.w)
	word, colour := "RECALLED", red
	if r.LiftedAt != nil {
		word, colour = "LIFTED", yellow
	}
	out.wrap(p.bold(colour, word)+"  ", "", recallData(r))
	out.wrap("  ", "  ", fmt.Sprintf("at %s by %s: %s", r.MadeAt.UTC().Format(minute), r.Actor, r.Reason))
	if r.LiftedAt != nil {
		out.wrap("  ", "  ", fmt.Sprintf("lifted at %s by %s: %s", r.LiftedAt.UTC().Format(minute), r.LiftedBy, r.LiftReason))
	}
	said := fmt.Sprintf("%s revoked, %s blocked", count(r.Revoked, "admission", "admissions"), count(r.Blocked, "screening", "screenings"))
	if !r.Settled {
		said += " so far; in force for all of them"
	}
	out.wrap("  ", "  ", said)
	out.put("  recall %s", printable(r.ID))
}

func stepWords(s client.RecallStep) string {
	if s.Text != "" {
		return s.Text
	}
	return "(erased, " + s.Fingerprint[:min(12, len(s.Fingerprint))] + ")"
}

func newRecallShow() *cobra.Command {
	var f askFlags
	var graph string
	cmd := &cobra.Command{
		Use:   "show ID [--graph FILE]",
		Short: "Show every screening that falls under a recall, and how",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(f.output); err != nil {
				return err
			}
			if uuid.Validate(args[0]) != nil {
				return exitWith(exitUsage, errors.New("that is not the id of a recall"))
			}
			draw, err := graphFormat(graph)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			r, err := readRecallReport(cmd, &f, args[0])
			if err != nil {
				return err
			}
			if draw != nil {
				if err := os.WriteFile(graph, []byte(draw(r)), 0o644); err != nil {
					return exitWith(exitUsage, fmt.Errorf("graph: %w", err))
				}
			}
			if f.output == "json" {
				raw, err := json.Marshal(r)
				if err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), raw)
			}
			out := &lines{w: cmd.OutOrStdout()}
			renderRecall(out, r)
			return out.err
		},
	}
	f.add(cmd)
	f.timeout = time.Minute
	cmd.Flags().Lookup("timeout").DefValue = f.timeout.String()
	cmd.Flags().StringVar(&graph, "graph", "", "also draw it: a file that ends in .dot (Graphviz) or .mmd (Mermaid)")
	return cmd
}

// readRecallReport reads page after page, each within the time of one.
func readRecallReport(cmd *cobra.Command, f *askFlags, id string) (all *client.RecallReport, err error) {
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	for next := ""; ; {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		page, err := c.RecallReport(ctx, id, next, 500)
		cancel()
		if err != nil {
			return nil, err
		}
		if page.Next != "" && page.Next == next {
			return nil, noAnswer(errors.New("the report does not go on"))
		}
		if all == nil {
			all = page
		} else {
			all.Screenings = append(all.Screenings, page.Screenings...)
		}
		if next, all.Next = page.Next, ""; next == "" {
			return all, nil
		}
	}
}

func renderRecall(out *lines, r *client.RecallReport) {
	showRecall(out, &r.RecallState)
	out.put("")
	if r.Total == 0 {
		out.put("  nothing that is stored uses it or comes from it")
	} else {
		out.put("  %s", count(len(r.Screenings), "screening uses it or comes from it", "screenings use it or come from it"))
		out.put("")
		out.put("  %-10s  %-7s  %-36s  %s", "STATUS", "HOW", "SCREENING", "CREATED")
	}
	for _, h := range r.Screenings {
		out.put("  %-10s  %-7s  %-36s  %s", printable(h.Status), printable(h.How), printable(h.Screening), h.CreatedAt.UTC().Format(time.DateTime))
		out.wrap("      ", "", h.RunRef+", submitted by "+h.Submitter)
		if h.How != "uses" {
			out.wrap("      ", "        ", "by "+pathWords(h.Path))
		}
	}
	if r.Unknown > 0 {
		out.put("")
		out.wrap("  ", "  ", fmt.Sprintf("Of %s nothing is known: the bytes were erased before lineage was kept. None of them is admitted before it is submitted again.",
			count(r.Unknown, "spec", "specs")))
	}
}

// pathWords gives a way in one line; of a long one its ends.
func pathWords(path []client.RecallStep) string {
	const ends = 4
	var words []string
	for i, step := range path {
		if len(path) > 2*ends+1 && i >= ends && i < len(path)-ends {
			if i == ends {
				words = append(words, fmt.Sprintf("(%d more)", len(path)-2*ends))
			}
			continue
		}
		words = append(words, stepWords(step))
	}
	return strings.Join(words, " > ")
}
