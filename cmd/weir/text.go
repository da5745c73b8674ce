package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/screening"
)

func newText() *cobra.Command {
	cmd := group("text", "Screen texts for attempts to change who a model is")
	var name string
	screen := &cobra.Command{
		Use:   "screen FILE|-",
		Short: "Screen JSON Lines of {id, text}, or plain lines, and print a verdict a line",
		Long: "Reads JSON Lines with an id and a text, or plain lines (then the id is the line's\n" +
			"number), and prints one JSON line each: id, identity_override, empty, rules. It\n" +
			"streams: a file of any size needs little memory.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ruleset, err := screening.ParseRuleset(name)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			in, size, err := openInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			defer in.Close()
			counted, done := progress(cmd.ErrOrStderr(), "screening", in, size)
			defer done()
			return screenTexts(cmd.OutOrStdout(), counted, ruleset)
		},
	}
	screen.Flags().StringVar(&name, "ruleset", screening.RulesetHardened.String(), "hardened, or reference for the original rules to the letter")
	cmd.AddCommand(screen)
	return cmd
}

// textVerdict is one line of output.
type textVerdict struct {
	ID               any      `json:"id"` // as it came: text or number
	IdentityOverride bool     `json:"identity_override"`
	Empty            bool     `json:"empty"`
	Rules            []string `json:"rules"`
}

const maxTextLine = 16 << 20

func screenTexts(w io.Writer, r io.Reader, ruleset screening.Ruleset) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxTextLine)
	out := bufio.NewWriter(w)
	for n := 1; lines.Scan(); n++ {
		id, text := any(strconv.Itoa(n)), lines.Text()
		if t := bytes.TrimSpace(lines.Bytes()); len(t) > 0 && t[0] == '{' {
			var row struct {
				ID   any     `json:"id"`
				Text *string `json:"text"`
			}
			if err := json.Unmarshal(t, &row); err != nil || row.Text == nil {
				return errors.Join(out.Flush(), exitWith(exitUsage, fmt.Errorf("line %d is not a JSON object with a text", n)))
			}
			text = *row.Text
			if row.ID != nil {
				id = row.ID
			}
		}
		v := screening.ScreenText(ruleset, text)
		rules := v.Rules
		if rules == nil {
			rules = []string{}
		}
		line, err := json.Marshal(textVerdict{id, v.IdentityOverride, v.Empty, rules})
		if err != nil {
			return exitWith(exitFailed, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return exitWith(exitFailed, err)
		}
	}
	if err := out.Flush(); err != nil {
		return exitWith(exitFailed, err)
	}
	if err := lines.Err(); err != nil {
		return exitWith(exitUsage, fmt.Errorf("the input cannot be read to its end: %w", err))
	}
	return nil
}

// openInput opens a file, or standard input for "-". size is -1 when not known.
func openInput(stdin io.Reader, name string) (in io.ReadCloser, size int64, err error) {
	if name == "-" {
		return io.NopCloser(stdin), -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
