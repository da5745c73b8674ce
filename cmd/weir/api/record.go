package api

import (
	"archive/zip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	"golang.org/x/mod/sumdb/tlog"

	"weir/review"
	"weir/screening"
	"weir/store/ledger"
)

// Record is the log of a gate, as it is given out.
type Record interface {
	// Checkpoint is the latest signed one with its cosignatures, or the latest that has any. review.ErrNotFound.
	Checkpoint(ctx context.Context, cosigned bool) ([]byte, error)
	// LogEntries gives leaves from an index on; those of other projects without their bytes.
	LogEntries(ctx context.Context, project string, from int64, limit int) ([]ledger.Leaf, error)
	// ProveEvent proves that an event of a screening is in the log of a checkpoint. review.ErrNotFound.
	ProveEvent(ctx context.Context, project, screeningID string, seq int) (checkpoint []byte, index int64, proof tlog.RecordProof, err error)
	// ProveLog proves that the log of one size begins with that of an older one.
	ProveLog(ctx context.Context, size, old int64) (tlog.TreeProof, error)
	// Revoked lists the admissions of a project that ended early, and the database's time.
	Revoked(ctx context.Context, project string) ([]review.Revoked, time.Time, error)
	// ExportExtent tells which part of the log a selection covers. ledger.ErrNothingToExport.
	ExportExtent(ctx context.Context, s ledger.Selection) (ledger.Extent, error)
	// Export writes a bundle through create.
	Export(ctx context.Context, s ledger.Selection, e ledger.Extent, create func(name string) (io.WriteCloser, error), progress func(int64), keys ...ledger.Signer) error
	// Records gives decisions in the order of the log, after the entry at an index. ledger.ErrNothingToExport.
	Records(ctx context.Context, s ledger.Selection, after int64, each func(*ledger.Record) error, read func() error) error
}

// checkpoint gives the latest signed state of the log, as a note; on demand the
// latest that witnesses cosigned.
func (s *Server) checkpoint(c echo.Context) error {
	cosigned, err := boolParam(c, "cosigned")
	if err != nil {
		return err
	}
	note, err := gateOf(c).Record.Checkpoint(c.Request().Context(), cosigned)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", note)
}

type wireLeaf struct {
	Index int64          `json:"index"`
	Hash  string         `json:"hash"`
	Leaf  jsontext.Value `json:"leaf,omitempty"` // absent when it belongs to another project
}

// leafList is a page of the log.
type leafList struct {
	Entries []wireLeaf `json:"entries"`
}

// logEntries gives a page of the log.
func (s *Server) logEntries(c echo.Context) error {
	from, err := wholeParam(c, "from", 0)
	if err != nil {
		return err
	}
	limit, err := wholeParam(c, "limit", 100)
	if err != nil {
		return err
	}
	if limit < 1 || limit > 500 {
		return fmt.Errorf("%w: limit must be between 1 and 500", errBadParam)
	}
	leaves, err := gateOf(c).Record.LogEntries(c.Request().Context(), principalOf(c).Project, from, int(limit))
	if err != nil {
		return err
	}
	out := leafList{make([]wireLeaf, len(leaves))}
	for i, l := range leaves {
		out.Entries[i] = wireLeaf{l.Index, hex.EncodeToString(l.Hash[:]), l.Bytes}
	}
	return reply(c, http.StatusOK, out)
}

type proofAnswer struct {
	Checkpoint string   `json:"checkpoint,omitzero"` // that the event is in
	Index      *int64   `json:"index,omitzero"`      // of the event
	Proof      []string `json:"proof"`
}

