package ledger_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"weir/store/ledger"
)

// hostile are texts that a spreadsheet would run, or that would break a row.
var hostile = []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠x", "'=1", "'", "''x",
	"", "plain", "a=b", `with "quotes", a comma`, "two\nlines", "é"}

func TestInertCell(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		cell := ledger.InertCell(text)
		if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
			t.Errorf("%q becomes %q", text, cell)
		}
		if got := ledger.CellText(cell); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
}

func FuzzInertCell(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cell := ledger.InertCell(text)
		if got := ledger.CellText(cell); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
		if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
			t.Errorf("%q becomes %q", text, cell)
		}
	})
}

// Every form gives back what was written, whatever is in it.
func TestFlatFormsRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	var records []*ledger.Record
	for i, text := range hostile {
		r := &ledger.Record{LogIndex: int64(i), DecisionID: "id", Timestamp: at, RequestedBy: text, Owner: text,
			Labels: ledger.RecordLabels{RunRef: text, Team: text}, Result: ledger.RecordResult{Outcome: "admit", AdmittedUntil: &at}}
		if i%2 == 0 {
			r.Erasure = &ledger.Erased{At: at, Actor: text, Reason: text}
		}
		records = append(records, r)
	}
	write := func(f ledger.Format) []byte {
		t.Helper()
		var out bytes.Buffer
		w, err := ledger.NewFlatWriter(&out, f, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var csvRefs, parquetRefs []string
	rows, err := csv.NewReader(bytes.NewReader(write(ledger.CSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		csvRefs = append(csvRefs, ledger.CellText(row[4]))
	}
	data := write(ledger.Parquet)
	columns, err := parquet.Read[ledger.Row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range columns {
		parquetRefs = append(parquetRefs, row.RunRef)
		if !row.Timestamp.Equal(at) || (row.ErasedAt == nil) != (i%2 == 1) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if diff := cmp.Diff(hostile, parquetRefs); diff != "" {
		t.Errorf("Parquet (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(hostile, csvRefs); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
	if n := bytes.Count(write(ledger.NDJSON), []byte("\n")); n != len(hostile) {
		t.Errorf("%d lines, want %d", n, len(hostile))
	}
	if _, err := ledger.NewFlatWriter(&bytes.Buffer{}, ledger.Parquet, true); err == nil {
		t.Error("a Parquet file is gone on with")
	}
	if _, err := ledger.NewFlatWriter(&bytes.Buffer{}, "xml", false); err == nil {
		t.Error("XML is written")
	}
}
