package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/store/ledger"
)

type exportOptions struct {
	from, to    string
	since       string
	runRef      string
	outcome     string
	digestsOnly bool
	format      string
	resume      bool
	out         string
	keys        []string
	conn        gateFlags
}

func newExport() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export -o DIR|FILE.zip | export --format ndjson|csv|parquet -o FILE | export --format FORM ID|SPEC [-o FILE]",
		Short: "Export the record for an auditor, or a spec in a regulator's form",
		Long: "Writes a bundle that an auditor can check alone with weir verify: the log of\n" +
			"the time asked for without a gap, specs and decisions, packs, proofs, a signed\n" +
			"manifest, and pages that explain it. Screenings that do not fit a filter are\n" +
			"in it by hash only.\n\n" +
			"Interrupted, the same command goes on where it was. At the end the bundle is\n" +
			"verified.\n\n" +
			"The other formats are a row for each decision, in the order of the log, and\n" +
			"prove nothing. NDJSON has the shape of decision logs, CSV is safe to open in a\n" +
			"spreadsheet. With --resume, NDJSON and CSV go on after the last row of the file:\n" +
			"after an interruption, or to add what came since.\n\n" +
			"The forms are of one spec: the id of a screening, whose spec is read from the\n" +
			"gate, or a file (- for standard input), which needs no gate. cyclonedx is a BOM\n" +
			"of CycloneDX 1.6, spdx a document of SPDX 3.0.1, eu-summary a draft of the\n" +
			"training-content summary of Article 53(1)(d) of the EU AI Act, in Markdown, or in\n" +
			"JSON if the file is called so. What a form cannot hold, and what the spec does not\n" +
			"state, is listed in it.\n\n" +
			"Exit codes: 0 done, 2 usage, 20 the gate did not answer.",
		Example: "  weir export -o audit-2026-11 --from 2026-11-01 --to 2026-12-01\n" +
			"  weir export --format eu-summary spec.yaml -o summary.md",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case slices.Contains(specForms, o.format):
				return exportForm(cmd, o, args)
			case len(args) > 0:
				return exitWith(exitUsage, fmt.Errorf("an ID or a SPEC goes with --format %s; the other exports are of the record", oneOf(specForms)))
			case o.out == "":
				return exitWith(exitUsage, errors.New("-o says where to write the export"))
			case o.format != "bundle":
				return exportFlat(cmd, o)
			case o.resume:
				return exitWith(exitUsage, errors.New("--resume goes with --format ndjson or csv; a bundle that was cut off goes on by itself"))
			}
			return export(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "directory, .zip or other file to write (a form: default standard output)")
	f.StringVar(&o.from, "from", "", "events from then on: a day (UTC), a time, or an age like 30d")
	f.StringVar(&o.to, "to", "", "events before then (default now)")
	f.StringVar(&o.since, "since", "", "bundle of the export before, to go on from")
	f.StringVar(&o.runRef, "run-ref", "", "only screenings whose run_ref begins so")
	f.StringVar(&o.outcome, "outcome", "", "only screenings that the packs decided so: admit, escalate or block")
	f.BoolVar(&o.digestsOnly, "digests-only", false, "leave out the bytes of specs and decisions")
	f.StringVar(&o.format, "format", "bundle", "bundle, ndjson, csv, parquet, cyclonedx, spdx or eu-summary")
	f.BoolVar(&o.resume, "resume", false, "go on after the last row of the file (ndjson, csv)")
	f.StringSliceVar(&o.keys, "key", nil, "public key of the gate, to verify the bundle with")
	o.conn.add(cmd)
	return cmd
}

// exportState is kept beside a download that is not finished: with it the same
// archive can be asked for again.
type exportState struct {
	Query string `json:"query"`
	Size  int64  `json:"size"` // of the log; 0 until the gate has said it
}

func export(cmd *cobra.Command, o exportOptions) error {
	keys, err := loadPublicKeys(o.keys)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	query, err := o.query()
	if err != nil {
		return exitWith(exitUsage, err)
	}
	asZIP := strings.EqualFold(filepath.Ext(o.out), ".zip")
	if _, err := os.Stat(o.out); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return exitWith(exitUsage, fmt.Errorf("%s is there already; choose another name", o.out))
	}
	c, err := o.conn.client()
	if err != nil {
		return err
	}
	part := strings.TrimSuffix(o.out, string(filepath.Separator)) + ".part"
	size, err := download(cmd.Context(), cmd.ErrOrStderr(), c, query, o, part)
	if err != nil {
		return err
	}
	archive, err := zip.OpenReader(part)
	if err != nil {
		return exitWith(exitFailed, errors.Join(fmt.Errorf("what arrived is not a whole archive: %w; run the command again", err), forget(part)))
	}
	defer archive.Close()
	lean()
	got, err := ledger.VerifyBundle(cmd.Context(), archive, ledger.VerifyOptions{Keys: keys})
	if err != nil {
		// Something was erased between two parts of the download, or it was spoilt on the way.
		return exitWith(exitFailed, errors.Join(fmt.Errorf("what arrived does not verify: %w; run the command again", err), forget(part)))
	}
	if asZIP {
		err = os.Rename(part, o.out)
	} else {
		err = unpack(archive, o.out)
	}
	if err != nil {
		return exitWith(exitFailed, err)
	}
	if err := forget(part); err != nil {
		return exitWith(exitFailed, err)
	}
	m := got.Manifest
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "EXPORTED  %s\n  %s of project %s, log entries %d to %d\n  check it: weir verify %s --key PUBLIC_KEY.pem\n",
		printable(o.out), count(int(m.Shown), "entry", "entries"), printable(m.Project), m.First, size-1, printable(o.out))
	return err
}

