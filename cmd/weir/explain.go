package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

func newExplain() *cobra.Command {
	var (
		conn   gateFlags
		packs  []string
		asOf   string
		output string
		all    bool
	)
	cmd := &cobra.Command{
		Use:   "explain ID|SPEC",
		Short: "Show every finding of a screening, why, and what would change it",
		Long: "Shows every finding that is not upheld, also those that did not decide: where it\n" +
			"stands, why, and the smallest change by which it would be upheld: what would\n" +
			"have to be so, not what may be claimed. Takes the id of a screening, which is\n" +
			"read from the gate, or a spec (a file, or - for standard input), which is decided\n" +
			"here without a server. Exits like check.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, reportFormats...); err != nil {
				return err
			}
			from := source{packs: shelved(packs)}
			var s *client.Screening
			if uuid.Validate(args[0]) == nil {
				c, err := conn.client()
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(cmd.Context(), conn.timeout)
				defer cancel()
				if s, err = c.Explained(ctx, args[0]); err != nil {
					return err
				}
				// Without the bytes there are no lines; the rest can be said all the same.
				from.raw, _ = c.Spec(ctx, args[0])
			} else {
				var err error
				from.file = args[0]
				if from.raw, err = readInput(cmd.InOrStdin(), args[0]); err != nil {
					return exitWith(exitUsage, err)
				}
				if s, err = decideOffline(from.raw, packs, asOf); err != nil {
					return err
				}
			}
			return ending(s, newReport(s, from).explain(cmd.OutOrStdout(), output, all))
		},
	}
	conn.add(cmd)
	cmd.Flags().StringSliceVar(&packs, "packs", defaultPacks, "packs beside the safety floor; with an ID, where terms are looked up")
	cmd.Flags().StringVar(&asOf, "as-of", "", "with a spec: decide as of this day, YYYY-MM-DD (default today, UTC)")
	cmd.Flags().StringVar(&output, "output", "text", formatsHelp)
	cmd.Flags().BoolVar(&all, "all", false, "list the terms that are upheld too (text and json)")
	return cmd
}

// explanation is a report in JSON.
type explanation struct {
	ID       string           `json:"id,omitzero"`
	RunRef   string           `json:"run_ref"`
	Status   review.Status    `json:"status"`
	AsOf     screening.Day    `json:"as_of"`
	Outcome  string           `json:"outcome"`
	Summary  string           `json:"summary"`
	Change   []reportedChange `json:"change,omitzero"` // where the outcome stands for itself; see report.outcome
	Findings []reported       `json:"findings"`
	Upheld   []explainedAs    `json:"upheld,omitzero"`
	Counts   map[string]int   `json:"counts"` // of findings, by state
}

type explainedAs struct {
	Term  string `json:"term"`
	Title string `json:"title"`
}

func (r *report) explain(w io.Writer, output string, all bool) error {
	if output != "text" && output != "json" {
		return r.write(w, output)
	}
	e := explanation{ID: r.ID, RunRef: r.RunRef, Status: r.Status, AsOf: r.Decision.AsOf, Outcome: r.Decision.Outcome.String(),
		Summary: summary(r.Screening), Findings: []reported{}, Counts: map[string]int{}}
	if r.outcome != nil {
		e.Change = r.outcome.Change
	}
	for _, x := range r.findings {
		if x.OutOfForce != "" {
			e.Counts["out_of_force"]++
		} else {
			e.Counts[string(x.State)]++
		}
		switch {
		case x.State != screening.Upheld:
			e.Findings = append(e.Findings, x)
		case all:
			e.Upheld = append(e.Upheld, explainedAs{x.Term, x.Title})
		}
	}
	if output == "json" {
		return writeJSON(w, e)
	}
	return r.explainText(w, &e)
}

func (r *report) explainText(w io.Writer, e *explanation) error {
	p, out := paintFor(w), &lines{w: w}
	word, colour := headline(r.Screening)
	out.wrap(p.bold(colour, printable(word))+"  ", "", r.RunRef)
	out.wrap("  ", "", e.Summary)
	counts := fmt.Sprintf("%d violated, %d not checkable, %d upheld", e.Counts[string(screening.Violated)], e.Counts[string(screening.NotCheckable)], e.Counts[string(screening.Upheld)])
	if n := e.Counts["out_of_force"]; n > 0 {
		counts += fmt.Sprintf(", %d not in force on %s", n, r.Decision.AsOf)
	}
	out.wrap("  ", "", counts+".")
	if r.outcome != nil {
		explainChanges(out, r.outcome)
	}
	for _, group := range []struct {
		heading string
		decided bool
	}{{"These decided:", true}, {"These did not decide:", false}} {
		head := false
		for i := range e.Findings {
			if x := &e.Findings[i]; x.Decided == group.decided {
				if !head {
					out.put("")
					out.put("%s", p.bold(plain, group.heading))
					head = true
				}
				explainFinding(out, p, x)
			}
		}
	}
	if len(e.Upheld) > 0 {
		out.put("")
		out.put("%s", p.bold(plain, "These are upheld:"))
		for _, u := range e.Upheld {
			out.wrap("  "+printable(u.Term)+"  ", "      ", u.Title)
		}
	}
	renderSayings(out, r.Decision)
	renderFooter(out, r.Screening)
	return out.err
}

func explainFinding(out *lines, p paint, x *reported) {
	what := map[screening.State]string{screening.Violated: "violated", screening.NotCheckable: "not checkable"}[x.State]
	if x.Cause != "" {
		what += " (" + causeWords[x.Cause] + ")"
	}
	if x.OutOfForce != "" {
		what += ", not in force"
	}
	if x.Effect != 0 {
		what += ", " + x.Effect.String() + raisedBy(x.Raised)
	}
	if x.Severity != "" {
		what += ", " + x.Severity
	}
	out.put("")
	out.wrap("  "+p.bold(plain, printable(x.Term))+"  ", "      ", what)
	out.wrap("    ", "", x.Title)
	label := "where   "
	for _, at := range x.Places {
		out.wrap("    "+label, "            ", at.says())
		label = "        "
	}
	if x.More {
		out.put("            and more of this kind")
	}
	out.wrap("    why     ", "            ", x.Reason)
	if x.Remedy != "" {
		out.wrap("    passes  ", "            ", x.Remedy)
	}
	explainChanges(out, x)
}

// raisedBy says which profiles gave a finding its effect, "" when none did.
func raisedBy(r *screening.Raised) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(" (raised from %s by %s)", r.From, strings.Join(r.By, ", "))
}

// causeWords say why a term could not be checked.
var causeWords = map[screening.Cause]string{
	screening.CauseNoEvidence:  "not stated",
	screening.CauseHint:        "hinted at",
	screening.CauseStructural:  "not visible in a spec",
	screening.CauseNoPredicate: "nothing checks it",
	screening.CauseError:       "the check failed",
}

func explainChanges(out *lines, x *reported) {
	label := "change  "
	if x.NoChange != "" {
		out.wrap("    "+label, "            ", "none: "+x.NoChange)
		return
	}
	for _, c := range x.Change {
		do := c.Do
		if do == x.Remedy {
			do = "as above"
		}
		out.wrap("    "+label, "            ", fmt.Sprintf("%s%s: %s", c.Pointer, inLine(c.Line), do))
		label = "        "
	}
}

func inLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line)
}
