package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
)

// watcher asks a gate which live admissions its packs would not give now.
type watcher struct {
	c       *client.Client
	timeout time.Duration
	output  string
	stdout  io.Writer
	stderr  io.Writer

	told *client.DriftPage // the last report
}

func newWatch() *cobra.Command {
	w := watcher{}
	var (
		conn  gateFlags
		once  bool
		every time.Duration
	)
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Report live admissions that the packs in force would not give now",
		Long: "Asks a gate for the admissions that were given by other packs, or another engine,\n" +
			"than those in force, and reports which of them would be blocked or escalated now,\n" +
			"with the terms. It changes nothing: what a new safety floor blocks the gate ends by\n" +
			"itself. Needs a key of scope audit or policy, and keeps nothing.\n\n" +
			"It reports at the beginning and then each time packs or engine change, until it is\n" +
			"interrupted; an answer that does not come is said and asked for again. With --once\n" +
			"it reports once and exits 0: no drift; 13: some admission would not be given now;\n" +
			"14: no admission lives, so that no drift shows nothing; 20: no answer.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(w.output, "github"); err != nil {
				return err
			}
			if every < time.Second {
				return exitWith(exitUsage, errors.New("--interval must be at least 1s"))
			}
			if once && cmd.Flags().Changed("interval") {
				return exitWith(exitUsage, errors.New("--once looks once, so --interval does not go with it"))
			}
			var err error
			if w.c, err = conn.client(); err != nil {
				return err
			}
			w.timeout, w.stdout, w.stderr = conn.timeout, cmd.OutOrStdout(), cmd.ErrOrStderr()
			if once {
				return w.once(cmd.Context())
			}
			tick := time.NewTicker(every)
			defer tick.Stop()
			return w.run(cmd.Context(), tick.C)
		},
	}
	conn.add(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "report once and exit; for cron")
	cmd.Flags().DurationVar(&every, "interval", 5*time.Minute, "how often to ask whether packs or engine changed")
	cmd.Flags().StringVar(&w.output, "output", "text", "text, json or github; json is a line per report, unless --once")
	return cmd
}

// once reports and ends with what there is.
func (w *watcher) once(ctx context.Context) error {
	d, err := w.drift(ctx)
	if err != nil {
		return err
	}
	if err := w.show(d, true); err != nil {
		return exitWith(exitFailed, err)
	}
	switch {
	case len(d.Drift) > 0:
		return exitWith(exitDiffers, nil)
	case d.Live == 0:
		return exitWith(exitNothing, errors.New("no admission lives in this project, so that nothing drifted shows nothing"))
	}
	return nil
}

