package main

import (
	"context"
	"crypto/rand"
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

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

func newCheck() *cobra.Command {
	var (
		conn    gateFlags
		offline bool
		packs   []string
		asOf    string
		output  string
		wait    time.Duration
		example string
		specOut string
		admit   string
		onNone  string
		drafted importFlags
		batch   batchOptions
	)
	cmd := &cobra.Command{
		Use:   "check SPEC | check --batch DIR|FILE.ndjson",
		Short: "Screen a training spec and exit with the outcome",
		Long: "Screens a training spec (a file, or - for standard input) and exits 0 when it is\n" +
			"admitted, 10 when it is blocked, 11 when people have to decide. With --offline\n" +
			"nothing is kept and no server is needed. When the gate gives no answer it exits\n" +
			"20: closed. --on-unavailable=allow exits 0 then, warns, and keeps a record that\n" +
			"is reported with the next check.\n\n" +
			"SPEC can also be a file that weir import reads, such as the file of an Axolotl\n" +
			"run, with the metadata of its inputs after --with. What is screened then is the\n" +
			"draft, with its gaps; --spec-out keeps it.\n\n" +
			"With --batch every .yaml, .yml and .json file below a directory is screened, or\n" +
			"every line of a file, and the exit code is the worst of all: 10, 2, 20, 12, 11, 0\n" +
			"in this order, and 2 if there is no spec. After three specs in a row without an\n" +
			"answer the rest is not asked about. With --resume FILE the same command goes on\n" +
			"where it was interrupted and screens nothing twice.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, reportFormats...); err != nil {
				return err
			}
			if onNone != unavailableClosed && onNone != unavailableAllow || onNone == unavailableAllow && offline {
				return exitWith(exitUsage, errors.New("--on-unavailable must be closed or allow; --offline asks nobody and takes neither"))
			}
			if batch.of != "" {
				for _, name := range []string{"admission-out", "on-unavailable", "examples", "spec-out", "wait",
					"with", "run-ref", "owner", "on-behalf-of", "team", "objective", "statement"} {
					if cmd.Flags().Changed(name) {
						return exitWith(exitUsage, fmt.Errorf("--%s is for one spec and does not go with --batch", name))
					}
				}
				if len(args) > 0 {
					return exitWith(exitUsage, errors.New("give SPEC or --batch, not both"))
				}
				batch.offline, batch.asOf, batch.output, batch.packs, batch.conn = offline, asOf, output, packs, conn
				return batch.run(cmd)
			}
			switch {
			case len(args) == 0:
				return exitWith(exitUsage, errors.New("name the spec to check, or - for standard input, or a directory with --batch"))
			case cmd.Flags().Changed("parallel") || batch.resume != "":
				return exitWith(exitUsage, errors.New("--parallel and --resume go with --batch"))
			}
			raw, err := readInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			from := source{file: args[0], packs: shelved(packs)}
			imported, err := drafted.draft(cmd, args[0], &raw)
			if err != nil {
				return err
			}
			switch made := example != "" || imported; {
			case example != "" && specOut == "":
				return exitWith(exitUsage, errors.New("--examples and --spec-out go together: the spec with the result is the one to train on"))
			case imported && specOut == "" && !offline:
				return exitWith(exitUsage, errors.New("an imported file needs --spec-out: the spec that is written there is the one to train on"))
			case !made && specOut != "":
				return exitWith(exitUsage, errors.New("--spec-out goes with --examples or an imported file; SPEC is the spec already"))
			case imported && specOut != "" && example == "":
				if err := os.WriteFile(specOut, raw, 0o644); err != nil {
					return exitWith(exitFailed, err)
				}
				from.file = specOut
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
			if offline && admit != "" {
				return exitWith(exitUsage, errors.New("--admission-out needs a gate: offline nothing is admitted"))
			}
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
			s, err := c.Submit(ctx, rand.Text(), raw)
			if !isNoAnswer(err) {
				if spooled, err := spoolFor(c.Server()); err == nil {
					spooled.report(cmd.Context(), c, cmd.ErrOrStderr())
				}
			} else if onNone == unavailableAllow && cmd.Context().Err() == nil {
				r, err := bypass(cmd.ErrOrStderr(), c.Server(), raw, err)
				if err != nil || output != "json" {
					return err
				}
				return writeJSON(cmd.OutOrStdout(), map[string]any{"bypassed": true, "id": r.ID, "at": r.At, "reason": r.Reason})
			}
			if err != nil {
				return err
			}
			if wait > 0 && s.Status == review.StatusPending && !onlyReports(s) {
				if s, err = waitFor(cmd.Context(), c, s.ID, wait, conn.timeout); err != nil {
					return err
				}
			}
			if (s.Status == review.StatusAdmitted || onlyReports(s)) && s.SpecSHA256 != screening.Sum(raw) {
				return noAnswer(errors.New("it lets other bytes pass than those it was asked about"))
			}
			if admit != "" && s.Status == review.StatusAdmitted {
				if err := writeAdmission(cmd.Context(), c, conn.timeout, s.ID, admit); err != nil {
					return err
				}
			}
			return answer(cmd.OutOrStdout(), s, output, from)
		},
	}
	conn.add(cmd)
	cmd.Flags().StringVar(&admit, "admission-out", "", "when admitted, write the signed admission there; weir verify checks it offline")
	cmd.Flags().BoolVar(&offline, "offline", false, "decide here, without a server; nothing is kept")
	cmd.Flags().StringSliceVar(&packs, "packs", defaultPacks, "with --offline: packs beside the safety floor; else where reports look terms up")
	cmd.Flags().StringVar(&asOf, "as-of", "", "with --offline: decide as of this day, YYYY-MM-DD (default today, UTC)")
	cmd.Flags().StringVar(&output, "output", "text", formatsHelp)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for people to decide")
	cmd.Flags().StringVar(&onNone, "on-unavailable", unavailableClosed, "what to do without an answer: closed (exit 20), or allow (exit 0, warned of and recorded)")
	cmd.Flags().StringVar(&example, "examples", "", "screen this file of training examples first (chats or plain text; JSON Lines or Parquet)")
	cmd.Flags().StringVar(&specOut, "spec-out", "", "with --examples or an imported file: where to write the spec that is screened")
	batch.add(cmd)
	drafted.add(cmd)
	cmd.Flags().StringArrayVar(&drafted.with, "with", nil, "metadata of inputs, for a SPEC that is imported: FILE, or NAME=FILE for the input of that name")
	return cmd
}

