package formats

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

type exporter struct {
	name, file string
	write      func(*screening.Spec, ExportOptions) (*Export, error)
}

var exporters = []exporter{{"CycloneDX", "x.cdx.json", ExportCycloneDX}, {"SPDX", "x.spdx3.json", ExportSPDX}}

var exportOptions = ExportOptions{Created: "2026-01-02T03:04:05Z", Namespace: "https://weir.example/exports/1"}

func exported(t *testing.T, x exporter, s *screening.Spec) (*Export, *Import) {
	t.Helper()
	out, err := x.write(s, exportOptions)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read(x.file, out.Bytes)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes)
	}
	return out, back
}

const richSpec = `schema: weir/spec/v1
run_ref: lab/run@1
owner: ana
objective: {kind: sft}
base_model: base
inputs:
- id: base
  kind: base_model
  name: Base 7B
  description: A model.
  version: "2"
  publisher: {name: A lab}
  digests: [{alg: sha256, value: AA11111111111111111111111111111111111111111111111111111111111111}, {alg: sha256, value: main}]
  license: {declared: [{raw: apache-2.0}], copyright: "(c) A lab"}
  lineage: {base_models: [{ref: older}], derived_from: [{ref: talk}]}
  trust_remote_code: false
  disclosures: [{tag: known_limits, state: not_assessed, basis: prose, detail: Only English.}]
- {id: older, kind: base_model, name: Base 1B, license: {declared: [{spdx: CC-BY-NC-4.0}]}}
- {id: writer, kind: teacher, name: Writer, license: {declared: [{raw: house terms}]}}
- id: talk
  kind: dataset
  name: Talk
  description: Conversations.
  version: "3"
  uris: ["https://data.example/talk"]
  digests: [{alg: md5, value: "11111111111111111111111111111111"}]
  creators: [{name: A writer}, {name: Another}]
  license: {declared: [{spdx: CC-BY-NC-SA-4.0}], restrictions: [research_only]}
  dates: {created: "2025-01-02T00:00:00Z", issued: "2025"}
  lineage: {derived_from: [{ref: logs}], generated_by_models: [{ref: writer}]}
  consent: {status: claimed}
  shape: {modalities: [text, unknown], size_raw: "1000"}
  disclosures:
  - {tag: sensitive_personal, state: present, basis: structured, detail: beliefs}
  - {tag: personal_data, state: present, basis: structured, detail: beliefs}
  - {tag: minors, state: absent, basis: structured}
  - {tag: gated_access, state: present, basis: structured, detail: registration}
- {id: logs, kind: dataset, name: Logs, license: {declared: [{spdx: MIT OR Apache-2.0}]}, disclosures: [{tag: sensitive_personal, state: absent, basis: structured}]}
- {id: code, kind: code, name: Loader}
disclosures: [{tag: violent, state: absent, basis: structured}]
`

// TestExportHolds: what each format has a field for comes back, and what it has
// none for is listed.
func TestExportHolds(t *testing.T) {
	t.Parallel()
	parsed, err := screening.ParseSpec([]byte(richSpec))
	if err != nil {
		t.Fatal(err)
	}
	common := []string{"/owner", "/objective/kind", "/disclosures/0", "/inputs/0/digests/1", "/inputs/0/trust_remote_code", "/inputs/2/kind",
		"/inputs/3/license/restrictions/0", "/inputs/3/dates/issued", "/inputs/3/consent/status", "/inputs/3/disclosures/2", "/inputs/5/kind", "/inputs/5/name"}
	for name, own := range map[string][]string{
		"CycloneDX": {"/inputs/3/dates/created", "/inputs/3/lineage/generated_by_models/0", "/inputs/3/shape/modalities/0", "/inputs/3/shape/modalities/1",
			"/inputs/3/shape/size_raw", "/inputs/3/disclosures/3", "/inputs/4/disclosures/0"},
		"SPDX": {"/inputs/3/disclosures/0", "/inputs/3/disclosures/1"}, // yes, without the words
	} {
		x := exporters[slices.IndexFunc(exporters, func(x exporter) bool { return x.name == name })]
		out, _ := exported(t, x, parsed.Spec)
		want := append(slices.Clone(common), own...)
		got := slices.Clone(out.NotHeld)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%s", name, diff, out.Bytes)
		}
		for _, pointer := range got {
			if !strings.Contains(string(out.Bytes), pointer) {
				t.Errorf("%s: %s is not listed in the export", name, pointer)
			}
		}
	}
}

// specsOfAllKinds are those that are there, and what the importers make of every fixture.
func specsOfAllKinds(t *testing.T) map[string]*screening.Spec {
	t.Helper()
	specs := map[string]*screening.Spec{}
	names, err := filepath.Glob("../../testdata/specs/*")
	if err != nil || len(names) < 3 {
		t.Fatal(err, names)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := screening.ParseSpec(data)
		if err != nil {
			t.Fatal(err)
		}
		specs[name] = spec.Spec
	}
	for name, data := range filesBelow(t, fixtures) {
		if im, err := Read(name, data); err == nil {
			specs[name] = specOf(t, merged(t, Options{}, im)).Spec
		}
	}
	return specs
}

// TestExportRoundTrip: for specs of all kinds, an export reads back, names what it
// does not hold by pointers into the spec, and makes no licence and no answer milder.
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	for name, spec := range specsOfAllKinds(t) {
		for _, x := range exporters {
			t.Run(name+" "+x.name, func(t *testing.T) {
				t.Parallel()
				out, back := exported(t, x, spec)
				again, err := x.write(spec, exportOptions)
				if err != nil || string(again.Bytes) != string(out.Bytes) {
					t.Error("a second export differs")
				}
				tree, err := treeOf(spec)
				if err != nil {
					t.Fatal(err)
				}
				for _, pointer := range out.NotHeld {
					if _, ok := find(tree, pointer); !ok {
						t.Errorf("%s is not in the spec", pointer)
					}
				}
				for i := range spec.Inputs {
					in := &spec.Inputs[i]
					k := slices.IndexFunc(back.Records, func(rec Record) bool { return localID(rec.ref) == in.ID })
					if k < 0 {
						if in.Kind != "code" && in.Kind != "tokenizer" {
							t.Errorf("input %s is lost", in.ID)
						}
						continue
					}
					checkNotMilder(t, in, &back.Records[k].Input)
				}
			})
		}
	}
}

func checkNotMilder(t *testing.T, in, back *screening.Input) {
	t.Helper()
	own := in.License
	own.Restrictions = nil
	stated, identified := own.Stated()
	held, understood := back.License.Stated()
	for _, code := range stated {
		if !slices.Contains(held, code) {
			t.Errorf("%s: restriction %s is lost", in.ID, code)
		}
	}
	if understood && !identified && len(in.License.Declared) > 0 {
		t.Errorf("%s: a licence that is not understood came back as one that is: %+v", in.ID, back.License)
	}
	for _, tag := range screening.DisclosureTags() {
		if now, was := tagState(back, tag.Name), tagState(in, tag.Name); now != was && (now == "absent" || tag.Protective && now == "present") {
			t.Errorf("%s: %s was %q and came back %q", in.ID, tag.Name, was, now)
		}
	}
}