// query is what the gate is asked for, but for size and skip.
func (o exportOptions) query() (url.Values, error) {
	q := url.Values{}
	for _, t := range []struct{ name, text string }{{"from", o.from}, {"to", o.to}} {
		if t.text == "" {
			continue
		}
		at, err := parseMoment(t.text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", t.name, err)
		}
		q.Set(t.name, at.UTC().Format(time.RFC3339))
	}
	if o.runRef != "" {
		q.Set("run_ref", o.runRef)
	}
	if o.outcome != "" {
		q.Set("outcome", o.outcome)
	}
	if o.digestsOnly {
		q.Set("payloads", "digests")
	}
	if o.since != "" {
		files, done, err := openBundle(o.since)
		if err != nil {
			return nil, fmt.Errorf("--since: %w", err)
		}
		defer done()
		note, err := fs.ReadFile(files, ledger.CheckpointFile)
		if err != nil {
			return nil, fmt.Errorf("--since: %w", err)
		}
		old, err := ledger.ReadUnsigned(note)
		if err != nil {
			return nil, fmt.Errorf("--since: %w", err)
		}
		q.Set("since", strconv.FormatInt(old.Size, 10))
	}
	return q, nil
}

// download fetches the archive into a file, going on from what is there.
func download(ctx context.Context, stderr io.Writer, c *client.Client, query url.Values, o exportOptions, part string) (size int64, err error) {
	state := exportState{Query: stableQuery(query, o)}
	var there int64
	if data, err := os.ReadFile(part + ".json"); err == nil {
		var kept exportState
		if err := json.Unmarshal(data, &kept); err != nil || kept.Query != state.Query {
			return 0, exitWith(exitUsage, fmt.Errorf("%s is of another export; remove %s and %s, or choose another name", part, part, part+".json"))
		}
		if info, err := os.Stat(part); err == nil && kept.Size > 0 {
			state, there = kept, info.Size()
		}
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, exitWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(there); err != nil {
		return 0, exitWith(exitFailed, err)
	}
	if _, err := f.Seek(there, io.SeekStart); err != nil {
		return 0, exitWith(exitFailed, err)
	}
	if state.Size > 0 {
		query.Set("size", strconv.FormatInt(state.Size, 10))
		query.Set("skip", strconv.FormatInt(there, 10))
	}
	export, err := c.Export(ctx, o.conn.timeout, query)
	if err != nil {
		return 0, err
	}
	defer export.Close()
	if size = export.Size; size < 1 || state.Size > 0 && size != state.Size {
		return 0, noAnswer(errors.New("the answer was not the export asked for"))
	}
	state.Size = size
	kept, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(part+".json", kept, 0o600)
	}
	if err != nil {
		return 0, exitWith(exitFailed, err)
	}
	body, done := progress(stderr, "export", export, -1)
	defer done()
	if _, err := io.Copy(f, body); err != nil {
		return 0, exitWith(exitNoAnswer, fmt.Errorf("the export was cut off: %w; the same command goes on from there", err))
	}
	return size, f.Sync()
}

// stableQuery is the query as it was asked for: an age means another time when the
// command is run again, but the same export.
func stableQuery(q url.Values, o exportOptions) string {
	stable := url.Values{}
	for name, values := range q {
		stable[name] = values
	}
	stable.Set("from", o.from)
	stable.Set("to", o.to)
	return stable.Encode()
}

// forget removes what was kept of a download.
func forget(part string) error {
	var errs []error
	for _, name := range []string{part, part + ".json"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// unpack writes the files of an archive into a directory, which appears when it
// is whole.
func unpack(archive fs.FS, dir string) error {
	whole := strings.TrimSuffix(dir, string(filepath.Separator)) + ".new"
	if err := os.RemoveAll(whole); err != nil {
		return err
	}
	if err := os.CopyFS(whole, archive); err != nil {
		return err
	}
	return os.Rename(whole, dir)
}