// writeAdmission writes the signed admission of a screening to a file, which appears
// when it is whole.
func writeAdmission(ctx context.Context, c *client.Client, within time.Duration, id, path string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err := c.Admission(ctx, id)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return exitWith(exitFailed, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return exitWith(exitFailed, err)
	}
	return nil
}

func newWait() *cobra.Command {
	var conn gateFlags
	var output string
	var atMost time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a screening is decided and exit with the outcome",
		Long: "Waits until a screening is decided and exits as weir check does. In report mode it\n" +
			"waits for nobody: it says at once what would be stopped, and exits 0.",
		Args: cobra.ExactArgs(1),
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

// waitFor polls until the status is final, the gate only reports or the time is up;
// then it gives what it read last. Each request has its own time limit: a wait never
// hangs. An answer about another screening is none.
func waitFor(ctx context.Context, c *client.Client, id string, atMost, each time.Duration) (*client.Screening, error) {
	const poll = 30 * time.Second
	deadline := time.Now().Add(atMost)
	// The first look is at once: in report mode the gate would hold a longer one all the same.
	for left := time.Duration(0); ; left = max(0, min(poll, time.Until(deadline))) {
		reqCtx, cancel := context.WithTimeout(ctx, left+each)
		s, err := c.Screening(reqCtx, id, left.Truncate(time.Millisecond))
		cancel()
		switch {
		case err != nil:
			return nil, err
		case !strings.EqualFold(s.ID, id):
			return nil, noAnswer(errors.New("it answers about another screening than it was asked about"))
		case s.Status.Final(), onlyReports(s), !time.Now().Before(deadline):
			return s, nil
		}
	}
}

// answer prints a screening and ends with its exit code.
func answer(w io.Writer, s *client.Screening, output string, from source) error {
	var err error
	switch output {
	case "json":
		err = printJSON(w, s.Raw)
	case "text":
		err = renderScreening(w, s)
	default:
		err = newReport(s, from).write(w, output)
	}
	return ending(s, err)
}

// ending is the error that carries a screening's exit code, after it was shown.
func ending(s *client.Screening, err error) error {
	if err != nil {
		return exitWith(exitFailed, err)
	}
	if code := exitCode(s.Status); code != exitAdmit && !onlyReports(s) {
		return exitWith(code, nil)
	}
	return nil
}

// onlyReports tells whether the gate only reports what it would stop: the run passes, and
// nobody is waited for. A word that is not known reports nothing.
func onlyReports(s *client.Screening) bool { return s.Would == "block" || s.Would == "escalate" }

// dayAsOf reads --as-of: today, UTC, when it is not given.
func dayAsOf(text string) (screening.Day, error) {
	if text == "" {
		return screening.Day(time.Now().UTC().Format(time.DateOnly)), nil
	}
	day, err := screening.ParseDay(text)
	if err != nil {
		return "", exitWith(exitUsage, fmt.Errorf("--as-of %w", err))
	}
	return day, nil
}

func decideOffline(raw []byte, packs []string, asOf string) (*client.Screening, error) {
	day, err := dayAsOf(asOf)
	if err != nil {
		return nil, err
	}
	v, err := loadVocabulary(packs, false, false)
	if err != nil {
		return nil, err
	}
	return decideWith(v, raw, day)
}

// decideWith decides a spec here.
func decideWith(v *screening.Vocabulary, raw []byte, day screening.Day) (*client.Screening, error) {
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	d, x, err := screening.Explain(spec, v, day)
	if err != nil {
		return nil, exitWith(exitUsage, err) // a hedge has no statement to go into
	}
	s := &client.Screening{Status: review.StatusOf(d.Outcome), RunRef: spec.RunRef, Decision: d, Explanation: &client.Explanation{Explanation: *x}}
	if s.Raw, err = json.Marshal(map[string]any{"offline": true, "run_ref": spec.RunRef, "decision": d, "explanation": x}, json.Deterministic(true)); err != nil {
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
