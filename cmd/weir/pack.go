package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/screening"
)

func newPack() *cobra.Command {
	cmd := &cobra.Command{Use: "pack", Short: "Look at, check and ratify packs"}
	cmd.AddCommand(newPackList(), newPackValidate(), newPackTest(), newPackRatify(), newPackDiff())
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
		return packError(err)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PACK\tVERSION\tLAYER\tTERMS\tSHA256\tIN FORCE")
	var bundles []*screening.Bundle
	for _, ref := range refs {
		b, err := loadBundle(ref, reg)
		if err != nil {
			return packError(err)
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
	var reportKey string
	cmd := &cobra.Command{Use: "validate PACK…", Short: "Check that packs and their cases are well-formed", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, ref := range args {
				b, err := loadBundle(ref, screening.NewRegistry())
				if err != nil {
					return packError(err)
				}
				cases := "no cases"
				if b.Cases != nil {
					cases = count(len(b.Cases.Cases)+len(b.Cases.Complete), "case", "cases")
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is well-formed: %s, %s\n", ref, count(len(b.Pack.Terms), "term", "terms"), cases); err != nil {
					return err
				}
				if reportKey == "" {
					continue
				}
				if err := checkReportSignature(cmd.Context(), ref, reportKey); err != nil {
					return exitWith(exitPackInvalid, err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has a report signed by this key\n", ref); err != nil {
					return err
				}
			}
			return nil
		}}
	cmd.Flags().StringVar(&reportKey, "report-key", "", "public key (PEM) that must have signed the reports; packs are then files")
	return cmd
}

func newPackTest() *cobra.Command {
	var asOf string
	cmd := &cobra.Command{Use: "test PACK", Short: "Run a pack's cases and gates without changing anything", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := ratification{asOf: asOf}.run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), report)
		}}
	cmd.Flags().StringVar(&asOf, "as-of", "", "day of the decisions, YYYY-MM-DD (default today, UTC)")
	return cmd
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
