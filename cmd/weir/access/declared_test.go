package access_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/review"
	"weir/screening"
)

const (
	files    = "../../../testdata/access"
	declared = "../../../testdata/declarations/working_people.yaml"
)

// Every bad declaration is a file whose first line says what its message has to
// say, beside the name of the file.
func TestDeclarationFiles(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(declared)
	if err != nil {
		t.Fatal(err)
	}
	people, err := review.LoadPeople("people.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(files)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, entry := range entries {
		name := entry.Name()
		kind, _, _ := strings.Cut(name, "_")
		count[kind]++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(files, name))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, access.FileName), data, 0o600),
				os.WriteFile(filepath.Join(dir, "busted_empty.yaml"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err = access.Load(dir, people, access.Config{})
			if kind == "working" {
				if err != nil {
					t.Fatalf("does not load: %v", err)
				}
				return
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want := strings.TrimPrefix(first, "# want: ")
			var invalid *screening.InvalidError
			if err == nil || !strings.Contains(err.Error(), cmp.Or(want, "empty")) || !strings.Contains(err.Error(), access.FileName) {
				t.Errorf("got %v, want an error with %q and the file's name", err, want)
			} else if strings.HasPrefix(want, "/") && !errors.As(err, &invalid) {
				t.Errorf("%v is no InvalidError", err)
			}
		})
	}
	if count["busted"] < 35 || count["working"] < 3 {
		t.Errorf("found %d busted and %d working declarations", count["busted"], count["working"])
	}
}

// The declarations that the manual shows load together.
func TestTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(page, -1) {
		key, _, _ := strings.Cut(string(m[1]), ":")
		found[key] = m[1]
	}
	people, err := review.LoadPeople("people.yaml", found["people"])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, access.FileName), found["issuers"], 0o600),
		os.WriteFile(filepath.Join(dir, "cluster.jwks"), accesstest.NewIssuer(t).JWKS(), 0o600)); err != nil {
		t.Fatal(err)
	}
	a, err := access.Load(dir, people, access.Config{})
	if err != nil || a.Issuers() != 2 {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{"https://idp.example|00u7": "bo", "https://kubernetes.default.svc.cluster.local|system:serviceaccount:airflow:worker": "airflow-prod"} {
		if p, err := a.Principal(subject); err != nil || p.Subject != want || p.Project != "nlp" || len(p.Scopes) != 1 {
			t.Errorf("%s: %+v, %v", subject, p, err)
		}
	}
}
