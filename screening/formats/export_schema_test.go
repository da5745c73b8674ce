package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	spdx "github.com/spdx/tools-golang/spdx/v3/v3_0"

	"weir/screening"
)

// cycloneSchema is the published schema of CycloneDX 1.6. What it refers to is
// beside it; nothing is fetched.
func cycloneSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	const at = "http://cyclonedx.org/schema/"
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schema.json"} {
		data, err := os.ReadFile(filepath.Join("../../testdata/schemas/cyclonedx", name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(at+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(at + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cycloneProblem(t *testing.T, s *jsonschema.Schema, bom []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bom))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// spdxProblem reads a document with SPDX's own library and has it checked.
func spdxProblem(document []byte) error {
	var d spdx.Document
	if err := d.FromJSON(bytes.NewReader(document)); err != nil {
		return err
	}
	return d.Validate(false)
}

var packages = regexp.MustCompile(`"type": ?"(software_Package|dataset_DatasetPackage|ai_AIPackage)"`)

// TestExportsAreValid: whatever the spec, a BOM keeps to the published schema of
// CycloneDX 1.6, and SPDX's own library reads and accepts an SPDX document, with
// every input in it.
func TestExportsAreValid(t *testing.T) {
	t.Parallel()
	schema := cycloneSchema(t)
	for name, spec := range specsOfAllKinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bom, err := ExportCycloneDX(spec, exportOptions)
			if err != nil {
				t.Fatal(err)
			}
			if err := cycloneProblem(t, schema, bom.Bytes); err != nil {
				t.Errorf("CycloneDX: %v", err)
			}
			document, err := ExportSPDX(spec, exportOptions)
			if err != nil {
				t.Fatal(err)
			}
			if err := spdxProblem(document.Bytes); err != nil {
				t.Errorf("SPDX: %v", err)
			}
			if got, want := len(packages.FindAll(document.Bytes, -1)), len(spec.Inputs)+1; got < want { // and the run
				t.Errorf("%d packages for %d inputs", got, want-1)
			}
		})
	}
}

// TestExportsAreChecked: what holds the exports to their formats sees what is wrong.
func TestExportsAreChecked(t *testing.T) {
	t.Parallel()
	parsed, err := screening.ParseSpec([]byte(richSpec))
	if err != nil {
		t.Fatal(err)
	}
	schema := cycloneSchema(t)
	for _, tt := range []struct {
		x        exporter
		from, to string
	}{
		{exporters[0], `"type": "machine-learning-model"`, `"type": "model"`},
		{exporters[0], `"SHA-256"`, `"sha256"`},
		{exporters[0], `"bomFormat": "CycloneDX"`, `"bomFormat": "CDX"`},
		{exporters[0], `"specVersion"`, `"spec"`},
		{exporters[1], `"ai_AIPackage"`, `"ai_Package"`},
		{exporters[1], `"relationshipType": "trainedOn"`, `"relationshipType": "learntFrom"`},
		{exporters[1], `"algorithm": "sha256"`, `"algorithm": "crc"`},
		{exporters[1], `"created": "2026-01-02T03:04:05Z"`, `"created": "yesterday"`},
	} {
		out, _ := exported(t, tt.x, parsed.Spec)
		broken := bytes.ReplaceAll(out.Bytes, []byte(tt.from), []byte(tt.to))
		if bytes.Equal(broken, out.Bytes) {
			t.Fatalf("%s: %s is not in the export", tt.x.name, tt.from)
		}
		problem := spdxProblem(broken)
		if tt.x.name == "CycloneDX" {
			problem = cycloneProblem(t, schema, broken)
		}
		if problem == nil {
			t.Errorf("%s: %s instead of %s is taken", tt.x.name, tt.to, tt.from)
		}
	}
}

// TestExportNamesItsSpec: an export says of which bytes it is.
func TestExportNamesItsSpec(t *testing.T) {
	t.Parallel()
	parsed, err := screening.ParseSpec([]byte(richSpec))
	if err != nil {
		t.Fatal(err)
	}
	opts := exportOptions
	opts.SpecSHA256 = parsed.SHA256.String()
	for _, x := range exporters {
		out, err := x.write(parsed.Spec, opts)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`weir:spec_sha256[^0-9a-f]+(value": ")?` + opts.SpecSHA256).Match(out.Bytes) {
			t.Errorf("%s does not name its spec\n%s", x.name, out.Bytes)
		}
	}
}

// TestHardValuesStayValid: licences in another spelling, newer than a list, of a
// vendor or none at all, names that are empty and parents that nobody named do not
// take an export out of its format.
func TestHardValuesStayValid(t *testing.T) {
	t.Parallel()
	schema := cycloneSchema(t)
	for _, licence := range []string{"mit", " MIT", "LZMA-SDK-9.22", "LicenseRef-x", "DocumentRef-a:LicenseRef-b", "GPL-2.0+", "gpl-2.0+", "llama3", "openrail",
		"GPL-2.0-only WITH Classpath-exception-2.0", "Classpath-exception-2.0", "MIT OR", "MIT OR Apache-2.0", "NOASSERTION", "TBD", "http://licence.example/x"} {
		spec := &screening.Spec{RunRef: "r", Inputs: []screening.Input{{ID: "d", Kind: "dataset", URIs: []string{"not an address", "pkg:a/b", "pkg:c/d"},
			License: screening.License{Declared: []screening.DeclaredLicense{{SPDX: licence}, {Raw: licence}}, Concluded: licence},
			Shape:   &screening.Shape{SizeRaw: "99999999999999999999", Modalities: []string{"three_d"}},
			Lineage: &screening.Lineage{DerivedFrom: []screening.LineageRef{{}, {Ref: "a b"}, {Label: "words"}}},
			Dates:   &screening.Dates{Created: "2025-13-45T99:00:00Z", Released: "2025"}}}}
		bom, err := ExportCycloneDX(spec, exportOptions)
		if err != nil {
			t.Fatal(licence, err)
		}
		if err := cycloneProblem(t, schema, bom.Bytes); err != nil {
			t.Errorf("%q, CycloneDX: %.400v\n%s", licence, err, bom.Bytes)
		}
		document, err := ExportSPDX(spec, exportOptions)
		if err != nil {
			t.Fatal(licence, err)
		}
		if err := spdxProblem(document.Bytes); err != nil {
			t.Errorf("%q, SPDX: %.400v\n%s", licence, err, document.Bytes)
		}
		if strings.Contains(string(document.Bytes), "2025-13") {
			t.Errorf("a day that is none is given as one\n%s", document.Bytes)
		}
	}
}
