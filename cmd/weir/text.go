package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"weir/screening"
)

func newText() *cobra.Command {
	cmd := group("text", "Screen texts for attempts to change who a model is")
	var name string
	screen := &cobra.Command{
		Use:   "screen FILE|-",
		Short: "Screen JSON Lines of {id, text}, or plain lines, and print a verdict a line",
		Long: "Reads JSON Lines with an id and a text, or plain lines (then the id is the\n" +
			"line's number), and prints one JSON line each: id, identity_override, empty,\n" +
			"rules. It streams: a file of any size needs little memory. A row that cannot be\n" +
			"read gets a line with an error, and the exit code is then 2.",
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
			return screenTexts(cmd.Context(), cmd.OutOrStdout(), counted, ruleset)
		},
	}
	screen.Flags().StringVar(&name, "ruleset", screening.RulesetHardened.String(), "hardened, or reference for the original rules to the letter")
	cmd.AddCommand(screen)
	return cmd
}

// textVerdict is one line of output.
type textVerdict struct {
	ID               jsontext.Value `json:"id"` // as it came
	IdentityOverride bool           `json:"identity_override"`
	Empty            bool           `json:"empty"`
	Rules            []string       `json:"rules"`
	Error            string         `json:"error,omitzero"` // the row could not be read and was not screened
}

const maxTextLine = 16 << 20

// screenTexts screens row by row. The first row tells JSON Lines from plain
// lines. A row that cannot be read gets a verdict that says so, the others go
// on, and the program ends with a usage error: a bulk run is not lost to one row.
func screenTexts(ctx context.Context, w io.Writer, r io.Reader, ruleset screening.Ruleset) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxTextLine)
	out := bufio.NewWriter(w)
	asJSON, bad := false, 0
	for n := 1; lines.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return errors.Join(out.Flush(), exitWith(exitFailed, fmt.Errorf("stopped before line %d", n)))
		}
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
			asJSON = bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
		}
		if asJSON && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v := screenRow(line, n, asJSON, ruleset)
		if v.Error != "" {
			bad++
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			return exitWith(exitFailed, err)
		}
		if _, err := out.Write(append(encoded, '\n')); err != nil {
			return exitWith(exitFailed, err)
		}
	}
	if err := out.Flush(); err != nil {
		return exitWith(exitFailed, err)
	}
	if err := lines.Err(); err != nil {
		return exitWith(exitUsage, fmt.Errorf("the input cannot be read to its end: %w", err))
	}
	if bad > 0 {
		return exitWith(exitUsage, fmt.Errorf("%s could not be read and %s not screened", count(bad, "row", "rows"), map[bool]string{true: "was", false: "were"}[bad == 1]))
	}
	return nil
}

func screenRow(line []byte, n int, asJSON bool, ruleset screening.Ruleset) textVerdict {
	v := textVerdict{ID: jsontext.Value(strconv.Quote(strconv.Itoa(n))), Rules: []string{}}
	text := string(line)
	if asJSON {
		var row struct {
			ID   jsontext.Value `json:"id"`
			Text *string        `json:"text"`
		}
		if err := json.Unmarshal(line, &row); err != nil || row.Text == nil {
			v.Error = fmt.Sprintf("line %d is not a JSON object in UTF-8 with one text", n)
			return v
		}
		text = *row.Text
		if len(row.ID) > 0 && row.ID.Kind() != 'n' {
			v.ID = row.ID
		}
	}
	found := screening.ScreenText(ruleset, text)
	v.IdentityOverride, v.Empty = found.IdentityOverride, found.Empty
	if found.Rules != nil {
		v.Rules = found.Rules
	}
	return v
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
