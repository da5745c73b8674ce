// The race detector makes pools forget what they hold, so that more is allocated
// than is in use.

//go:build !race

package formats

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// bigCroissant has a file object for each of n files, as some repositories write.
func bigCroissant(n int) string {
	var b strings.Builder
	b.WriteString("{" + croissantHead + `, "name": "big", "description": "d", "license": "cc-by-nc-4.0", "distribution": [`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"@type": "cr:FileObject", "@id": "file_%d", "name": "scan_%d.nii.gz", "description": "Scan number %d of the series", "contentSize": "73434%d", "contentUrl": "https://data.example/series/scan_%d.nii.gz", "encodingFormat": "application/gzip", "sha256": "%064x"}`, i, i, i, i, i, i)
	}
	b.WriteString(`], "recordSet": [{"@type": "cr:RecordSet", "field": [`)
	for i := range n / 4 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"@type": "cr:Field", "@id": "f/%d", "name": "column %d", "dataType": "sc:Text", "source": {"fileObject": {"@id": "file_%d"}, "extract": {"column": "c%d"}}}`, i, i, i, i)
	}
	b.WriteString("]}]}")
	return b.String()
}

// TestLargeFile: 5 MB of Croissant stay far below 100 MiB, all told.
func TestLargeFile(t *testing.T) { // alone, as it counts what is allocated
	text := bigCroissant(15_000)
	if len(text) < 5<<20 {
		t.Fatalf("only %d bytes", len(text))
	}
	data := []byte(text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	im, err := Read("big.json", data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Merge([]*Import{im}, Options{RunRef: "r", Owner: "ana", Objective: "sft"})
	if err != nil {
		t.Fatal(err)
	}
	specOf(t, d)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 100 {
		t.Errorf("allocated %d MiB in all", mib)
	}
	if n := len(im.Records[0].Digests); n != maxDigests {
		t.Errorf("%d digests", n)
	}
	if codes, _ := im.Records[0].License.Stated(); len(codes) != 1 || codes[0] != "nc" {
		t.Errorf("restrictions %v", codes)
	}
	if len(d.Spec.Sources[0].Bytes) != 0 || d.Spec.Sources[0].SHA256 != im.SHA256.String() {
		t.Error("the file is too large to be kept, its digest is not")
	}
}

func BenchmarkLargeCroissant(b *testing.B) {
	data := []byte(bigCroissant(15_000))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("big.json", data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBombs: small files that would grow, and large ones, are refused with
// little work. Work is counted in bytes allocated: a clock would tell of the
// machine.
func TestBombs(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 10 {
		aliases += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for _, tt := range []struct {
		name, file, text string
		want             Reason
	}{
		{"aliases", "a.yaml", aliases, HasAlias},
		{"aliases in a card", "a.md", "---\n" + aliases + "---\n# Card\n", HasAlias},
		{"deep JSON", "a.json", strings.Repeat(`{"a":`, 100_000), TooDeep},
		{"deep lists", "a.json", strings.Repeat("[", 1<<20), TooDeep},
		{"deep YAML", "a.yaml", "a: " + strings.Repeat("[", 100_000), TooDeep},
		{"deep YAML by indents", "a.yaml", indents(200), TooDeep},
		{"deep YAML by dashes", "a.yaml", strings.Repeat("- ", 500) + "a", TooDeep},
		{"many values", "a.json", "[" + strings.Repeat("1,", 3<<20) + "1]", TooManyValues},
		{"many YAML nodes", "a.yaml", "a: [" + strings.Repeat("1,", 400_000) + "1]", TooManyValues},
		{"many lines", "a.yaml", strings.Repeat("- a\n", 210_000), TooManyValues},
		{"many documents", "a.yaml", strings.Repeat("---\na: b\n", 40), TooManyValues},
		{"large YAML", "a.yaml", "a: " + strings.Repeat("x", 1<<20), TooLarge},
		{"large", "a.json", `{"a": "` + strings.Repeat("x", 8<<20) + `"}`, TooLarge},
		{"large card", "a.md", "---\na: b\n---\n" + strings.Repeat("x", 8<<20), TooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(tt.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			im, err := Read(tt.file, data)
			runtime.ReadMemStats(&after)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason != tt.want || im != nil {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 100 {
				t.Errorf("allocated %d MiB", mib)
			}
		})
	}
}

func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// TestManyParts: files of the largest size whose parts all have to do with each
// other. Were that work quadratic, this test would not end.
func TestManyParts(t *testing.T) {
	many := func(n int, part string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(part, "%", fmt.Sprint(i)))
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, file, text string
		want             Reason // "" = imported
	}{
		{"context", "c.json", `{"@type": "Dataset", "conformsTo": "x", "@context": {` + many(100_000, `"k%": "https://schema.org/x%"`) + `}, ` + many(100_000, `"k%": 1`) + `}`, ""},
		{"names", "c.json", croissant(`"alternateName": [` + many(200_000, `"n%"`) + `]`), ""},
		{"sources", "c.json", croissant(`"rai:dataCollectionType": [` + many(200_000, `"n%"`) + `]`), ""},
		{"parents", "c.json", croissant(`"isBasedOn": [` + many(200_000, `"n%"`) + `]`), ""},
		{"hints", "c.json", croissant(`"keywords": [` + many(60_000, `"research commercial train eu agreement derivative %"`) + `]`), ""},
		{"components", "b.json", `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [` + many(80_000, `{"type": "machine-learning-model", "bom-ref": "%", "name": "%"}`) + `]}`, TooManyValues},
		{"elements", "s.json", `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [` + many(4_000, `{"type": "dataset_DatasetPackage", "spdxId": "d%", "name": "%"}`) + "," +
			many(40_000, `{"type": "Annotation", "spdxId": "a%", "statement": "research use only %"}`) + `]}`, ""},
		{"records", "p.json", "{" + many(100_000, `"%": {"Unique Dataset Identifier": "%"}`) + "}", TooManyValues},
		{"words of a run", "l.yaml", "model_name_or_path: a/b\nstage: sft\ndataset: " + strings.Repeat("a,", 90_000), TooManyValues},
		{"tags", "c.md", cardOf("tags: [" + many(40_000, "medical%") + "]"), ""},
		{"consents", "d.json", dpsUse(`"consents": [` + many(200_000, `"n%"`) + `]`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			im, err := Read(tt.file, []byte(tt.text))
			var refused *RefusedError
			switch errors.As(err, &refused); {
			case tt.want == "" && err != nil, tt.want != "" && (refused == nil || refused.Reason != tt.want):
				t.Fatalf("got %v, want %q", err, tt.want)
			case tt.want != "":
				return
			}
			if _, err := Merge([]*Import{im}, Options{}); err != nil && !errors.Is(err, ErrTooMany) {
				t.Error(err)
			}
		})
	}
}
