package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/store/ledger"
)

// exportFlat writes a row for each decision to a file, which has its name when it
// is whole.
func exportFlat(cmd *cobra.Command, o exportOptions) (err error) {
	format := ledger.Format(o.format)
	switch {
	case !slices.Contains(ledger.Formats, format):
		return exitWith(exitUsage, errors.New("--format must be bundle, ndjson, csv, parquet, cyclonedx, spdx or eu-summary"))
	case o.since != "" || len(o.keys) > 0:
		return exitWith(exitUsage, errors.New("--since and --key go with a bundle: the other formats prove nothing"))
	case o.resume && format == ledger.Parquet:
		return exitWith(exitUsage, errors.New("--resume goes with --format ndjson or csv: a Parquet file cannot be added to"))
	}
	query, err := o.query()
	if err != nil {
		return exitWith(exitUsage, err)
	}
	query.Set("format", o.format)
	part := o.out + ".part"
	if _, err := os.Stat(o.out); err == nil {
		if !o.resume {
			return exitWith(exitUsage, fmt.Errorf("%s is there already; choose another name, or add to it with --resume", o.out))
		}
		if _, err := os.Stat(part); err != nil { // else it is the newer one
			if err := os.Rename(o.out, part); err != nil {
				return exitWith(exitFailed, err)
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return exitWith(exitUsage, err)
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return exitWith(exitFailed, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = exitWith(exitFailed, cerr)
		}
	}()
	var there int64
	if o.resume {
		last, end, err := lastRow(f, format)
		if err != nil {
			return exitWith(exitUsage, fmt.Errorf("--resume: %s: %w", part, err))
		}
		if last >= 0 { // else from the beginning, with what stands there
			there = end
			query.Set("after", strconv.FormatInt(last, 10))
		}
	}
	if err := f.Truncate(there); err != nil {
		return exitWith(exitFailed, err)
	}
	if _, err := f.Seek(there, io.SeekStart); err != nil {
		return exitWith(exitFailed, err)
	}
	c, err := o.conn.client()
	if err != nil {
		return err
	}
	export, err := c.Export(cmd.Context(), o.conn.timeout, query)
	if err != nil {
		return err
	}
	defer export.Close()
	body, done := progress(cmd.ErrOrStderr(), "export", export, -1)
	defer done()
	n, err := io.Copy(f, body)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		again := "; run the command again"
		if format != ledger.Parquet {
			again = "; the same command with --resume goes on from there"
		}
		return exitWith(exitNoAnswer, fmt.Errorf("the export was cut off: %w%s", err, again))
	}
	if err := os.Rename(part, o.out); err != nil {
		return exitWith(exitFailed, err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "EXPORTED  %s\n  %d bytes of %s\n", printable(o.out), n, format)
	return err
}

// lastRow finds the last whole row of a file: its place in the log, -1 when there
// is none, and where it ends.
func lastRow(f *os.File, format ledger.Format) (last, end int64, err error) {
	last = -1
	if format == ledger.CSV { // a row may span lines
		in := csv.NewReader(f)
		in.ReuseRecord = true
		for first := true; ; first = false {
			row, err := in.Read()
			if err != nil {
				// What cannot be read is a row that was cut off. One that only seems whole lacks its line end.
				return last, end, nil
			}
			at := in.InputOffset()
			var tail [1]byte
			if _, err := f.ReadAt(tail[:], at-1); err != nil || tail[0] != '\n' {
				return last, end, nil
			}
			if end = at; first {
				if row[0] != "log_index" {
					return 0, 0, errors.New("is no export: its first column is not log_index")
				}
				continue
			}
			if last, err = strconv.ParseInt(row[0], 10, 64); err != nil {
				return 0, 0, fmt.Errorf("is no export: %w", err)
			}
		}
	}
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return 0, 0, err
			}
			return last, end, nil
		}
		var row struct {
			LogIndex *int64 `json:"log_index"`
		}
		if err := json.Unmarshal(bytes.TrimSpace(line), &row); err != nil || row.LogIndex == nil {
			return 0, 0, fmt.Errorf("is no export: the line that ends at byte %d has no log_index", end+int64(len(line)))
		}
		last, end = *row.LogIndex, end+int64(len(line))
	}
}
