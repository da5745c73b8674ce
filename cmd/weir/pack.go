package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/screening"
)

func newPack() *cobra.Command {
	cmd := &cobra.Command{Use: "pack", Short: "Look at, check and ratify packs"}
	cmd.AddCommand(newPackList(), newPackValidate(), newPackTest(), newPackRatify())
	return cmd
}

func newPackList() *cobra.Command {
	var verbose bool
	var refs []string
	cmd := &cobra.Command{Use: "list", Short: "List packs and whether they are in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if refs == nil {
				refs = shippedPacks()
			}
			return listPacks(cmd.OutOrStdout(), refs, verbose)
		}}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every term")
	cmd.Flags().StringSliceVar(&refs, "packs", nil, "packs to list (default: all shipped ones)")
	return cmd
}

func listPacks(w io.Writer, refs []string, verbose bool) error {
	reg := screening.NewRegistry()
	floor, err := loadBundle(screening.FloorID, reg)
	if err != nil {
		return exitWith(exitPackInvalid, err)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PACK\tVERSION\tLAYER\tTERMS\tSHA256\tIN FORCE")
	var bundles []*screening.Bundle
	for _, ref := range refs {
		b, err := loadBundle(ref, reg)
		if err != nil {
			return exitWith(exitPackInvalid, err)
		}
		bundles = append(bundles, b)
		state := "yes"
		if err := b.InForce(reg, floor.Pack); err != nil {
			state = "no"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%.12s\t%s\n", b.Pack.ID, b.Pack.Version, b.Pack.Layer, len(b.Pack.Terms), b.Pack.SHA256, state)
	}
	if err := tw.Flush(); err != nil || !verbose {
		return err
	}
	out := &lines{w: w}
	for _, b := range bundles {
		for i := range b.Pack.Terms {
			t := &b.Pack.Terms[i]
			out.put("")
			out.put("%s:%s  %s, %s", b.Pack.Layer, t.ID, t.Response, t.Severity)
			out.wrap("  ", "  ", t.Title)
			out.wrap("  ", "  ", t.Description)
			if t.Remedy != "" {
				out.wrap("  passes: ", "          ", t.Remedy)
			}
			for _, r := range t.References {
				out.wrap("  "+r.Relation+": ", "      ", strings.TrimSpace(r.Scheme+" "+r.Version)+" "+r.ID)
			}
		}
	}
	return out.err
}

func newPackValidate() *cobra.Command {
	return &cobra.Command{Use: "validate PACK…", Short: "Check that packs and their cases are well-formed", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, ref := range args {
				b, err := loadBundle(ref, screening.NewRegistry())
				if err != nil {
					return exitWith(exitPackInvalid, err)
				}
				cases := "no cases"
				if b.Cases != nil {
					cases = count(len(b.Cases.Cases)+len(b.Cases.Complete), "case", "cases")
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is well-formed: %s, %s\n", ref, count(len(b.Pack.Terms), "term", "terms"), cases); err != nil {
					return err
				}
			}
			return nil
		}}
}

func newPackTest() *cobra.Command {
	var asOf string
	cmd := &cobra.Command{Use: "test PACK", Short: "Run a pack's cases and gates without changing anything", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, report, err := runGates(args[0], asOf)
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), report)
		}}
	cmd.Flags().StringVar(&asOf, "as-of", "", "day of the decisions, YYYY-MM-DD (default today, UTC)")
	return cmd
}

func newPackRatify() *cobra.Command {
	var asOf string
	cmd := &cobra.Command{
		Use:   "ratify FILE",
		Short: "Run the gates, write the report and seal the pack",
		Long: "Runs a pack's gates on its cases. When all pass, writes the report beside the\n" +
			"pack (FILE.report.json) and its digest into the pack: the pack is then in force.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			if _, err := os.Stat(path); err != nil {
				return exitWith(exitUsage, err)
			}
			_, report, err := runGates(path, asOf)
			if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			if err := writeSeal(path, report); err != nil {
				return exitWith(exitFailed, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is ratified: report %.12s\n", report.PackID, report.SHA256)
			return err
		},
	}
	cmd.Flags().StringVar(&asOf, "as-of", "", "day of the decisions, YYYY-MM-DD (default today, UTC)")
	return cmd
}

func runGates(ref, asOf string) (*screening.Bundle, *screening.Report, error) {
	day := screening.Day(time.Now().UTC().Format(time.DateOnly))
	if asOf != "" {
		var err error
		if day, err = screening.ParseDay(asOf); err != nil {
			return nil, nil, exitWith(exitUsage, err)
		}
	}
	reg := screening.NewRegistry()
	floor, err := loadBundle(screening.FloorID, reg)
	if err != nil {
		return nil, nil, exitWith(exitPackInvalid, err)
	}
	b, err := loadBundle(ref, reg)
	if err != nil {
		return nil, nil, exitWith(exitPackInvalid, err)
	}
	if b.Cases == nil {
		return nil, nil, exitWith(exitPackInvalid, fmt.Errorf("%s has no cases; put them in %s", ref, sibling(ref, ".cases.yaml")))
	}
	report, err := b.Ratify(reg, floor.Pack, day)
	if err != nil {
		return nil, nil, exitWith(exitPackInvalid, err)
	}
	return b, report, nil
}

// printReport shows the gates; its error carries the exit code when one failed.
func printReport(w io.Writer, r *screening.Report) error {
	out := &lines{w: w}
	for _, g := range r.Gates {
		word := "pass"
		if !g.Passed {
			word = "FAIL"
		}
		out.wrap(fmt.Sprintf("%s  %-9s ", word, g.Name), "                ", g.Detail)
	}
	if out.err != nil {
		return out.err
	}
	if !r.Ratified {
		return exitWith(exitPackInvalid, errors.New("the pack does not pass its gates"))
	}
	return nil
}

// writeSeal writes the report first: a pack that names a report that is not
// there is not in force, which is the safe half of the two.
func writeSeal(path string, report *screening.Report) error {
	data, err := screening.MarshalReport(report)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sibling(path, ".report.json"), data, 0o644); err != nil {
		return err
	}
	pack, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sealed, err := screening.SealPack(pack, report.SHA256)
	if err != nil {
		return err
	}
	return os.WriteFile(path, sealed, 0o644)
}
