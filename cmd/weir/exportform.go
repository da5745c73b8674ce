package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"weir/screening"
	"weir/screening/formats"
)

// specForms are the formats of weir export that are of one spec.
var specForms = []string{"cyclonedx", "spdx", "eu-summary"}

// exportForm writes a spec in one of the forms that regulators and customers ask for.
func exportForm(cmd *cobra.Command, o exportOptions, args []string) error {
	if len(args) == 0 {
		return exitWith(exitUsage, fmt.Errorf("--format %s is of one spec: give the id of a screening, or a file", o.format))
	}
	for _, name := range []string{"from", "to", "since", "run-ref", "outcome", "digests-only", "resume", "key"} {
		if cmd.Flags().Changed(name) {
			return exitWith(exitUsage, fmt.Errorf("--%s is for exports of the record; --format %s is of one spec", name, o.format))
		}
	}
	raw, err := specOf(cmd, o.conn, args[0])
	if err != nil {
		return err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	opts := formats.ExportOptions{
		Created: time.Now().UTC().Format(time.RFC3339),
		// The same spec has the same ids, wherever it is exported.
		Namespace:  "https://spdx.org/spdxdocs/weir-" + spec.SHA256.String(),
		SpecSHA256: spec.SHA256.String(),
	}
	var text []byte
	var notes string
	switch o.format {
	case "eu-summary":
		text, notes, err = euSummary(spec.Spec, opts, strings.EqualFold(filepath.Ext(o.out), ".json"))
	case "spdx":
		text, notes, err = bomOf(formats.ExportSPDX(spec.Spec, opts))
	default:
		text, notes, err = bomOf(formats.ExportCycloneDX(spec.Spec, opts))
	}
	if err != nil {
		return exitWith(exitFailed, fmt.Errorf("make the export: %w", err))
	}
	if o.out == "" || o.out == "-" {
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return exitWith(exitFailed, err)
		}
	} else if err := writeNew(o.out, text); err != nil {
		return err
	}
	_, err = io.WriteString(cmd.ErrOrStderr(), notes)
	return err
}

// specOf gives the bytes of a spec: of a screening, or of a file.
func specOf(cmd *cobra.Command, conn gateFlags, arg string) ([]byte, error) {
	if uuid.Validate(arg) != nil {
		raw, err := readInput(cmd.InOrStdin(), arg)
		if err != nil {
			return nil, exitWith(exitUsage, err)
		}
		return raw, nil
	}
	c, err := conn.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), conn.timeout)
	defer cancel()
	raw, err := c.Spec(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("read the spec of the screening: %w", err)
	}
	return raw, nil
}

// bomOf is an export with what it does not hold, for people.
func bomOf(x *formats.Export, err error) (text []byte, notes string, _ error) {
	if err != nil {
		return nil, "", err
	}
	return x.Bytes, notHeld(x.NotHeld, "the format has no field for it; the export lists it as weir:not_held"), nil
}

// notHeld tells what of a spec an export does not say.
func notHeld(pointers []string, why string) string {
	var b strings.Builder
	if len(pointers) > 0 {
		fmt.Fprintf(&b, "weir: %s of the spec not held: %s\n", count(len(pointers), "statement", "statements"), why)
	}
	for _, p := range pointers {
		fmt.Fprintf(&b, "  %s\n", printable(p))
	}
	return b.String()
}

func euSummary(spec *screening.Spec, opts formats.ExportOptions, asJSON bool) (text []byte, notes string, _ error) {
	s, err := formats.Summarise(spec, opts)
	if err != nil {
		return nil, "", err
	}
	notes = fmt.Sprintf("weir: a draft with %s to fill in; they are listed at its end\n", count(len(s.Gaps), "gap", "gaps"))
	var b bytes.Buffer
	if asJSON {
		err = json.MarshalWrite(&b, s, jsontext.WithIndent("  "))
		b.WriteByte('\n')
	} else {
		err = writeSummary(&b, s)
	}
	return b.Bytes(), notes, err
}

// summaryParts are the three parts of the template.
var summaryParts = map[string]string{"1": "General information", "2": "List of data sources", "3": "Aspects of data processing"}

// writeSummary writes the draft of a training-content summary as a page. What the
// spec says is text in it, whatever it holds.
func writeSummary(w io.Writer, s *formats.Summary) error {
	out := &lines{w: w}
	out.put("# Public summary of training content (draft)")
	out.put("")
	out.put("**%s**", markdown(s.Notice))
	out.put("")
	out.put("- Template: %s", markdown(s.Template))
	out.put("- Training run: %s", markdown(s.RunRef))
	out.put("- SHA-256 of the spec: `%s`", s.SpecSHA256)
	out.put("- Drafted: %s", s.Created)
	out.put("")
	out.put("After each answer stand the places of the spec that it is from.")
	part := ""
	for _, sec := range s.Sections {
		if number, _, _ := strings.Cut(sec.Number, "."); number != part {
			part = number
			out.put("")
			out.put("## %s. %s", part, summaryParts[part])
		}
		out.put("")
		out.put("### %s. %s", sec.Number, markdown(sec.Title))
		for _, f := range sec.Fields {
			out.put("")
			out.put("**%s**", markdown(f.Asks))
			out.put("")
			for _, c := range f.Answer {
				out.put("- %s (%s)", markdown(c.Text), markdown(strings.Join(c.From, ", ")))
			}
			if f.Gap != "" {
				out.put("- *%s: %s*", f.State, markdown(f.Gap))
			}
		}
	}
	out.put("")
	out.put("## Gaps")
	out.put("")
	for _, g := range s.Gaps {
		out.put("- %s: %s", markdown(g.Field), markdown(g.Gap))
	}
	if len(s.NotHeld) > 0 {
		out.put("")
		out.put("## In the spec, but not asked for")
		out.put("")
		for _, p := range s.NotHeld {
			out.put("- %s", markdown(p))
		}
	}
	return out.err
}