// logProof gives the proof that an event is in the log, or that the log of one
// size begins with that of another.
func (s *Server) logProof(c echo.Context) error {
	ctx, record := c.Request().Context(), gateOf(c).Record
	var out proofAnswer
	var hashes []tlog.Hash
	if id := c.QueryParam("screening"); id != "" {
		seq, err := wholeParam(c, "seq", 1)
		if err != nil {
			return err
		}
		if !isUUID(id) || seq < 1 || seq > 1<<30 {
			return fmt.Errorf("%w: screening must be the id of one, and seq the number of one of its events", errBadParam)
		}
		if _, err := gateOf(c).Desk.Screening(ctx, principalOf(c), id); err != nil { // whether it is theirs to see
			return err
		}
		note, index, proof, err := record.ProveEvent(ctx, principalOf(c).Project, id, int(seq))
		if err != nil {
			return notInLog(err)
		}
		out.Checkpoint, out.Index, hashes = string(note), &index, proof
	} else {
		size, err := wholeParam(c, "size", 0)
		if err != nil {
			return err
		}
		old, err := wholeParam(c, "old", 0)
		if err != nil {
			return err
		}
		if old < 1 || size < old {
			return fmt.Errorf("%w: give screening and seq, or size and old, where old is not the larger", errBadParam)
		}
		if hashes, err = record.ProveLog(ctx, size, old); err != nil {
			return err
		}
	}
	out.Proof = make([]string, len(hashes))
	for i, h := range hashes {
		out.Proof[i] = hex.EncodeToString(h[:])
	}
	return reply(c, http.StatusOK, out)
}

// Headers of an export: with the size, the same bundle can be asked for again.
const (
	exportFirstHeader = "Weir-Export-First"
	exportSizeHeader  = "Weir-Export-Size"
)

// exportStall ends an export whose reader takes nothing for this long.
const exportStall = 30 * time.Second

// export gives a bundle, or with format the decisions alone.
func (s *Server) export(c echo.Context) error {
	format := c.QueryParam("format")
	write := s.exportBundle
	if format != "" && format != "bundle" {
		if !slices.Contains(ledger.Formats, ledger.Format(format)) {
			return fmt.Errorf("%w: format must be bundle, ndjson, csv or parquet", errBadParam)
		}
		write = s.exportFlat
	} else if c.QueryParam("after") != "" {
		return fmt.Errorf("%w: after goes with the formats ndjson and csv", errBadParam)
	} else if len(gateOf(c).SigningKeys) == 0 {
		return errNoSigningKey
	}
	c.Get(slotKey).(*slot).free() // it takes long: its place is among the exports
	place := &slot{from: s.exports, gauge: s.cfg.Metrics.inFlight.WithLabelValues("exporting")}
	if !place.take(c.Request().Context()) {
		return errBusy
	}
	defer place.free()
	return write(c)
}

// exportFlat streams decisions. It goes on after the entry whose index the last
// record had.
func (s *Server) exportFlat(c echo.Context) error {
	format := ledger.Format(c.QueryParam("format"))
	sel, _, err := selection(c)
	if err != nil {
		return err
	}
	for _, name := range []string{"size", "since", "skip"} {
		if c.QueryParam(name) != "" {
			return fmt.Errorf("%w: %s goes with a bundle", errBadParam, name)
		}
	}
	after := int64(-1)
	if goesOn := c.QueryParam("after") != ""; goesOn {
		if after, err = wholeParam(c, "after", 0); err != nil {
			return err
		}
		if format == ledger.Parquet {
			return fmt.Errorf("%w: after goes with the formats ndjson and csv", errBadParam)
		}
	}
	if format != ledger.NDJSON { // no column has them
		sel.DigestsOnly = true
	}
	ctx, h := c.Request().Context(), c.Response().Header()
	var rows *ledger.FlatWriter
	begin := func() error {
		if rows != nil {
			return nil
		}
		h.Set(echo.HeaderContentType, format.MediaType())
		h.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="weir.%s"`, format))
		h.Set("Cache-Control", "no-store")
		c.Response().WriteHeader(http.StatusOK)
		rows, err = ledger.NewFlatWriter(&pacedWriter{w: c.Response(), control: http.NewResponseController(c.Response())}, format, after >= 0)
		return err
	}
	err = gateOf(c).Record.Records(ctx, sel, after, func(r *ledger.Record) error {
		if err := begin(); err != nil {
			return err
		}
		return rows.Write(r)
	}, func() error {
		if err := begin(); err != nil {
			return err
		}
		return rows.Flush()
	})
	if err == nil {
		if err = begin(); err == nil {
			err = rows.Close()
		}
	}
	return s.cutOff(c, err)
}

// cutOff ends an export that failed. When the status is out already the connection
// is cut, so that nobody takes what there is for the whole.
func (s *Server) cutOff(c echo.Context, err error) error {
	if err == nil || !c.Response().Committed {
		return err
	}
	s.cfg.Log.WarnContext(c.Request().Context(), "export not finished", "error", err)
	panic(http.ErrAbortHandler)
}

// exportBundle streams a bundle as a ZIP archive. The same selection with the same size
// gives the same archive, so that an interrupted download can go on: skip leaves
// out the bytes that are there.
func (s *Server) exportBundle(c echo.Context) error {
	sel, skip, err := selection(c)
	if err != nil {
		return err
	}
	g, ctx := gateOf(c), c.Request().Context()
	extent, err := g.Record.ExportExtent(ctx, sel)
	if err != nil {
		return err
	}
	sel.Size = extent.Size
	h := c.Response().Header()
	h.Set(exportFirstHeader, strconv.FormatInt(extent.First, 10))
	h.Set(exportSizeHeader, strconv.FormatInt(extent.Size, 10))
	h.Set(echo.HeaderContentType, "application/zip")
	h.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="weir-%d-%d.zip"`, extent.First, extent.Size))
	h.Set("Cache-Control", "no-store")
	c.Response().WriteHeader(http.StatusOK)
	out := &pacedWriter{w: c.Response(), control: http.NewResponseController(c.Response()), skip: skip}
	archive := zip.NewWriter(out)
	create := func(name string) (io.WriteCloser, error) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate}) // no time: the same bytes each time
		return writeNoCloser{w}, err
	}
	err = g.Record.Export(ctx, sel, extent, create, func(int64) {}, g.SigningKeys...)
	if err == nil {
		err = archive.Close()
	}
	return s.cutOff(c, err)
}

