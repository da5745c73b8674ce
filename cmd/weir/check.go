package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"weir/review"
	"weir/screening"
)

func newCheck() *cobra.Command {
	var (
		conn    clientFlags
		offline bool
		packs   []string
		asOf    string
		output  string
		wait    time.Duration
		example string
		specOut string
	)
	cmd := &cobra.Command{
		Use:   "check SPEC",
		Short: "Screen a training spec and exit with the outcome",
		Long: "Screens a training spec (a file, or - for standard input) and exits 0 when it is\n" +
			"admitted, 10 when it is blocked, 11 when people have to decide. With --offline\n" +
			"nothing is kept and no server is needed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, reportFormats...); err != nil {
				return err
			}
			raw, err := readInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			from := source{file: args[0], packs: packs}
			if (example == "") != (specOut == "") {
				return exitWith(exitUsage, errors.New("--examples and --spec-out go together: the spec with the result is the one to train on"))
			}
			if example != "" {
				found, err := screenExamples(cmd.Context(), cmd.ErrOrStderr(), example)
				if err != nil {
					return err
				}
				if raw, err = withExamples(raw, found, specOut); err != nil {
					return err
				}
				from.file = specOut
			}
			from.raw = raw
			if offline {
				s, err := decideOffline(raw, packs, asOf)
				if err != nil {
					return err
				}
				return answer(cmd.OutOrStdout(), s, output, from)
			}
			c, err := conn.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), conn.timeout)
			defer cancel()
			s, err := c.submit(ctx, raw)
			if err != nil {
				return err
			}
			if wait > 0 && s.Status == review.StatusPending {
				if s, err = waitFor(cmd.Context(), c, s.ID, wait, conn.timeout); err != nil {
					return err
				}
			}
			return answer(cmd.OutOrStdout(), s, output, from)
		},
	}
	conn.add(cmd)
	cmd.Flags().BoolVar(&offline, "offline", false, "decide here, without a server; nothing is kept")
	cmd.Flags().StringSliceVar(&packs, "packs", defaultPacks, "with --offline: packs beside the safety floor; else where reports look terms up")
	cmd.Flags().StringVar(&asOf, "as-of", "", "with --offline: decide as of this day, YYYY-MM-DD (default today, UTC)")
	cmd.Flags().StringVar(&output, "output", "text", formatsHelp)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for people to decide")
	cmd.Flags().StringVar(&example, "examples", "", "screen this file of training examples first (chats or plain text; JSON Lines or Parquet)")
	cmd.Flags().StringVar(&specOut, "spec-out", "", "with --examples: where to write the spec that carries the result, which is what is screened")
	return cmd
}

func newWait() *cobra.Command {
	var conn clientFlags
	var output string
	var atMost time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a screening is decided and exit with the outcome",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			c, err := conn.client()
			if err != nil {
				return err
			}
			s, err := waitFor(cmd.Context(), c, args[0], atMost, conn.timeout)
			if err != nil {
				return err
			}
			return answer(cmd.OutOrStdout(), s, output, source{})
		},
	}
	conn.add(cmd)
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	cmd.Flags().DurationVar(&atMost, "for", time.Hour, "wait at most this long, then exit 11 if it is still pending")
	return cmd
}

// waitFor polls until the status is final or the time is up; then it gives what
// it read last. Each request has its own time limit: a wait never hangs.
func waitFor(ctx context.Context, c *client, id string, atMost, each time.Duration) (*screeningAnswer, error) {
	const poll = 30 * time.Second
	deadline := time.Now().Add(atMost)
	for {
		left := max(0, min(poll, time.Until(deadline)))
		reqCtx, cancel := context.WithTimeout(ctx, left+each)
		s, err := c.get(reqCtx, id, left.Truncate(time.Millisecond))
		cancel()
		if err != nil || s.Status.Final() || !time.Now().Before(deadline) {
			return s, err
		}
	}
}

// answer prints a screening and ends with its exit code.
func answer(w io.Writer, s *screeningAnswer, output string, from source) error {
	var err error
	switch output {
	case "json":
		err = printJSON(w, s.raw)
	case "text":
		err = renderScreening(w, s)
	default:
		err = newReport(s, from).write(w, output)
	}
	return ending(s, err)
}

// ending is the error that carries a screening's exit code, after it was shown.
func ending(s *screeningAnswer, err error) error {
	if err != nil {
		return exitWith(exitFailed, err)
	}
	if code := exitCode(s.Status); code != exitAdmit {
		return exitWith(code, nil)
	}
	return nil
}

func decideOffline(raw []byte, packs []string, asOf string) (*screeningAnswer, error) {
	day := screening.Day(time.Now().UTC().Format(time.DateOnly))
	if asOf != "" {
		var err error
		if day, err = screening.ParseDay(asOf); err != nil {
			return nil, exitWith(exitUsage, err)
		}
	}
	v, err := loadVocabulary(packs, false, false)
	if err != nil {
		return nil, err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	d, err := screening.Classify(spec, v, day)
	if err != nil {
		return nil, exitWith(exitUsage, err) // a hedge has no statement to go into
	}
	status := map[screening.Outcome]review.Status{screening.OutcomeAdmit: review.StatusAdmitted,
		screening.OutcomeEscalate: review.StatusPending, screening.OutcomeBlock: review.StatusBlocked}[d.Outcome]
	s := &screeningAnswer{Status: status, RunRef: spec.RunRef, Decision: d}
	if s.raw, err = json.Marshal(map[string]any{"offline": true, "run_ref": spec.RunRef, "decision": d}, json.Deterministic(true)); err != nil {
		return nil, exitWith(exitFailed, err)
	}
	return s, nil
}

func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	const most = screening.MaxDocumentBytes + 1 // one more than allowed, so that too much is seen
	return io.ReadAll(io.LimitReader(stdin, most))
}

// checkOutput refuses an output that a command has not; every one has text and json.
func checkOutput(output string, more ...string) error {
	formats := append([]string{"text", "json"}, more...)
	if !slices.Contains(formats, output) {
		return exitWith(exitUsage, fmt.Errorf("--output must be %s", oneOf(formats)))
	}
	return nil
}

// oneOf lists words: "text, json or junit".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// writeJSON prints any value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return exitWith(exitFailed, err)
	}
	return printJSON(w, raw)
}

func printJSON(w io.Writer, raw jsontext.Value) error {
	v := raw.Clone()
	if err := v.Indent(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, string(v))
	return err
}
