package formats

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

func merged(t *testing.T, opts Options, ims ...*Import) *Draft {
	t.Helper()
	d, err := Merge(ims, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openIn gives the open points of a draft as "code pointer".
func openIn(d *Draft) (all []string) {
	for _, f := range d.Spec.Sources {
		for _, p := range f.Open {
			all = append(all, p.Code+" "+p.Pointer)
		}
	}
	return all
}

const runOfTwo = "base_model: lab/base\ndatasets:\n- path: lab/talk\n- path: lab/logs\n"

// TestMatching: whose record a file of metadata is.
func TestMatching(t *testing.T) {
	t.Parallel()
	const mit = "pretty_name: Something\nlicense: mit"
	for _, tt := range []struct {
		name  string
		run   string
		files map[string]string
		bind  map[string]string
		want  string // input ids with their licences
		open  []string
	}{
		{"a card and one data set", "base_model: lab/base\ndatasets: [{path: lab/talk}]", map[string]string{"c.md": cardOf(mit)}, nil, "base talk=mit", nil},
		{"a card and two data sets", runOfTwo, map[string]string{"c.md": cardOf(mit)}, nil, "base talk logs something=mit", []string{"unresolved "}},
		{"a card that is told", runOfTwo, map[string]string{"c.md": cardOf(mit)}, map[string]string{"c.md": "lab/logs"}, "base talk logs=mit", nil},
		{"two cards and one data set", "base_model: lab/base\ndatasets: [{path: lab/talk}]", map[string]string{"a.md": cardOf(mit), "b.md": cardOf("pretty_name: B\nlicense: cc-by-nc-4.0")}, nil,
			"base talk something=mit b=cc-by-nc-4.0", []string{"unresolved ", "unresolved "}},
		{"a record that says whose it is", runOfTwo, map[string]string{"c.json": croissant(`"name": "x", "license": "MIT", "url": "https://huggingface.co/datasets/Lab/Logs/"`)}, nil, "base talk logs=mit", nil},
		{"a record of something else", "base_model: lab/base\ndatasets: [{path: lab/talk}]", map[string]string{"c.json": croissant(`"name": "x", "license": "MIT", "url": "https://huggingface.co/datasets/lab/other"`)}, nil,
			"base talk x=mit", []string{"unresolved "}},
		{"a model of the same name is not the data set", "base_model: lab/base\ndatasets: [{path: lab/talk}]",
			map[string]string{"b.json": `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "machine-learning-model", "name": "m", "purl": "pkg:huggingface/lab/talk", "licenses": [{"license": {"id": "MIT"}}], "modelCard": {"modelParameters": {}}}]}`},
			nil, "base talk m=mit", []string{"unresolved /components/0"}},
		{"a BOM of the base model", "base_model: lab/base\ndatasets: [{path: lab/talk}]",
			map[string]string{"b.json": `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "machine-learning-model", "name": "m", "purl": "pkg:huggingface/Lab/base@v1", "licenses": [{"license": {"id": "MIT"}}], "modelCard": {"modelParameters": {}}}]}`},
			nil, "base=mit talk", nil},
		{"a collection of records", "base_model: lab/base\ndatasets: [{path: lab/talk}]", map[string]string{"p.json": strings.Replace(dpi(`"Licenses": [{"License": "MIT"}], "Hugging Face URL": "https://huggingface.co/datasets/lab/talk"`), "}}",
			`}, "e": {"Unique Dataset Identifier": "e", "Licenses": [{"License": "CC BY-NC 4.0"}]}}`, 1)}, nil, "base talk=mit", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ims := []*Import{imported(t, "a.yaml", tt.run)}
			for _, name := range []string{"a.md", "b.md", "b.json", "c.md", "c.json", "p.json"} {
				if text, ok := tt.files[name]; ok {
					ims = append(ims, imported(t, name, text))
				}
			}
			d := merged(t, Options{For: tt.bind}, ims...)
			var got []string
			for _, in := range d.Spec.Inputs {
				one := in.ID
				for i := range in.License.Declared {
					one += "=" + in.License.Declared[i].Name()
				}
				got = append(got, one)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
			open := slices.DeleteFunc(openIn(d), func(s string) bool { return strings.Contains(s, "datasets/") })
			if diff := cmp.Diff(tt.open, open); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestContradictions: what two files say of one input is kept from both, the
// worse holds, and the difference is open.
func TestContradictions(t *testing.T) {
	t.Parallel()
	const url = `"url": "https://huggingface.co/datasets/lab/talk", `
	card := func(head string) *Import { return imported(t, "c.md", cardOf("pretty_name: d\n"+head)) }
	rock := func(rest string) *Import { return imported(t, "c.json", croissant(url+`"name": "d", `+rest)) }
	for _, tt := range []struct {
		name string
		a, b *Import
		want string // pointers of contradictions
		ok   func(in *screening.Input) bool
	}{
		{"two licences", card("license: mit"), rock(`"license": "CC BY-NC 4.0"`), "/license", func(in *screening.Input) bool {
			codes, _ := in.License.Stated()
			return len(in.License.Declared) == 2 && slices.Contains(codes, "nc")
		}},
		{"one licence, two spellings", card("license: cc-by-sa-4.0"), rock(`"license": "https://choosealicense.com/licenses/cc-by-sa-4.0/"`), "", func(in *screening.Input) bool {
			_, identified := in.License.Stated()
			return identified
		}},
		{"a licence and a placeholder", card("license: mit"), rock(`"license": "TBD"`), "/license", func(in *screening.Input) bool {
			_, identified := in.License.Stated()
			return !identified
		}},
		{"synthetic and not", card("tags: [synthetic]"), rock(`"rai:hasSyntheticData": false`), "/rai:hasSyntheticData", func(in *screening.Input) bool {
			return len(in.Disclosures) == 2
		}},
		{"parents and none", card("source_datasets: [original]"), rock(`"isBasedOn": "https://x.example/p"`), "", func(in *screening.Input) bool {
			return len(in.Lineage.DerivedFrom) == 1
		}},
		{"two versions", card("version: 1.0"), rock(`"version": "2.0"`), "/version", func(in *screening.Input) bool { return in.Version == "1.0" }},
		{"two versions of one card", card("version: 1.0\ndataset_info: {version: 2.0}"), rock(`"x": 1`), "/dataset_info/version", func(in *screening.Input) bool { return in.Version == "1.0" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := merged(t, Options{}, imported(t, "a.yaml", "base_model: lab/base\ndatasets: [{path: lab/talk}]"), tt.a, tt.b)
			in := &d.Spec.Inputs[1]
			var found []string
			for _, s := range openIn(d) {
				if rest, ok := strings.CutPrefix(s, "contradiction "); ok {
					found = append(found, rest)
				}
			}
			if tt.want != "" && !slices.Contains(found, tt.want) || tt.name == "one licence, two spellings" && len(found) > 0 {
				t.Errorf("contradictions at %q", found)
			}
			if tt.ok != nil && !tt.ok(in) {
				t.Errorf("got %+v", in)
			}
		})
	}
	concluded := func(file, id string) *Import {
		return imported(t, file, `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "data", "name": "d", "purl": "pkg:huggingface/datasets/lab/talk", "data": [{"type": "dataset"}],
			"licenses": [{"license": {"id": "MIT"}}, {"license": {"id": "`+id+`", "acknowledgement": "concluded"}}]}]}`)
	}
	two := merged(t, Options{}, concluded("a.json", "MIT"), concluded("b.json", "CC-BY-NC-4.0"))
	if codes, _ := two.Spec.Inputs[0].License.Stated(); !slices.Contains(codes, "nc") || !slices.Contains(openIn(two), "contradiction /components/0/licenses/1/license") {
		t.Errorf("two conclusions: %+v, %v", two.Spec.Inputs[0].License, openIn(two))
	}
	d := merged(t, Options{}, imported(t, "a.yaml", "base_model: lab/base\ndatasets: [{path: lab/talk}]"), card("source_datasets: [original]"), rock(`"isBasedOn": "https://x.example/p"`))
	if !slices.ContainsFunc(openIn(d), func(s string) bool { return strings.HasPrefix(s, "contradiction") }) {
		t.Error("parents and none is no contradiction")
	}
	a := imported(t, "d.json", `{"source": {"title": "d", "location": "https://x.example/d"}, "provenance": {"date": "2025"}, "use": {"consents": ["https://x.example/c"], "intended-purpose": []}}`)
	b := imported(t, "e.json", `{"source": {"title": "d", "location": "https://x.example/d"}, "provenance": {"date": "2025"}, "use": {"consents": ["TBD"], "intended-purpose": []}}`)
	if d := merged(t, Options{}, a, b); len(d.Spec.Inputs) != 1 || d.Spec.Inputs[0].Consent.Status != "unknown" || !slices.Contains(openIn(d), "contradiction /use/consents/0") {
		t.Errorf("claimed and to be filled in: got %+v, %v", d.Spec.Inputs, openIn(d))
	}
}

// TestEverythingIsFolded: what only one of two files says is in the spec, in
// whichever order they come.
func TestEverythingIsFolded(t *testing.T) {
	t.Parallel()
	const at = `"location": "https://huggingface.co/datasets/lab/talk"`
	run := imported(t, "a.yaml", "base_model: lab/base\ndatasets: [{path: lab/talk, trust_remote_code: false, split: train}]")
	card := imported(t, "c.md", cardOf("pretty_name: d\nlicense: mit\ngated: auto\nextra_gated_eu_disallowed: true\nsource_datasets: [original]\nlanguage: de\nlanguage_creators: [found]"))
	rock := imported(t, "c.json", croissant(`"url": "https://huggingface.co/datasets/lab/talk", "name": "d", "description": "Words.", "license": "MIT", "version": "1", "creator": {"name": "A"},
		"publisher": {"name": "P"}, "datePublished": "2025", "inLanguage": "en", "isBasedOn": "https://x.example/p", "spatialCoverage": "DE", "copyrightNotice": "(c)",
		"temporalCoverage": "2020/2021", "rai:dataCollection": "Asked.", "rai:hasSyntheticData": true,
		"distribution": [{"@type": "cr:FileObject", "name": "f", "contentUrl": "https://x.example/f", "encodingFormat": "audio/wav", "md5": "d41d8cd98f00b204e9800998ecf8427e"}]`))
	record := imported(t, "d.json", `{"source": {"title": "d", `+at+`, "issuer": [{"name": "I"}]}, "provenance": {"previous-date": "2024", "generation-method": [{"code": "sensor"}]},
		"use": {"consents": ["https://x.example/c"], "license": ["MIT"], "storage-forbidden": [{"country": "CN"}], "intended-purpose": [{"code": "x"}]}}`)
	runs := true
	rock.Records[0].TrustRemoteCode = &runs // no format of metadata says so yet
	for _, ims := range [][]*Import{{run, card, rock, record}, {record, rock, card, run}} {
		in := merged(t, Options{}, ims...).Spec.Inputs[1]
		for what, ok := range map[string]bool{
			"restrictions": slices.Contains(in.License.Restrictions, "eu_disallowed") && slices.Contains(in.License.Restrictions, "geo"),
			"gated":        slices.ContainsFunc(in.Disclosures, func(d screening.Disclosure) bool { return d.Tag == "gated_access" && d.State == "present" }),
			"synthetic":    slices.ContainsFunc(in.Disclosures, func(d screening.Disclosure) bool { return d.Tag == "synthetic" && d.State == "present" }),
			"description":  in.Description == "Words.", "version": in.Version == "1", "creators": len(in.Creators) == 2, "publisher": in.Publisher.Name == "P",
			"issuer": in.Issuer.Name == "I", "issued": in.Dates.Issued == "2025", "previous": in.Dates.Previous == "2024", "languages": len(in.Shape.Languages) == 2,
			"parents": in.Lineage != nil && len(in.Lineage.DerivedFrom) == 1, "geography": len(in.Collection.Geography) == 1, "copyright": in.License.Copyright == "(c)",
			"start": in.Collection.Start == "2020", "end": in.Collection.End == "2021", "collection": in.Collection.Description == "Asked.",
			"methods": len(in.Collection.Methods) > 0, "digests": len(in.Digests) == 1, "modalities": slices.Equal(in.Shape.Modalities, []string{"audio", "unknown"}),
			"sources": len(in.Sources) == 2, "consent": in.Consent.Status == "claimed" && len(in.Consent.Docs) == 1, "excluded": slices.Equal(in.Residency.Excluded, []string{"CN"}),
			"code": in.TrustRemoteCode != nil && *in.TrustRemoteCode, "split": in.Split == "train", "licence": len(in.License.Declared) == 2, "uris": len(in.URIs) >= 3,
		} {
			if !ok {
				t.Errorf("%s: got %+v", what, in)
			}
		}
	}
	yes := imported(t, "a.yaml", "base_model: lab/base\ntrust_remote_code: true\ndatasets: [{path: lab/talk}]")
	bom := imported(t, "m.md", cardOf("model_name: lab/base\nbase_model: x/y\nlicense: mit"))
	if in := merged(t, Options{For: map[string]string{"m.md": "lab/base"}}, yes, bom).Spec.Inputs[0]; in.TrustRemoteCode == nil || !*in.TrustRemoteCode || len(in.Lineage.BaseModels) != 1 {
		t.Errorf("the base model: %+v", in)
	}
}

// TestLineageOfAFile: references within a file become ids of inputs, and those of
// two files do not mix.
func TestLineageOfAFile(t *testing.T) {
	t.Parallel()
	bom := func(name, purl, data string) *Import {
		return imported(t, name, `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [
			{"type": "machine-learning-model", "bom-ref": "m", "name": "`+name+`", "purl": "`+purl+`", "modelCard": {"modelParameters": {"datasets": [{"ref": "d"}]}}},
			{"type": "data", "bom-ref": "d", "name": "`+data+`", "data": [{"type": "dataset"}]}]}`)
	}
	d := merged(t, Options{}, bom("one", "pkg:huggingface/lab/one", "logs"), bom("two", "pkg:huggingface/lab/two", "talk"),
		imported(t, "m.md", cardOf("model_name: three\nbase_model: lab/two\nlibrary_name: x\npipeline_tag: y")))
	got := map[string]string{}
	for _, in := range d.Spec.Inputs {
		if in.Lineage != nil {
			for _, ref := range slices.Concat(in.Lineage.DerivedFrom, in.Lineage.BaseModels) {
				got[in.ID] = ref.Ref
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"one": "logs", "two": "talk", "three": "two"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLlamaFactoryNames: words of a run are resolved by the file that defines them.
func TestLlamaFactoryNames(t *testing.T) {
	t.Parallel()
	run := imported(t, "run.yaml", "model_name_or_path: lab/base\nstage: sft\ndataset: identity, talk")
	info := imported(t, "dataset_info.json", `{"identity": {"file_name": "identity.json"}, "talk": {"hf_hub_url": "lab/talk"}, "other": {"script_url": "x.py"}}`)
	d := merged(t, Options{}, run)
	if diff := cmp.Diff([]string{"unresolved /dataset", "unresolved /dataset"}, openIn(d)); diff != "" {
		t.Errorf("alone: %s", diff)
	}
	d = merged(t, Options{}, run, info, imported(t, "c.json", croissant(`"name": "x", "license": "MIT", "url": "https://huggingface.co/datasets/lab/talk"`)))
	if diff := cmp.Diff([]string{"unresolved /identity/file_name"}, openIn(d)); diff != "" {
		t.Errorf("with its definitions: %s", diff)
	}
	if in := d.Spec.Inputs[2]; in.Name != "lab/talk" || len(in.License.Declared) != 1 {
		t.Errorf("got %+v", in)
	}
}

func TestMergeRefusals(t *testing.T) {
	t.Parallel()
	run := imported(t, "a.yaml", "base_model: lab/base\ndatasets: [{path: lab/talk}]")
	if _, err := Merge([]*Import{run, imported(t, "b.yaml", "base_model: lab/base\ndatasets: [{path: lab/talk}]")}, Options{}); !errors.Is(err, ErrManyRuns) {
		t.Errorf("two runs: %v", err)
	}
	if _, err := Merge(nil, Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	card := imported(t, "c.md", cardOf("license: mit"))
	for _, bind := range []map[string]string{{"c.md": "lab/other"}, {"d.md": "lab/talk"}} {
		if _, err := Merge([]*Import{run, card}, Options{For: bind}); err == nil {
			t.Errorf("%v: no error", bind)
		}
	}
	if _, err := Merge([]*Import{run, card}, Options{For: map[string]string{"c.md": "lab/talk"}}); err != nil {
		t.Error(err)
	}
	d := merged(t, Options{Objective: "dpo"}, run)
	if d.Spec.Objective.Kind != "dpo" || !slices.Contains(openIn(d), "contradiction ") {
		t.Errorf("another objective than the file's: %v %v", d.Spec.Objective, openIn(d))
	}
	trl := imported(t, "t.yaml", "model_name_or_path: lab/base\ndataset_name: lab/talk")
	if d := merged(t, Options{Objective: "dpo"}, trl); d.Spec.Objective.Kind != "dpo" || len(openIn(d)) != 0 {
		t.Errorf("an objective that the file leaves open: %v %v", d.Spec.Objective, openIn(d))
	}
	if d := merged(t, Options{}, trl); d.Spec.Objective.Kind != "" || !slices.Equal(d.Gaps(), []string{"run_ref", "owner", "objective.kind"}) {
		t.Errorf("nothing told: %v, gaps %v", d.Spec.Objective, d.Gaps())
	}
}

// TestGapsAreLinesToFillIn: each gap of a draft is right as soon as it is filled in.
func TestGapsAreLinesToFillIn(t *testing.T) {
	t.Parallel()
	fill := strings.NewReplacer("STATE", "absent", "CODE", "research", "KIND", "licensed", "STATUS", "documented", "PERSON", "bo", "TEAM", "nlp",
		"MODALITY", "text", "COMMIT", strings.Repeat("0a", 20), "ID", "lab")
	for _, im := range []*Import{imported(t, "c.md", cardOf("pretty_name: lab\nlicense: mit")), imported(t, "p.json", dpi(`"Licenses": []`)),
		imported(t, "m.md", cardOf("model_name: lab\nlibrary_name: x"))} {
		d := merged(t, Options{RunRef: "r", Owner: "ana", Objective: "sft"}, im)
		raw, err := d.YAML()
		if err != nil {
			t.Fatal(err)
		}
		gaps := 0
		var text strings.Builder
		for line := range strings.Lines(string(raw)) {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			gap, ok := strings.CutPrefix(line[len(indent):], "#? ")
			if im.Format != "huggingface_model" && strings.HasPrefix(gap, "base_model:") {
				continue // there is none to name
			}
			if ok {
				gaps++
				line = indent + fill.Replace(gap)
			}
			text.WriteString(line)
		}
		if gaps < 35 {
			t.Errorf("%s: %d gaps", im.Name, gaps)
		}
		if _, err := screening.ParseSpec([]byte(text.String())); err != nil {
			t.Errorf("%s: %v\n%s", im.Name, err, text.String())
		}
	}
}

// TestHostileNames: a file may be called anything.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " ", " \x8e", "a b.yaml", "x\x00.yaml", "x\n- y.yaml", strings.Repeat("n", 5000)} {
		run := imported(t, name, "model_name_or_path: lab/base\nstage: sft\ndataset: talk")
		other := imported(t, name+"2", "model_name_or_path: lab/base\nstage: sft\ndataset: talk")
		spec := specOf(t, merged(t, Options{}, run))
		if spec.Sources[0].Name == "" || spec.Sources[0].Open[0].Pointer != "/dataset" {
			t.Errorf("%q: got %+v", name, spec.Sources[0])
		}
		if other.SHA256 != run.SHA256 {
			t.Error("the digest is of the bytes alone")
		}
	}
}

// TestHostileText: what a file says cannot become a line of the draft.
func TestHostileText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a\nowner: eve", "a # b", `"}`, "'", "no", "Null", "1e3", "- x", "{a: b}", "\u2028x", "\u0085x", "\ufeffx", "a: b", "%TAG", "\U000e0041", "\x7f", " lead", "trail ", "é漢"} {
		im := imported(t, "c\nowner: eve.md", cardOf("pretty_name: "+quoted(s)+"\n"+quoted(s)+": x"))
		spec := specOf(t, merged(t, Options{}, im))
		if got := spec.Inputs[0].Name; got != strings.TrimSpace(s) || spec.Owner != "ana" {
			t.Errorf("%q: got %q, owner %s", s, got, spec.Owner)
		}
	}
}
