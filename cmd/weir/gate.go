package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
)

// gateFlags are how a command reaches a gate.
type gateFlags struct {
	server, keyFile string
	timeout         time.Duration
}

func (f *gateFlags) add(cmd *cobra.Command) {
	f.addGate(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "give up after this long, with exit code 20")
}

// addGate adds the settings: where the gate is, and the key to it.
func (f *gateFlags) addGate(cmd *cobra.Command) {
	serverFlag(cmd, &f.server)
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "file with the API key (default: the key itself in $WEIR_KEY)")
	useSettings(cmd.Flags(), "key-file")
}

func serverFlag(cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "http://127.0.0.1:8080", "address of the gate ($WEIR_SERVER)")
	useSettings(cmd.Flags(), "server")
}

func (f *gateFlags) client() (*client.Client, error) {
	key := os.Getenv("WEIR_KEY")
	if f.keyFile != "" {
		data, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, exitWith(exitUsage, fmt.Errorf("API key: %w", err))
		}
		key = strings.TrimSpace(string(data))
	}
	c, err := client.New(f.server, key, client.Config{})
	if err == nil && key == "" {
		err = errors.New("no API key: set WEIR_KEY or give --key-file; weir key create makes one")
	}
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	return c, nil
}

// askFlags are those of every command that asks a gate and shows its answer.
type askFlags struct {
	gateFlags
	output string
}

func (f *askFlags) add(cmd *cobra.Command) {
	f.gateFlags.add(cmd)
	cmd.Flags().StringVar(&f.output, "output", "text", "text or json")
}

// said is an answer of a gate.
type said interface{ Bytes() jsontext.Value }

// ask asks within the flags' time and writes the answer: as it came, or as show does.
func ask[T said](cmd *cobra.Command, f *askFlags, request func(context.Context, *client.Client) (T, error), show func(*lines, T)) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	c, err := f.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	answer, err := request(ctx, c)
	if err != nil {
		return err
	}
	if f.output == "json" {
		return printJSON(cmd.OutOrStdout(), answer.Bytes())
	}
	out := &lines{w: cmd.OutOrStdout()}
	show(out, answer)
	return out.err
}

// noAnswer: the gate answered, and not what it was asked.
func noAnswer(err error) error { return fmt.Errorf("%w: %w", client.ErrNoAnswer, err) }

// isNoAnswer reports whether an error ends the program with exitNoAnswer.
func isNoAnswer(err error) bool { return err != nil && exitOf(err) == exitNoAnswer }

// exitOf is the code that an error ends the program with.
func exitOf(err error) int {
	var exit *exitError
	var refused *client.Problem
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, client.ErrNoAnswer):
		return exitNoAnswer
	case errors.As(err, &refused) && refused.Name() == "review-expired":
		return exitEnded
	}
	return exitUsage // what cobra refuses is usage, and so is what a gate refuses
}

// exitCode is what a status means to a pipeline.
func exitCode(s review.Status) int {
	switch s {
	case review.StatusAdmitted:
		return exitAdmit
	case review.StatusBlocked:
		return exitBlock
	case review.StatusPending:
		return exitPending
	case review.StatusExpired, review.StatusSuperseded, review.StatusWithdrawn, review.StatusRevoked:
		return exitEnded
	}
	return exitNoAnswer // a word this program does not know opens nothing
}
