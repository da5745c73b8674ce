package ledger

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"
)

// Format is a form of export without proofs: a row for each decision, in the
// order of the log.
type Format string

const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats lists them.
var Formats = []Format{NDJSON, CSV, Parquet}

// MediaType is what HTTP calls it.
func (f Format) MediaType() string {
	return map[Format]string{NDJSON: "application/x-ndjson", CSV: "text/csv; charset=utf-8", Parquet: "application/vnd.apache.parquet"}[f]
}

// Record is a decision in the shape of decision logs, as a line of NDJSON.
type Record struct {
	LogIndex    int64             `json:"log_index"`   // its place in the log: an export goes on after it
	DecisionID  string            `json:"decision_id"` // id of the screening
	Timestamp   time.Time         `json:"timestamp"`
	Labels      RecordLabels      `json:"labels"`
	Bundles     map[string]Bundle `json:"bundles"` // the packs that decided, by id
	Path        string            `json:"path"`
	Input       RecordInput       `json:"input"`
	Result      RecordResult      `json:"result"`
	Results     []RecordFinding   `json:"results"` // every finding, by pack and term
	RequestedBy string            `json:"requested_by"`
	OnBehalfOf  string            `json:"on_behalf_of,omitzero"`
	Owner       string            `json:"owner"`
	PrevHash    string            `json:"prev_hash"`        // of the chain of the screening's events
	Hash        string            `json:"hash"`             // of the event of the decision
	Erased      []string          `json:"erased"`           // JSON pointers of what is gone
	Masked      []string          `json:"masked"`           // JSON pointers of what this export leaves out
	Erasure     *Erased           `json:"erasure,omitzero"` // what took what is gone
}

// RecordPath stands where decision logs name the rule that was asked.
const RecordPath = "weir/screening"

// RecordLabels say where a decision was made.
type RecordLabels struct {
	Project string `json:"project"`
	RunRef  string `json:"run_ref"`
	Team    string `json:"team,omitzero"`
	Engine  string `json:"engine"`
}

// Bundle is a pack as decision logs name it.
type Bundle struct {
	Revision string `json:"revision"` // its sha256
}

// RecordInput is what was decided about.
type RecordInput struct {
	SpecSHA256      string  `json:"spec_sha256"`
	CanonicalSHA256 string  `json:"canonical_sha256"`
	Spec            *string `json:"spec,omitzero"` // as received: YAML or JSON
}

// RecordResult is what came out, and where it stands.
type RecordResult struct {
	Outcome        string     `json:"outcome"` // that the packs decided
	AsOf           string     `json:"as_of"`
	Causes         []string   `json:"causes"` // tagged terms
	DecisionSHA256 string     `json:"decision_sha256"`
	Status         string     `json:"status"` // when it was exported
	DecidedBy      string     `json:"decided_by"`
	AdmittedUntil  *time.Time `json:"admitted_until,omitzero"`
}

// RecordFinding is one finding of a decision.
type RecordFinding struct {
	ID               string         `json:"id"` // tagged term
	Upheld           bool           `json:"upheld"`
	RuntimeCheckable bool           `json:"runtime_checkable"`
	Reason           string         `json:"reason"`
	Evidence         jsontext.Value `json:"evidence"`
}

// Row is a decision as a line of CSV or Parquet: what fits in columns.
type Row struct {
	LogIndex        int64      `parquet:"log_index"`
	DecisionID      string     `parquet:"decision_id"`
	Timestamp       time.Time  `parquet:"timestamp,timestamp(microsecond)"`
	Project         string     `parquet:"project,dict"`
	RunRef          string     `parquet:"run_ref"`
	Team            string     `parquet:"team,dict"`
	RequestedBy     string     `parquet:"requested_by,dict"`
	OnBehalfOf      string     `parquet:"on_behalf_of,dict"`
	Owner           string     `parquet:"owner,dict"`
	AsOf            string     `parquet:"as_of,dict"`
	Engine          string     `parquet:"engine,dict"`
	Outcome         string     `parquet:"outcome,dict"`
	Status          string     `parquet:"status,dict"`
	DecidedBy       string     `parquet:"decided_by,dict"`
	AdmittedUntil   *time.Time `parquet:"admitted_until,optional,timestamp(microsecond)"`
	Causes          string     `parquet:"causes,dict"` // tagged terms, with spaces between
	SpecSHA256      string     `parquet:"spec_sha256"`
	CanonicalSHA256 string     `parquet:"canonical_sha256"`
	DecisionSHA256  string     `parquet:"decision_sha256"`
	ErasedAt        *time.Time `parquet:"erased_at,optional,timestamp(microsecond)"`
	ErasedBy        string     `parquet:"erased_by,dict"`
	ErasedReason    string     `parquet:"erased_reason,dict"`
}