type writeNoCloser struct{ io.Writer }

func (writeNoCloser) Close() error { return nil }

// pacedWriter gives a reader time for each piece instead of for the whole, and
// leaves out the first skip bytes.
type pacedWriter struct {
	w       io.Writer
	control *http.ResponseController
	skip    int64
}

func (p *pacedWriter) Write(data []byte) (int, error) {
	n := len(data)
	if left := min(p.skip, int64(n)); left > 0 {
		p.skip -= left
		data = data[left:]
	}
	if len(data) == 0 {
		return n, nil
	}
	if err := p.control.SetWriteDeadline(time.Now().Add(exportStall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	if _, err := p.w.Write(data); err != nil {
		return 0, err
	}
	return n, nil
}

// selection reads what to export. The project is the key's.
func selection(c echo.Context) (sel ledger.Selection, skip int64, err error) {
	sel.Project = principalOf(c).Project
	for _, t := range []struct {
		name string
		at   *time.Time
	}{{"from", &sel.From}, {"to", &sel.To}} {
		if text := c.QueryParam(t.name); text != "" {
			if *t.at, err = time.Parse(time.RFC3339, text); err != nil {
				return sel, 0, fmt.Errorf("%w: %s must be a time like 2026-11-30T00:00:00Z", errBadParam, t.name)
			}
		}
	}
	for _, n := range []struct {
		name string
		to   *int64
	}{{"size", &sel.Size}, {"since", &sel.Since}, {"skip", &skip}} {
		if *n.to, err = wholeParam(c, n.name, 0); err != nil {
			return sel, 0, err
		}
	}
	sel.RunRef, sel.Outcome = c.QueryParam("run_ref"), c.QueryParam("outcome")
	if sel.Outcome != "" {
		var o screening.Outcome
		if err := o.UnmarshalText([]byte(sel.Outcome)); err != nil {
			return sel, 0, fmt.Errorf("%w: outcome must be admit, escalate or block", errBadParam)
		}
	}
	switch c.QueryParam("payloads") {
	case "", "included":
	case "digests":
		sel.DigestsOnly = true
	default:
		return sel, 0, fmt.Errorf("%w: payloads must be included or digests", errBadParam)
	}
	return sel, skip, nil
}

// notInLog: what is not in the signed log yet will be in a moment.
func notInLog(err error) error {
	if errors.Is(err, review.ErrNotFound) {
		return errNotInLog
	}
	return err
}

// wholeParam reads a whole number that is not negative.
func wholeParam(c echo.Context, name string, otherwise int64) (int64, error) {
	text := c.QueryParam(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s must be a whole number, not negative", errBadParam, name)
	}
	return n, nil
}
