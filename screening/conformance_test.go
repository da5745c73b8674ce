package screening

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// conformance reads every row of a vector file: from WEIR_CONFORMANCE_DIR when
// it is set, else from the project's own copy. A missing or empty file fails.
func conformance[T any](t *testing.T, name string) []T {
	t.Helper()
	dir := os.Getenv("WEIR_CONFORMANCE_DIR")
	if dir == "" {
		dir = filepath.Join("..", "testdata", "conformance")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s, row %d: %v", name, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil || len(rows) == 0 {
		t.Fatalf("%s has %d rows (%v)", name, len(rows), err)
	}
	return rows
}

func TestConformancePackLoad(t *testing.T) {
	t.Parallel()
	type row struct {
		ID              string
		Loads           bool
		Pack            json.RawMessage
		Report          json.RawMessage
		RequireRatified bool `json:"require_ratified"`
	}
	for _, r := range conformance[row](t, "pack_load.jsonl") {
		p, err := LoadPack(r.ID, r.Pack, NewRegistry())
		loads := err == nil && p.ID == "probe_v1"
		if loads && r.RequireRatified {
			loads = CheckSeal(p, r.Report) == nil
		}
		if loads != r.Loads {
			t.Errorf("%s: loads %t, want %t (%v)", r.ID, loads, r.Loads, err)
		}
	}
}

func TestConformanceEthicsCheck(t *testing.T) {
	t.Parallel()
	type result struct {
		CommitmentID     string `json:"commitment_id"`
		Upheld           bool
		RuntimeCheckable bool `json:"runtime_checkable"`
	}
	type row struct {
		ID                    string
		CommitmentIDs         []string `json:"commitment_ids"`
		Context               json.RawMessage
		Results               []result
		Upheld                bool
		ViolatedCommitments   []string `json:"violated_commitments"`
		RuntimeCheckableCount int      `json:"runtime_checkable_count"`
	}
	for _, r := range conformance[row](t, "ethics_check.jsonl") {
		pack, err := json.Marshal(map[string]any{"schema_version": "1.0.0", "pack_id": "probe", "version": "1.0.0",
			"domain": "general", "commitment_ids": r.CommitmentIDs})
		if err != nil {
			t.Fatal(err)
		}
		v := vocabulary(t, VocabularyConfig{AuditOnly: true}, loadPack(t, string(pack)), testFloor(t))
		spec, err := ParseSpec([]byte(`{"schema":"weir/spec/v1","run_ref":"r","owner":"o","objective":{"kind":"other"},"evidence":{"context":` + string(r.Context) + `}}`))
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		d, err := Classify(spec, v, "2026-11-30")
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		got := d.Ethics[0]
		if got.Upheld != r.Upheld || got.RuntimeCheckable != r.RuntimeCheckableCount ||
			!slices.Equal(got.Violated, r.ViolatedCommitments) || len(got.Findings) != len(r.Results) {
			t.Errorf("%s: verdict %+v, want %+v", r.ID, got, r)
			continue
		}
		for i, want := range r.Results {
			f := got.Findings[i]
			if f.Term != want.CommitmentID || (f.State != Violated) != want.Upheld || f.RuntimeCheckable() != want.RuntimeCheckable {
				t.Errorf("%s: %s is %s, want %+v", r.ID, f.Term, f.State, want)
			}
			if f.State == Violated && (f.Reason == "" || len(f.Evidence) == 0) {
				t.Errorf("%s: %s is violated without a reason or evidence", r.ID, f.Term)
			}
		}
	}
}

func TestConformanceRefusalHedge(t *testing.T) {
	t.Parallel()
	type result struct {
		BoundaryID       string `json:"boundary_id"`
		CommitmentID     string `json:"commitment_id"`
		Upheld           bool
		RuntimeCheckable bool `json:"runtime_checkable"`
	}
	type row struct {
		ID                   string
		SafetyResults        []result `json:"safety_results"`
		EthicsResults        []result `json:"ethics_results"`
		RefusalCommitments   []string `json:"refusal_commitments"`
		HedgeCommitments     []string `json:"hedge_commitments"`
		PreferredHedgeSoft   string   `json:"preferred_hedge_soft"`
		PreferredHedgeStrong string   `json:"preferred_hedge_strong"`
		Surface              string
		Refusal              *string
		RefusalSafetyOnly    *string `json:"refusal_safety_only"`
		HedgeDue             bool    `json:"hedge_due"`
		HedgePrefix          string  `json:"hedge_prefix"`
		FinalSurface         string  `json:"final_surface"`
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for _, r := range conformance[row](t, "refusal_hedge.jsonl") {
		var safety, refused []string
		due := false
		violated := func(x result) bool { return x.RuntimeCheckable && !x.Upheld }
		for _, x := range r.SafetyResults {
			if violated(x) {
				safety = append(safety, tagID(Safety, x.BoundaryID))
			}
		}
		refused = slices.Clone(safety)
		for _, x := range r.EthicsResults {
			if violated(x) && slices.Contains(r.RefusalCommitments, x.CommitmentID) {
				refused = append(refused, tagID(Ethics, x.CommitmentID))
			}
			due = due || violated(x) && slices.Contains(r.HedgeCommitments, x.CommitmentID)
		}
		prefix := (&Pack{PreferredHedgeSoft: r.PreferredHedgeSoft, PreferredHedgeStrong: r.PreferredHedgeStrong}).HedgeText()
		final := r.Surface
		switch refusal := Refusal(refused); {
		case refusal != "":
			final = refusal
		case due:
			final = InjectHedge(prefix, r.Surface)
		}
		if Refusal(safety) != text(r.RefusalSafetyOnly) || Refusal(refused) != text(r.Refusal) || due != r.HedgeDue ||
			prefix != r.HedgePrefix || final != r.FinalSurface {
			t.Errorf("%s: refusal %q, due %t, prefix %q, final %q; want %q, %t, %q, %q", r.ID, Refusal(refused), due, prefix, final,
				text(r.Refusal), r.HedgeDue, r.HedgePrefix, r.FinalSurface)
		}
	}
}