// rowColumns are the names of Row's fields, in their order.
var rowColumns = []string{"log_index", "decision_id", "timestamp", "project", "run_ref", "team", "requested_by", "on_behalf_of", "owner", "as_of",
	"engine", "outcome", "status", "decided_by", "admitted_until", "causes", "spec_sha256", "canonical_sha256", "decision_sha256",
	"erased_at", "erased_by", "erased_reason"}

func (r *Record) row() Row {
	out := Row{LogIndex: r.LogIndex, DecisionID: r.DecisionID, Timestamp: r.Timestamp, Project: r.Labels.Project, RunRef: r.Labels.RunRef,
		Team: r.Labels.Team, RequestedBy: r.RequestedBy, OnBehalfOf: r.OnBehalfOf, Owner: r.Owner, AsOf: r.Result.AsOf, Engine: r.Labels.Engine,
		Outcome: r.Result.Outcome, Status: r.Result.Status, DecidedBy: r.Result.DecidedBy, AdmittedUntil: r.Result.AdmittedUntil,
		Causes: strings.Join(r.Result.Causes, " "), SpecSHA256: r.Input.SpecSHA256, CanonicalSHA256: r.Input.CanonicalSHA256,
		DecisionSHA256: r.Result.DecisionSHA256}
	if e := r.Erasure; e != nil {
		out.ErasedAt, out.ErasedBy, out.ErasedReason = &e.At, e.Actor, e.Reason
	}
	return out
}

func (r *Row) cells() []string {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format(timeLayout)
	}
	cells := []string{strconv.FormatInt(r.LogIndex, 10), r.DecisionID, at(&r.Timestamp), r.Project, r.RunRef, r.Team, r.RequestedBy, r.OnBehalfOf, r.Owner,
		r.AsOf, r.Engine, r.Outcome, r.Status, r.DecidedBy, at(r.AdmittedUntil), r.Causes, r.SpecSHA256, r.CanonicalSHA256, r.DecisionSHA256,
		at(r.ErasedAt), r.ErasedBy, r.ErasedReason}
	for i, c := range cells {
		cells[i] = InertCell(c)
	}
	return cells
}

// InertCell makes a cell of CSV text that spreadsheets do not take for a formula:
// an apostrophe goes before one that begins with = + - @, a tab, a line break, one
// of their wide forms, or an apostrophe. CellText takes it away again.
func InertCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠'", []rune(text)[0]) {
		return "'" + text
	}
	return text
}

// CellText gives back what InertCell was given.
func CellText(cell string) string { return strings.TrimPrefix(cell, "'") }

// FlatWriter writes decisions in a form. Memory does not grow with their number.
type FlatWriter struct {
	write func(*Record) error
	flush func() error
	close func() error
}

// rowGroup is how many rows of Parquet are held until they are written.
const rowGroup = 10_000

// NewFlatWriter writes to w. goesOn leaves out what only stands at the beginning;
// Parquet cannot go on.
func NewFlatWriter(w io.Writer, f Format, goesOn bool) (*FlatWriter, error) {
	none := func() error { return nil }
	switch f {
	case NDJSON:
		return &FlatWriter{flush: none, close: none, write: func(r *Record) error {
			line, err := json.Marshal(r, json.Deterministic(true))
			if err == nil {
				_, err = w.Write(append(line, '\n'))
			}
			return err
		}}, nil
	case CSV:
		out := csv.NewWriter(w)
		flush := func() error { out.Flush(); return out.Error() }
		if !goesOn {
			if err := out.Write(rowColumns); err != nil {
				return nil, err
			}
		}
		return &FlatWriter{flush: flush, close: flush, write: func(r *Record) error {
			row := r.row()
			return out.Write(row.cells())
		}}, nil
	case Parquet:
		if goesOn {
			return nil, fmt.Errorf("a Parquet file cannot be gone on with")
		}
		out, held := parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Snappy)), 0
		return &FlatWriter{flush: none, close: out.Close, write: func(r *Record) error {
			if held++; held%rowGroup == 0 {
				if err := out.Flush(); err != nil {
					return err
				}
			}
			_, err := out.Write([]Row{r.row()})
			return err
		}}, nil
	}
	return nil, fmt.Errorf("format must be one of %v", Formats)
}

// Write writes one decision.
func (w *FlatWriter) Write(r *Record) error { return w.write(r) }

// Flush gives on what is held back, as far as the form allows.
func (w *FlatWriter) Flush() error { return w.flush() }

// Close writes what stands at the end. It does not close what is written to.
func (w *FlatWriter) Close() error { return w.close() }
