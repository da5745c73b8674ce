package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

// showReplay prints the results and tells whether any outcome differs.
func showReplay(w io.Writer, results *replayFile, output string) (differ bool, err error) {
	sum := *results.first
	sum.ReplayPage = review.ReplayPage{Totals: []review.ReplayTotal{}}
	for page, err := range results.pages() {
		if err != nil {
			return false, err
		}
		sum.Replayed += page.Replayed
		sum.OtherFindings += page.OtherFindings
		sum.OtherEngine += page.OtherEngine
		sum.Erased += page.Erased
		for _, t := range page.Totals {
			sum.AddTotal(t)
		}
	}
	for _, t := range sum.Totals {
		differ = differ || string(t.Now) != t.Then.String()
	}
	if output == "json" {
		return differ, replayJSON(w, &sum, results)
	}
	return differ, renderReplay(w, &sum, results)
}

// replayJSON is the sum of the pages, as if it were one.
func replayJSON(w io.Writer, sum *client.ReplayPage, results *replayFile) error {
	enc := jsontext.NewEncoder(w, jsontext.WithIndent("  "))
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range []struct {
		name  string
		value any
	}{{"project", sum.Project}, {"packs", sum.Packs}, {"unratified", sum.Unratified}, {"audit_only", sum.AuditOnly}, {"engine", sum.Engine}, {"since", sum.Since}, {"until", sum.Until},
		{"as_of", sum.AsOf}, {"replayed", sum.Replayed}, {"totals", sum.Totals}, {"other_findings", sum.OtherFindings}, {"other_engine", sum.OtherEngine}, {"erased", sum.Erased}} {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.String("differences")); err != nil {
		return err
	}
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for page, err := range results.pages() {
		if err != nil {
			return err
		}
		for i := range page.Differences {
			if err := json.MarshalEncode(enc, &page.Differences[i]); err != nil {
				return err
			}
		}
	}
	if err := enc.WriteToken(jsontext.EndArray); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

// column is where the right column of the table begins.
const replayColumn = "                     "

// renderReplay shows the totals first, then each spec that comes out otherwise.
func renderReplay(w io.Writer, sum *client.ReplayPage, results *replayFile) error {
	p, out := paintFor(w), &lines{w: w}
	differ := 0
	for _, t := range sum.Totals {
		if string(t.Now) != t.Then.String() {
			differ += t.Specs
		}
	}
	head, colour := fmt.Sprintf("%d of %s would have been decided differently", differ, count(sum.Replayed, "spec", "specs")), green
	switch {
	case sum.Replayed == 0:
		head, colour = "Nothing was decided again: there is no spec in this window", yellow
	case differ > 0:
		colour = yellow
	}
	out.put("%s", p.bold(colour, head))
	day := "each as of the day it was decided"
	if sum.AsOf != "stored" {
		day = "as of " + sum.AsOf
	}
	if sum.Replayed == 0 {
		out.wrap("  ", "", "project "+sum.Project)
	}
	out.wrap("  ", "", fmt.Sprintf("screened from %s to %s, %s", moment(sum.Since), moment(sum.Until), day))
	var names []string
	for _, ref := range sum.Packs {
		names = append(names, fmt.Sprintf("%s %s (%.12s)", ref.ID, ref.Version, ref.SHA256))
	}
	out.wrap("  packs: ", "", strings.Join(names, ", "))
	if sum.Unratified {
		out.wrap("  ", "", "Packs that are not ratified were used.")
	}
	if sum.Replayed == 0 {
		return out.err
	}
	out.put("")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "  THEN\tNOW\tSPECS")
	for _, t := range sum.Totals {
		fmt.Fprintf(tw, "  %s\t%s\t%d\n", t.Then, printable(string(t.Now)), t.Specs)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if sum.OtherFindings > 0 {
		out.put("")
		out.wrap("  ", "", fmt.Sprintf("%s the outcome with other findings; --output json lists them.", count(sum.OtherFindings, "spec keeps", "specs keep")))
	}
	if sum.Erased > 0 {
		out.wrap("  ", "", fmt.Sprintf("%s erased and cannot be decided again.", count(sum.Erased, "spec was", "specs were")))
	}
	if sum.OtherEngine > 0 {
		out.put("")
		out.wrap("  ", "", fmt.Sprintf("%s decided by another engine than %s; there a difference may be the engine's.", count(sum.OtherEngine, "spec was", "specs were"), sum.Engine))
	}
	if differ == 0 {
		return out.err
	}
	out.put("")
	out.put("%s", p.bold(plain, "THEN → NOW"+replayColumn[len("THEN - NOW"):]+"RUN, SCREENING, WHAT MADE THE DIFFERENCE"))
	for page, err := range results.pages() {
		if err != nil {
			return err
		}
		for i := range page.Differences {
			if r := &page.Differences[i]; r.Differs() {
				renderReplayed(out, p, r)
			}
		}
	}
	return out.err
}

func renderReplayed(out *lines, p paint, r *review.Replayed) {
	change := fmt.Sprintf("%s → %s", r.Then, printable(string(r.Now)))
	pad := replayColumn[min(visible(change), len(replayColumn)-1):]
	out.wrap(p.bold(outcomeColour(r.Now), change)+pad, replayColumn, r.RunRef)
	out.wrap(replayColumn, "", r.ScreeningID)
	renderChanges(out, r)
}

func renderChanges(out *lines, r *review.Replayed) {
	for _, c := range r.Changes {
		sign := "~"
		switch {
		case c.Then == nil:
			sign = "+"
		case c.Now == nil:
			sign = "-"
		}
		out.wrap(replayColumn+sign+" ", replayColumn+"  ", changeWords(c))
	}
	for _, problem := range r.Refused {
		out.wrap(replayColumn+"! ", replayColumn+"  ", strings.TrimSpace(problem.Pointer+" "+problem.Detail))
	}
}

// changeWords is a change of a term's effect in words.
func changeWords(c review.EffectChange) string {
	switch {
	case c.Then == nil && c.Now == nil: // no gate says so
		return c.Term
	case c.Then == nil:
		return fmt.Sprintf("%s %s, %s", c.Term, c.Now.Effect, words(c.Now.Finding))
	case c.Now == nil:
		return fmt.Sprintf("%s %s, %s", c.Term, c.Then.Effect, words(c.Then.Finding))
	}
	return fmt.Sprintf("%s %s → %s, %s", c.Term, c.Then.Effect, c.Now.Effect, words(c.Now.Finding))
}

func outcomeColour(o review.ReplayOutcome) string {
	switch o {
	case "admit":
		return green
	case "escalate":
		return yellow
	}
	return red
}

func words(s screening.State) string { return strings.ReplaceAll(string(s), "_", " ") }

// moment writes a time to the minute, a day's beginning as the day.
func moment(t time.Time) string {
	if t = t.UTC(); t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(minute)
}
