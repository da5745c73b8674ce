package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

// width is the widest line of text output: a plain terminal.
const width = 80

// paint colours words on a terminal, and only there.
type paint bool

func paintFor(w io.Writer) paint {
	f, ok := w.(*os.File)
	return paint(ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "")
}

func (p paint) bold(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[1;" + code + "m" + text + "\x1b[0m"
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	plain  = "39"
)

// renderScreening shows the outcome first, then each finding that caused it,
// then what could not be checked and the statements that would decide it.
func renderScreening(w io.Writer, s *client.Screening) error {
	p, d := paintFor(w), s.Decision
	out := &lines{w: w}
	word, colour := headline(s)
	out.wrap(p.bold(colour, printable(word))+"  ", "", s.RunRef)
	out.wrap("  ", "", summary(s))
	if isRecalled(s.Recall) && s.DecidedBy != review.ByRecall {
		out.wrap("  ", "", recallWords(s.Recall))
	}
	if onlyReports(s) {
		out.wrap("  ", "", "Report mode until "+string(s.ReportUntil)+": it may train, and would be stopped by then.")
	}
	renderFindings(out, p, d)
	renderOpen(out, p, d)
	renderSayings(out, d)
	renderFooter(out, s)
	return out.err
}

// renderSayings shows the words that go with the decision: a refusal, a hedge.
func renderSayings(out *lines, d *screening.Decision) {
	if d.Refusal != "" {
		out.put("")
		out.wrap("  ", "  ", d.Refusal)
	}
	if d.Hedge != nil {
		out.put("")
		out.wrap("  ", "  ", "The disclosure statement has to start with: "+d.Hedge.Text)
	}
}

func headline(s *client.Screening) (word, colour string) {
	switch s.Status {
	case review.StatusAdmitted:
		return "ADMITTED", green
	case review.StatusBlocked:
		return "BLOCKED", red
	case review.StatusPending:
		return "ESCALATED", yellow
	}
	return strings.ToUpper(string(s.Status)), yellow
}

// erasedWords say that there is nothing to show, and why.
func erasedWords(e *client.Erased) string {
	return fmt.Sprintf("Spec and decision were erased at %s by %s: %s", e.At.UTC().Format(minute), e.Actor, e.Reason)
}

func summary(s *client.Screening) string {
	if s.Erased != nil {
		return erasedWords(s.Erased)
	}
	d := s.Decision
	marks := ""
	if d.Unratified {
		marks += " Packs that are not ratified were used."
	}
	if d.AuditOnly {
		marks += " The deployment only audits."
	}
	switch s.DecidedBy {
	case review.ByRecall:
		return recallWords(s.Recall) + marks
	case review.ByPeople:
		return "Reviewers decided." + marks
	case review.ByWaiver:
		return "Waivers take away what would stop it." + marks
	}
	n := 0
	for _, c := range d.Causes {
		if c.Effect >= screening.Escalate {
			n++
		}
	}
	switch {
	case d.Outcome == screening.OutcomeAdmit && d.NoPolicyMatched:
		return "No ethics term that decides was checked." + marks
	case d.Outcome == screening.OutcomeAdmit && d.Hedge != nil:
		return fmt.Sprintf("Admitted with a hedge, for %s.", count(len(d.Hedge.Terms), "finding", "findings")) + marks
	case d.Outcome == screening.OutcomeAdmit:
		return "Every term that decides was checked and upheld." + marks
	case n == 0 && d.NoPolicyMatched:
		return "No ethics term could be checked, so nothing was shown to be harmless." + marks
	case d.Outcome == screening.OutcomeBlock:
		return fmt.Sprintf("%s this run.%s", count(n, "finding blocks", "findings block"), marks)
	default:
		return fmt.Sprintf("%s a person.%s", count(n, "finding needs", "findings need"), marks)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shownEvidence gives a few lines of "pointer: name is value".
func shownEvidence(evidence []screening.Evidence) (shown []string) {
	const most = 4
	for i, ev := range evidence {
		if i == most {
			return append(shown, fmt.Sprintf("and %d more places", len(evidence)-most))
		}
		line := ev.Pointer
		if line == "" {
			line = "(nowhere)"
		}
		shown = append(shown, fmt.Sprintf("%s: %s = %s", line, ev.Name, ev.Value))
	}
	return shown
}

// renderOpen lists what could not be checked and what would decide it.
func renderOpen(out *lines, p paint, d *screening.Decision) {
	observed := 0
	for _, f := range allFindings(d) {
		if f.State == screening.NotCheckable && f.OutOfForce == "" && !causes(d, f.Term) {
			observed++
		}
	}
	if len(d.Missing) > 0 {
		out.put("")
		out.put("  %s", p.bold(plain, openHeading(d)))
		for _, m := range d.Missing {
			out.wrap("    ", "      ", m.Pointer+"  "+m.Say)
		}
	}
	if observed > 0 {
		out.put("")
		out.wrap("  ", "  ", fmt.Sprintf("%s could not be checked and did not change the outcome; see --output json.", count(observed, "other term", "other terms")))
	}
}

func openHeading(d *screening.Decision) string {
	statements := count(len(d.Missing), "statement", "statements")
	if d.Outcome == screening.OutcomeBlock {
		return "Also not checkable. " + statements + " would answer what is open:"
	}
	return "Not checkable yet. " + statements + " would decide it:"
}

func causes(d *screening.Decision, id string) bool {
	for _, c := range d.Causes {
		if c.ID() == id {
			return true
		}
	}
	return false
}

func allFindings(d *screening.Decision) (all []*screening.Finding) {
	for _, v := range d.Safety {
		all = append(all, v.Findings...)
	}
	for _, v := range d.Ethics {
		all = append(all, v.Findings...)
	}
	return all
}

func renderFooter(out *lines, s *client.Screening) {
	if s.ID == "" {
		out.put("")
		out.put("  offline, as of %s; nothing was kept", s.Decision.AsOf)
		return
	}
	out.put("")
	out.put("  screening %s", printable(s.ID))
	if s.Status == review.StatusAdmitted && s.AdmittedUntil != nil {
		out.put("  admitted until %s", s.AdmittedUntil.UTC().Format(minute))
	}
	if s.Review != nil {
		out.put("  review    %s", printable(s.Review.ID))
		if s.Status == review.StatusPending {
			out.put("  due       %s", s.Review.DueAt.UTC().Format(time.DateTime+" UTC"))
			if !onlyReports(s) { // else nobody is waited for
				out.put("  next      weir wait %s", printable(s.ID))
			}
		}
	}
}

// lines writes lines and remembers the first error.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) put(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}

// wrap breaks text at spaces, and words that are longer than a line anywhere, so
// that lines stay within width; first goes before the first line and rest before
// the others (spaces as long as first when empty). The text is made printable.
func (l *lines) wrap(first, rest, text string) {
	if rest == "" {
		rest = strings.Repeat(" ", visible(first))
	}
	line, used, empty := first, visible(first), true
	flush := func() {
		l.put("%s", strings.TrimRight(line, " "))
		line, used, empty = rest, visible(rest), true
	}
	inert := func(word []rune) []rune { // runners of CI jobs take a line that begins with :: for a command
		if len(word) > 1 && word[0] == ':' && word[1] == ':' && strings.TrimSpace(line) == "" {
			return append([]rune(`\x3a`), word[1:]...)
		}
		return word
	}
	for _, w := range strings.Fields(text) {
		word := []rune(printable(w))
		if !empty && used+1+len(word) > width {
			flush()
		}
		word = inert(word)
		if !empty {
			line, used = line+" ", used+1
		}
		for used+len(word) > width {
			n := max(width-used, 1)
			line, word = line+string(word[:n]), word[n:]
			flush()
			word = inert(word)
		}
		line, used, empty = line+string(word), used+len(word), false
	}
	if !empty || line == first {
		l.put("%s", strings.TrimRight(line, " "))
	}
}

var colourCode = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible is how many columns a prefix takes; colours take none.
func visible(s string) int { return len([]rune(colourCode.ReplaceAllString(s, ""))) }
