package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"weir/review"
	"weir/screening"
	"weir/store"
)

func newRetention() *cobra.Command {
	var configAt, output string
	var at databasePlace
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Erase the payloads that policies.yaml keeps no longer, or show which",
		Long: "The bytes of specs and decisions are kept by outcome and month, and go by whole\n" +
			"months, when the last of one is as old as retention in policies.yaml declares. A\n" +
			"running gate does so every hour; this command does it now, or with --dry-run only\n" +
			"shows what is there and when it goes. It works on the database: DATABASE_URL, or\n" +
			"the private Postgres.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			d, err := loadDeployment(configAt, slog.New(slog.DiscardHandler))
			if err != nil {
				return exitWith(exitUsage, err)
			}
			ctx, log := cmd.Context(), slog.New(slog.DiscardHandler)
			db, err := openDatabase(ctx, at, log)
			if err != nil {
				return exitWith(exitFailed, err)
			}
			defer db.close(context.WithoutCancel(ctx))
			st, err := store.Open(ctx, db.dsn, store.Config{Log: log}) // not migrated: the gate does that
			if err != nil {
				return exitWith(exitFailed, err)
			}
			defer st.Close()
			keep := d.policies.Retention()
			parts, err := st.PayloadParts(ctx, keep)
			var gone []store.PayloadPart
			if err == nil && !dryRun {
				gone, err = st.EraseOld(ctx, keep)
			}
			if err != nil {
				return exitWith(exitFailed, err)
			}
			return showRetention(cmd.OutOrStdout(), retained(parts, gone, keep), dryRun, output)
		},
	}
	configFlag(cmd, &configAt)
	at.flags(cmd.Flags(), "")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show; erase nothing")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

// retainedPart is a line of the report.
type retainedPart struct {
	Outcome    screening.Outcome `json:"outcome"`
	Month      string            `json:"month"`
	Bytes      int64             `json:"bytes"`
	Kept       review.Days       `json:"kept,omitzero"` // absent: for ever
	ErasedFrom string            `json:"erased_from,omitzero"`
	State      string            `json:"state"` // kept, due, in_use or erased
	Screenings *int64            `json:"screenings,omitzero"`
	InUse      int64             `json:"in_use,omitzero"`
}

func retained(parts, gone []store.PayloadPart, keep review.Retention) []retainedPart {
	out := make([]retainedPart, len(parts))
	for i, p := range parts {
		r := retainedPart{Outcome: p.Outcome, Month: p.Month.Format("2006-01"), Bytes: p.Bytes, Kept: keep[p.Outcome], State: "kept", InUse: p.InUse}
		if !p.DueAt.IsZero() {
			r.ErasedFrom = p.DueAt.Format(time.DateOnly)
		}
		if p.Due {
			r.State, r.Screenings = "due", &parts[i].Screenings
		}
		if p.InUse > 0 {
			r.State = "in_use"
		}
		for _, g := range gone {
			if g.Outcome == p.Outcome && g.Month.Equal(p.Month) {
				r.State = "erased"
			}
		}
		out[i] = r
	}
	return out
}

func showRetention(w io.Writer, parts []retainedPart, dryRun bool, output string) error {
	if output == "json" {
		return writeJSON(w, map[string]any{"dry_run": dryRun, "payloads": parts})
	}
	out, counts := &lines{w: w}, map[string]int{}
	for _, p := range parts {
		counts[p.State]++
	}
	if dryRun {
		out.put("%s due, %d in use, %d kept; nothing was erased", count(counts["due"], "month", "months"), counts["in_use"], counts["kept"])
	} else {
		out.put("%s erased, %d in use, %d kept", count(counts["erased"], "month", "months"), counts["in_use"], counts["kept"]+counts["due"])
	}
	out.put("")
	out.put("  %-8s  %-9s  %9s  %-6s  %-11s  %s", "month", "outcome", "MB", "kept", "erased from", "state")
	for _, p := range parts {
		kept, from, state := "ever", "-", p.State
		if p.Kept > 0 {
			kept, from = fmt.Sprintf("%dd", p.Kept), p.ErasedFrom
		}
		switch {
		case p.State == "in_use":
			state = fmt.Sprintf("waits, %d in use", p.InUse)
		case p.Screenings != nil:
			state = fmt.Sprintf("%s, %s", p.State, count(int(*p.Screenings), "screening", "screenings"))
		}
		out.put("  %-8s  %-9s  %9.1f  %-6s  %-11s  %s", p.Month, p.Outcome, float64(p.Bytes)/1e6, kept, from, state)
	}
	return out.err
}
