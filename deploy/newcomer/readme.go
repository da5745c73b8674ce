package main

import (
	"fmt"
	"regexp"
	"strings"
)

// step is one command of the README and what it is shown to print.
type step struct {
	line    int
	command string   // "" where only what comes by itself is shown
	output  []string // lines, in their order; empty lines are left out
	shows   bool     // in a block that shows output, the exit code is what the next line says
}

// stepsOf reads the commands of a section: all lines of its sh blocks, and what
// follows "$ " in its console blocks, where the other lines are what is printed.
func stepsOf(readme, section string) (steps []step, err error) {
	fence, in := "", false
	open := func() *step { return &steps[len(steps)-1] }
	goesOn := false // the command ended with a backslash, or within quotes
	for i, line := range strings.Split(readme, "\n") {
		switch {
		case fence == "" && strings.HasPrefix(line, "## "):
			in = line == "## "+section
		case !in:
		case strings.HasPrefix(line, "```"):
			if fence == "" {
				fence = strings.TrimPrefix(line, "```") + " "
				if fence == "console " {
					steps = append(steps, step{line: i + 2, shows: true}) // what comes by itself
				}
			} else {
				fence = ""
			}
		case goesOn:
			open().command += "\n" + line
			goesOn = unfinished(open().command)
		case fence == "sh " && strings.TrimSpace(line) != "":
			steps = append(steps, step{line: i + 1, command: line})
			goesOn = unfinished(line)
		case fence == "console " && strings.HasPrefix(line, "$ "):
			steps = append(steps, step{line: i + 1, command: line[2:], shows: true})
			goesOn = unfinished(line[2:])
		case fence == "console " && strings.TrimSpace(line) != "":
			open().output = append(open().output, line)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("README.md has no commands in a section %q", section)
	}
	return steps, nil
}

// unfinished tells whether a shell would wait for another line.
func unfinished(command string) bool {
	bare := regexp.MustCompile(`\\.|"[^"]*"`).ReplaceAllString(command, "")
	return strings.HasSuffix(command, "\\") || strings.Count(bare, "'")%2 == 1 || strings.Count(command, `"`)%2 == 1
}

// changing is what differs from run to run: ids, digests, days, times, and what is
// shortened with an ellipsis.
var changing = regexp.MustCompile(`[0-9a-f]{8}-(?:…|[0-9a-f-]{27})|[0-9a-f]{64}|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)?)?|\d{6,}|…`)

// missingIn gives the first line of the output that what was printed does not have
// after the ones before it; "" when all are there.
func (s step) missingIn(printed string) string {
	lines := strings.Split(printed, "\n")
	for _, want := range s.output {
		var pattern strings.Builder
		pattern.WriteString(`^\s*`)
		rest := strings.TrimSpace(want)
		last := 0
		for _, at := range changing.FindAllStringIndex(rest, -1) {
			pattern.WriteString(regexp.QuoteMeta(rest[last:at[0]]) + `.+`)
			last = at[1]
		}
		pattern.WriteString(regexp.QuoteMeta(rest[last:]) + `\s*$`)
		re := regexp.MustCompile(pattern.String())
		found := false
		for i, line := range lines {
			if re.MatchString(line) {
				lines, found = lines[i+1:], true
				break
			}
		}
		if !found {
			return want
		}
	}
	return ""
}
