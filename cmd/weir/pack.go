package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/screening"
)

func newPack() *cobra.Command {
	cmd := group("pack", "Look at, check and ratify packs")
	cmd.AddCommand(newPackList(), newPackValidate(), newPackTest(), newPackRatify(), newPackDiff(), newPackReplay())
	return cmd
}

func newPackList() *cobra.Command {
	var verbose bool
	var refs []string
	var output string
	cmd := &cobra.Command{Use: "list", Short: "List packs and whether they are in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "markdown"); err != nil {
				return err
			}
			if refs == nil {
				refs = shippedPacks()
			}
			list, err := listPacks(refs)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return writeJSON(cmd.OutOrStdout(), list)
			case "markdown":
				return renderPackPage(cmd.OutOrStdout(), list)
			}
			return renderPacks(cmd.OutOrStdout(), list, verbose)
		}}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every term")
	cmd.Flags().StringSliceVar(&refs, "packs", nil, "packs to list (default: all shipped ones)")
	cmd.Flags().StringVar(&output, "output", "text", "text, json or markdown")
	return cmd
}

// listedPack is a pack with its state.
type listedPack struct {
	screening.PackRef
	InForce bool                 `json:"in_force"`
	Reason  string               `json:"reason,omitzero"` // why not
	Extends []screening.Extended `json:"extends,omitzero"`
	Raises  []screening.Raise    `json:"raises,omitzero"`
	Terms   []screening.Term     `json:"terms"`

	pack  *screening.Pack
	bases []*screening.Pack
}

func listPacks(refs []string) ([]listedPack, error) {
	reg := screening.NewRegistry()
	floor, err := loadBundle(screening.FloorID, reg)
	if err != nil {
		return nil, packError(err)
	}
	list := make([]listedPack, len(refs))
	bundles, named := make([]*screening.Bundle, len(refs)), make([]*screening.Pack, len(refs))
	for i, ref := range refs {
		if bundles[i], err = loadBundle(ref, reg); err != nil {
			return nil, packError(err)
		}
		named[i] = bundles[i].Pack
	}
	for i, b := range bundles {
		if err := findBases(b, refs[i], named, reg); err != nil {
			return nil, packError(err)
		}
		list[i] = listedPack{PackRef: screening.PackRef{ID: b.Pack.ID, Version: b.Pack.Version, Layer: b.Pack.Layer, SHA256: b.Pack.SHA256},
			InForce: true, Extends: b.Pack.Extends, Raises: b.Pack.Raises, Terms: b.Pack.Terms, pack: b.Pack, bases: b.Bases}
		if err := b.InForce(reg, floor.Pack); err != nil {
			list[i].InForce, list[i].Reason = false, err.Error()
		}
	}
	return list, nil
}

