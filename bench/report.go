package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// report gathers what was measured and writes it as Markdown.
type report struct {
	goals, body, costs strings.Builder
	missed             int
}

func (r *report) table(title string, results []result) {
	fmt.Fprintf(&r.body, "\n**%s**\n\n| | µs | times weir (range) | allocations | KB |\n|---|---:|---:|---:|---:|\n", title)
	for _, x := range results {
		fmt.Fprintf(&r.body, "| %s | %s | %s | %.0f | %.1f |\n", x.name, number(float64(x.perRun)/1e3), times(x), x.allocs, x.bytesAlloc/1e3)
	}
	r.progress(title)
}

// speeds is table for entrants that go through a text of some bytes.
func (r *report) speeds(title string, bytes int, results []result) {
	fmt.Fprintf(&r.body, "\n**%s**\n\n| | MB/s | time, times weir's (range) |\n|---|---:|---:|\n", title)
	for _, x := range results {
		fmt.Fprintf(&r.body, "| %s | %s | %s |\n", x.name, number(float64(bytes)/float64(x.perRun)*1e3), times(x))
	}
	r.progress(title)
}

func (r *report) cost(name string, x result) {
	fmt.Fprintf(&r.costs, "| %s | %.2f | %.2f..%.2f |\n", name, x.ratio, x.low, x.high)
}

func times(x result) string {
	if x.low == 1 && x.high == 1 {
		return "1"
	}
	return fmt.Sprintf("%s (%s..%s)", number(x.ratio), number(x.low), number(x.high))
}

func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func (r *report) goal(what string, atLeast, measured float64) {
	r.outcome(what, "≥", atLeast, measured, measured >= atLeast)
}

func (r *report) atMost(what string, most, measured float64) {
	r.outcome(what, "≤", most, measured, measured <= most)
}

func (r *report) outcome(what, sign string, limit, measured float64, met bool) {
	answer := "yes"
	if !met {
		answer = "**no**"
		r.missed++
	}
	fmt.Fprintf(&r.goals, "| %s | %s %g | %s | %s |\n", what, sign, limit, number(measured), answer)
}

func (r *report) note(format string, args ...any) {
	fmt.Fprintf(&r.body, "\n"+format+"\n", args...)
}

func (r *report) progress(title string) { fmt.Fprintln(os.Stderr, "measured:", title) }

// markdown is the part of the page that is measured.
func (r *report) markdown(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s: %s, one core (GOMAXPROCS=1), %s, %s/%s. Every ratio is the median over %d rounds in which\nall entrants of its table ran in turn.\n",
		now.UTC().Format("2 January 2006"), processor(), runtime.Version(), runtime.GOOS, runtime.GOARCH, rounds)
	b.WriteString("\n| goal | limit | measured | met |\n|---|---:|---:|---|\n" + r.goals.String())
	b.WriteString(r.body.String())
	if r.costs.Len() > 0 {
		b.WriteString("\n**1 MiB of one kind of text, the phrases of the shipped packs, full normalisation**\n\n| text | time, times NFKC and fold | range |\n|---|---:|---:|\n" + r.costs.String())
	}
	return b.String()
}

// processor names the machine's processor, as far as the system says.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

const (
	begin = "<!-- measured: begin -->"
	end   = "<!-- measured: end -->"
)

// replaceMeasured puts the measured part into a page, between its marks.
func replaceMeasured(page, measured string) (string, error) {
	before, rest, ok1 := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("the page lacks the marks %s and %s", begin, end)
	}
	return before + begin + "\n" + measured + end + after, nil
}
