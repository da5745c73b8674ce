// Command weir is a pre-training screening gate: pipelines ask it whether
// exactly these bytes may train now. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/screening"
)

// Exit codes. They do not depend on the output format.
const (
	exitAdmit       = 0
	exitFailed      = 1
	exitUsage       = 2 // usage, or an invalid spec
	exitPackInvalid = 4
	exitBlock       = 10
	exitPending     = 11 // escalated, also when a wait times out
	exitEnded       = 12 // expired, superseded, withdrawn, revoked
	exitNoAnswer    = 20 // unavailable or timed out: closed
)

// exitError carries the code with which the program ends. A nil err ends it
// silently: the command has said everything.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, err error) error { return &exitError{code, err} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal asks, a second one kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: everything but the process it lives in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitAdmit
	}
	if exit := (*exitError)(nil); !errors.As(err, &exit) || exit.err != nil {
		printError(stderr, err)
	}
	return exitOf(err)
}

// printError shows every problem of an invalid document on a line of its own.
// Pointers hold keys of the document, and a gate's words come over the network:
// both are escaped.
func printError(w io.Writer, err error) {
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) {
		for i, line := range strings.Split(err.Error(), "\n") {
			if i == 0 {
				line = "weir: " + line
			}
			fmt.Fprintln(w, printable(line))
		}
		return
	}
	fmt.Fprintf(w, "weir: the %s is not valid%s\n", printable(invalid.What), inFile(invalid.Name))
	for _, p := range invalid.Problems {
		line := ""
		if p.Line > 0 {
			line = fmt.Sprintf("line %d: ", p.Line)
		}
		pointer := p.Pointer
		if pointer == "" {
			pointer = "it"
		}
		fmt.Fprintf(w, "  %s%s %s\n", line, printable(pointer), printable(p.Detail))
	}
}

func inFile(name string) string {
	if name == "" {
		return ""
	}
	return " (" + printable(name) + ")"
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "A screening gate that an ML pipeline asks before it trains",
		Long: "weir classifies a training specification into block, escalate or admit,\n" +
			"keeps the decision in Postgres, and sends escalations to reviewers.\n\n" +
			"Exit codes of check, wait and explain: 0 admit, 10 block, 11 escalated or\n" +
			"pending, 12 expired, superseded, withdrawn or revoked, 2 usage or invalid\n" +
			"spec, 4 pack invalid, 20 no answer (treat it as closed).",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return applySettings(cmd) }
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(newServe(), newCheck(), newWait(), newWatch(), newImport(), newExplain(), newPack(), newText(), newReview(), newCorrect(), newDelivery(), newEndpoint(), newExport(), newVerify(), newRecall(), newErase(), newRetention(), newKubernetes(), newKey(), newConsole(), newMigrate(), newConfig(), newDoctor(), newReady(), newVersion())
	return root
}

// group is a command that only holds others: a name that is none of them is a
// usage error, not help with exit code 0.
func group(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exitWith(exitUsage, fmt.Errorf("%s has no command %s; see %s --help", cmd.CommandPath(), printable(args[0]), cmd.CommandPath()))
			}
			return cmd.Help()
		}}
}

func newVersion() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Show the version of the engine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weir, decision engine %s\n", screening.EngineVersion)
			return err
		}}
}