func renderPacks(w io.Writer, list []listedPack, verbose bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PACK\tVERSION\tLAYER\tTERMS\tSHA256\tIN FORCE")
	for _, p := range list {
		state := "yes"
		if !p.InForce {
			state = "no"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%.12s\t%s\n", p.ID, p.Version, p.Layer, len(p.Terms), p.SHA256, state)
	}
	if err := tw.Flush(); err != nil || !verbose {
		return err
	}
	out := &lines{w: w}
	for _, p := range list {
		out.put("")
		out.wrap("", "  ", p.ID)
		out.put("  sha256 %s", p.SHA256)
		for _, x := range p.Extends {
			out.wrap("  extends ", "          ", fmt.Sprintf("%s  %.12s…", x.ID, x.SHA256))
		}
		for _, c := range p.raised() {
			out.wrap("  raises  ", "          ", c.term+"  "+c.String())
		}
		for i := range p.Terms {
			t := &p.Terms[i]
			out.put("")
			out.put("%s:%s  %s, %s", p.Layer, t.ID, t.Response, t.Severity)
			out.wrap("  ", "  ", t.Title)
			out.wrap("  ", "  ", t.Description)
			if t.Remedy != "" {
				out.wrap("  passes: ", "          ", t.Remedy)
			}
			if in := inForce(t); in != "" {
				out.wrap("  in force: ", "            ", in)
			}
			for _, r := range t.References {
				out.wrap("  "+r.Relation+": ", "      ", strings.TrimSpace(r.Scheme+" "+r.Version)+" "+r.ID)
			}
		}
	}
	return out.err
}

// inForce says when a term is in force, "" for always.
func inForce(t *screening.Term) string {
	switch from, sunset := string(t.EffectiveFrom), string(t.Sunset); {
	case from == "" && sunset == "":
		return ""
	case from == "":
		return "before " + sunset
	case sunset == "":
		return "from " + from
	default:
		return "from " + from + ", before " + sunset
	}
}

// raisedTerm is a term of another pack as a profile leaves it.
type raisedTerm struct {
	term     string // tagged
	was, now screening.Term
}

// String says what changes, in words.
func (r raisedTerm) String() string {
	var said []string
	if r.now.Response != r.was.Response {
		said = append(said, fmt.Sprintf("response %s → %s", r.was.Response, r.now.Response))
	}
	if was, now := uncheckedEffect(&r.was), uncheckedEffect(&r.now); now != was {
		said = append(said, fmt.Sprintf("not checkable %s → %s", was, now))
	}
	return strings.Join(said, ", ")
}

// raised lists what a profile raises, as the file has it.
func (p *listedPack) raised() (out []raisedTerm) {
	for _, r := range p.Raises {
		for _, b := range p.bases {
			if i := slices.IndexFunc(b.Terms, func(t screening.Term) bool { return t.ID == r.Term }); i >= 0 {
				out = append(out, raisedTerm{string(b.Layer) + ":" + r.Term, b.Terms[i], r.On(&b.Terms[i])})
			}
		}
	}
	return out
}

// validated is what weir pack validate says of a pack.
type validated struct {
	Pack   string `json:"pack"`
	Terms  int    `json:"terms"`
	Cases  int    `json:"cases"`
	Signed bool   `json:"signed"` // by the key that was given
}

func newPackValidate() *cobra.Command {
	var reportKey, output string
	cmd := &cobra.Command{Use: "validate PACK…", Short: "Check that packs and their cases are well-formed", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			reg := screening.NewRegistry()
			floor, err := loadBundle(screening.FloorID, reg)
			if err != nil {
				return packError(err)
			}
			list := make([]validated, len(args))
			for i, ref := range args {
				b, err := loadBundle(ref, reg)
				if err != nil {
					return packError(err)
				}
				if err := findBases(b, ref, nil, reg); err != nil {
					return packError(err)
				}
				list[i] = validated{Pack: ref, Terms: len(b.Pack.Terms), Signed: reportKey != ""}
				if b.Cases != nil {
					list[i].Cases = len(b.Cases.Cases) + len(b.Cases.Complete)
				}
				if reportKey == "" {
					continue
				}
				if err := checkReportSignature(cmd.Context(), ref, reportKey); err != nil {
					return exitWith(exitPackInvalid, err)
				}
				// A signature over a report says nothing of a pack that was changed since.
				if err := b.InForce(reg, floor.Pack); err != nil {
					return exitWith(exitPackInvalid, err)
				}
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), list)
			}
			out := &lines{w: cmd.OutOrStdout()}
			for _, v := range list {
				out.put("%s is well-formed: %s, %s", v.Pack, count(v.Terms, "term", "terms"), count(v.Cases, "case", "cases"))
				if v.Signed {
					out.put("%s is in force, its report signed by this key", v.Pack)
				}
			}
			return out.err
		}}
	cmd.Flags().StringVar(&reportKey, "report-key", "", "public key (PEM) that must have signed the reports; packs are then files")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

func newPackTest() *cobra.Command {
	var asOf, output string
	cmd := &cobra.Command{Use: "test PACK", Short: "Run a pack's cases and gates without changing anything", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			report, err := ratification{asOf: asOf}.run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if output == "json" {
				if err := writeJSON(cmd.OutOrStdout(), report); err != nil {
					return err
				}
				return failedGates(report)
			}
			return printReport(cmd.OutOrStdout(), report)
		}}
	cmd.Flags().StringVar(&asOf, "as-of", "", "day of the decisions, YYYY-MM-DD (default today, UTC)")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
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
		out.wrap(fmt.Sprintf("%s  %-10s ", word, g.Name), "                 ", g.Detail)
	}
	if out.err != nil {
		return out.err
	}
	return failedGates(r)
}

func failedGates(r *screening.Report) error {
	if !r.Ratified {
		return exitWith(exitPackInvalid, errors.New("the pack does not pass its gates"))
	}
	return nil
}