// run reports when packs or engine are others than in the last report, until ctx ends.
// What is wrong with the call ends it; a gate that does not answer does not.
func (w *watcher) run(ctx context.Context, tick <-chan time.Time) error {
	for {
		err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case isNoAnswer(err):
			fmt.Fprintf(w.stderr, "weir: %s\n", printable(err.Error()))
		case err != nil:
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

// look reports if there is something new to say.
func (w *watcher) look(ctx context.Context) error {
	if w.told != nil {
		ctx, cancel := context.WithTimeout(ctx, w.timeout)
		defer cancel()
		now, err := w.c.Packs(ctx)
		if err != nil {
			return err
		}
		if slices.Equal(now.Packs, w.told.Packs) && now.Engine == w.told.Engine {
			return nil
		}
	}
	d, err := w.drift(ctx)
	if err != nil {
		return err
	}
	if err := w.show(d, false); err != nil {
		return exitWith(exitFailed, err)
	}
	w.told = d
	return nil
}

// drift reads all pages. Packs or an engine that change on the way begin it anew: half of a
// report by these and half by those is none.
func (w *watcher) drift(ctx context.Context) (*client.DriftPage, error) {
	const tries = 3
	for range tries {
		sum, err := w.pages(ctx)
		if err != nil || sum != nil {
			return sum, err
		}
	}
	return nil, noAnswer(errors.New("packs or engine changed again and again while it was asked"))
}

// pages gives the sum of the pages, nil if they do not belong together.
func (w *watcher) pages(ctx context.Context) (sum *client.DriftPage, err error) {
	for next := ""; ; {
		page, err := w.page(ctx, next)
		if err != nil {
			return nil, err
		}
		if page.Next != "" && page.Next == next {
			return nil, noAnswer(errors.New("the drift does not go on"))
		}
		if sum == nil {
			sum = page
		} else {
			if !slices.Equal(sum.Packs, page.Packs) || sum.Engine != page.Engine || sum.Project != page.Project {
				return nil, nil
			}
			sum.Live, sum.Other, sum.Erased = sum.Live+page.Live, sum.Other+page.Other, sum.Erased+page.Erased
			sum.Drift = append(sum.Drift, page.Drift...)
		}
		if next = page.Next; next == "" {
			sum.Next = ""
			return sum, nil
		}
	}
}

func (w *watcher) page(ctx context.Context, cursor string) (*client.DriftPage, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.c.Drift(ctx, cursor, 200)
}

func (w *watcher) show(d *client.DriftPage, once bool) error {
	switch {
	case w.output == "github":
		return driftGitHub(w.stdout, d)
	case w.output == "text":
		return driftText(w.stdout, d)
	case once:
		return writeJSON(w.stdout, d)
	}
	line, err := json.Marshal(d, json.Deterministic(true))
	if err == nil {
		_, err = fmt.Fprintf(w.stdout, "%s\n", line)
	}
	return err
}

// driftHeadline is the report in a line.
func driftHeadline(d *client.DriftPage) string {
	if d.Live == 0 {
		return "No admission lives in project " + d.Project
	}
	return fmt.Sprintf("%d of %s would not be given now", len(d.Drift), count(d.Live, "live admission", "live admissions"))
}

func driftText(w io.Writer, d *client.DriftPage) error {
	p, out := paintFor(w), &lines{w: w}
	colour := green
	if len(d.Drift) > 0 || d.Live == 0 {
		colour = yellow
	}
	out.put("%s", p.bold(colour, printable(driftHeadline(d))))
	out.wrap("  ", "", fmt.Sprintf("project %s, as of %s; %d given by other packs or another engine than those in force", d.Project, d.AsOf, d.Other))
	var names []string
	for _, ref := range d.Packs {
		names = append(names, fmt.Sprintf("%s %s (%.12s)", ref.ID, ref.Version, ref.SHA256))
	}
	out.wrap("  packs: ", "", strings.Join(names, ", "))
	if d.Erased > 0 {
		out.wrap("  ", "", fmt.Sprintf("%s erased and cannot be decided again.", count(d.Erased, "spec was", "specs were")))
	}
	if len(d.Drift) == 0 {
		return out.err
	}
	out.put("")
	out.put("%s", p.bold(plain, "ADMITTED, NOW"+replayColumn[len("ADMITTED, NOW"):]+"RUN, SCREENING, WHAT MADE THE DIFFERENCE"))
	for i := range d.Drift {
		x := &d.Drift[i]
		now := "→ " + string(x.Now)
		out.wrap(p.bold(outcomeColour(x.Now), printable(now))+replayColumn[min(visible(now), len(replayColumn)-1):], replayColumn, x.RunRef)
		out.wrap(replayColumn, "", x.ScreeningID)
		out.wrap(replayColumn, "", fmt.Sprintf("admitted by %s until %s", x.DecidedBy, moment(x.AdmittedUntil)))
		renderChanges(out, &x.Replayed)
	}
	return out.err
}

func driftGitHub(w io.Writer, d *client.DriftPage) error {
	out := &lines{w: w}
	out.put("::notice title=weir::%s", githubData(printable(driftHeadline(d))))
	var table strings.Builder
	fmt.Fprintf(&table, "### weir: %s\n\n", markdown(driftHeadline(d)))
	if len(d.Drift) > 0 {
		table.WriteString("| now | run | screening | admitted until | what made the difference |\n|---|---|---|---|---|\n")
	}
	for i := range d.Drift {
		x := &d.Drift[i]
		command := "error"
		if x.Now == "escalate" {
			command = "warning"
		}
		var said []string
		for _, c := range x.Changes {
			said = append(said, changeWords(c))
		}
		for _, p := range x.Refused {
			said = append(said, problemLine(p))
		}
		out.put("::%s title=%s::%s", command, githubProperty(printable("weir: admitted, now "+string(x.Now))),
			githubData(printable(x.RunRef+", screening "+x.ScreeningID+": "+strings.Join(said, "; "))))
		if i < mostShown {
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", markdown(string(x.Now)), markdown(x.RunRef), markdown(x.ScreeningID), moment(x.AdmittedUntil), markdown(strings.Join(said, "; ")))
		}
	}
	if len(d.Drift) > mostShown {
		fmt.Fprintf(&table, "\nAnd %d more.\n", len(d.Drift)-mostShown)
	}
	githubSummarise(out, table.String()+"\n")
	return out.err
}
