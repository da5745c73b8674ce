package formats

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/screening"
	"weir/screening/packs"
)

var update = flag.Bool("update", false, "write the goldens anew")

const fixtures = "../../testdata/formats"

// filesBelow gives the files of a directory by their slash-separated names.
func filesBelow(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if strings.Contains(name, "/") && !strings.HasPrefix(name, "goldens/") {
			all[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGoldens: what each fixture gives, to the letter.
func TestGoldens(t *testing.T) {
	t.Parallel()
	all := filesBelow(t, fixtures)
	if len(all) < 60 {
		t.Fatalf("only %d fixtures", len(all))
	}
	formats := map[string]bool{}
	for name, data := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(fixtures, "goldens", strings.ReplaceAll(name, "/", "_")+".golden")
			got := describe(t, name, data)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs; if that is meant, run go test ./screening/formats -run Goldens -update (-want +got)\n%s", path, diff)
			}
		})
		if im, err := Read(name, data); err == nil {
			formats[im.Format] = true
		}
	}
	for _, by := range importers() {
		if !formats[by.id] {
			t.Errorf("no fixture is %s", by.says)
		}
	}
}

// describe writes an import as JSON without what is empty.
func describe(t *testing.T, name string, data []byte) string {
	t.Helper()
	im, err := Read(name, data)
	var shown any
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		if im != nil {
			t.Error("refused, and yet something was imported")
		}
		shown = map[string]any{"refused": refused.Reason, "line": refused.Line, "detail": refused.Detail}
	case err != nil:
		t.Fatalf("%v is no RefusedError", err)
	default:
		var records []any
		for _, rec := range im.Records {
			records = append(records, map[string]any{"input": rec.Input, "from": rec.From, "names": rec.names})
		}
		shown = map[string]any{"format": im.Format, "version": im.Version, "run": im.Run, "objective": im.Objective, "records": records, "findings": im.Findings}
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(pruned(tree), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			x = pruned(x)
			if v[k] = x; x == nil || x == "" || x == false && k == "run" || k != "lineage" && cmp.Equal(x, map[string]any{}) {
				delete(v, k)
			}
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return v
}

func vocabulary(t testing.TB) *screening.Vocabulary {
	t.Helper()
	reg := screening.NewRegistry()
	var all []*screening.Pack
	for _, id := range []string{screening.FloorID, "content_hazards", "data_rights", "general_ethics"} {
		data, err := fs.ReadFile(packs.FS, id+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := screening.LoadPack(id, data, reg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, all...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// specOf makes a whole spec of a draft: what only people know is filled in.
func specOf(t testing.TB, d *Draft) *screening.ParsedSpec {
	t.Helper()
	d.Spec.RunRef, d.Spec.Owner = "team/run@1", "ana"
	if d.Spec.Objective.Kind == "" {
		d.Spec.Objective.Kind = "sft"
	}
	raw, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(raw), `disclosure_statement: ""`, `disclosure_statement: It can be wrong.`, 1)
	spec, err := screening.ParseSpec([]byte(text))
	if err != nil {
		t.Fatalf("the draft is no spec: %v\n%s", err, raw)
	}
	return spec
}

// TestFiles holds for every file there is: it ends as an import or as a refusal
// with a reason, each value points to where it came from, prose states nothing,
// the draft is the spec that was meant, and gaps alone never admit.
//
// WEIR_SAMPLES_DIR names a folder of real files to hold it for as well.
func TestFiles(t *testing.T) {
	t.Parallel()
	v := vocabulary(t)
	dirs := []string{fixtures}
	if dir := os.Getenv("WEIR_SAMPLES_DIR"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		for name, data := range filesBelow(t, dir) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				im, err := Read(name, data)
				if err != nil {
					var refused *RefusedError
					if !errors.As(err, &refused) || refused.Reason == "" || im != nil {
						t.Errorf("got %v, %v", im, err)
					}
					return
				}
				checkImport(t, name, data, im)
				d, err := Merge([]*Import{im}, Options{})
				if err != nil {
					t.Fatal(err)
				}
				spec := specOf(t, d)
				want := d.Spec
				want.DisclosureStatement = "It can be wrong."
				if diff := cmp.Diff(&want, spec.Spec, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the draft reads as another spec (-meant +read)\n%s", diff)
				}
				decision, err := screening.Classify(spec, v, "2026-06-01")
				if err != nil {
					t.Fatal(err)
				}
				if decision.Outcome == screening.OutcomeAdmit {
					t.Error("a draft with nothing but gaps is admitted")
				}
			})
		}
	}
}

func checkImport(t *testing.T, name string, data []byte, im *Import) {
	t.Helper()
	s, err := open(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if im.SHA256 != screening.Sum(data) {
		t.Error("not the digest of the file")
	}
	points := func(pointer string) bool { return strings.HasPrefix(pointer, "#") || resolves(s, pointer) }
	for _, f := range im.Findings {
		if !points(f.Pointer) || f.Code == "" || screening.IsBlank(f.Detail) {
			t.Errorf("finding %+v", f)
		}
	}
	for i, rec := range im.Records {
		raw, err := json.Marshal(rec.Input)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := readJSON("record", raw)
		if err != nil {
			t.Fatal(err)
		}
		for to, at := range rec.From {
			if _, ok := find(value{node: tree}, to); !ok {
				t.Errorf("record %d: %s is no value of it", i, to)
			}
			if !points(at) {
				t.Errorf("record %d: %s comes from %s, which is not in the file", i, to, at)
			}
		}
		prune(tree, "")
		for _, leaf := range allLeaves(value{node: tree}) {
			if !comesFromSomewhere(rec.From, leaf) {
				t.Errorf("record %d: %s comes from nowhere", i, leaf)
			}
		}
		for _, d := range rec.Disclosures {
			if d.Basis == "prose" && d.State != "not_assessed" && d.State != "placeholder" {
				t.Errorf("record %d: prose states something: %+v", i, d)
			}
		}
		for k := range rec.License.Declared {
			if rec.From["/license/declared/"+strconv.Itoa(k)] == "" {
				t.Errorf("record %d: licence %d comes from nowhere", i, k)
			}
		}
	}
}

func allLeaves(v value) (all []string) {
	if len(v.items) == 0 {
		return []string{v.at}
	}
	for i := range v.items {
		item := value{&v.items[i], v.at + "/" + strconv.Itoa(i)}
		if v.kind == isMap {
			item = v.member(i)
		}
		all = append(all, allLeaves(item)...)
	}
	return all
}

// comesFromSomewhere looks for the origin of a value, or of the part that it
// belongs to. The kind is that of the record.
func comesFromSomewhere(from map[string]string, pointer string) bool {
	if pointer == "/kind" {
		return true
	}
	for ; pointer != ""; pointer = pointer[:strings.LastIndexByte(pointer, '/')] {
		if _, ok := from[pointer]; ok {
			return true
		}
	}
	return false
}

func resolves(s *source, pointer string) bool {
	if len(s.docs) == 1 {
		_, ok := find(s.docs[0], pointer)
		return ok
	}
	for _, d := range s.docs {
		if rest, ok := strings.CutPrefix(pointer, d.at); ok {
			if _, ok := find(d, rest); ok {
				return true
			}
		}
	}
	return pointer == ""
}

func find(v value, pointer string) (value, bool) {
	for pointer != "" {
		var key string
		key, pointer, _ = strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch i, err := strconv.Atoi(key); {
		case v.kind == isList && err == nil && i < len(v.items):
			v = value{node: &v.items[i]}
		case v.kind == isMap && slices.Contains(v.keys, key):
			v = v.get(key)
		default:
			return noValue, false
		}
	}
	return v, true
}
