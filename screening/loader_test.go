package screening_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/screening"
)

const packDir = "../testdata/packs"

var namesALine = regexp.MustCompile(` line [0-9]+:`)

// Every bad pack is a file whose first line says what its message has to say;
// the message also names the file and a line. A profile is held against the
// working packs, and one that is not there is missing.
func TestPackFiles(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(packDir)
	if err != nil {
		t.Fatal(err)
	}
	reg := screening.NewRegistry()
	var working []*screening.Pack
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "working_") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(packDir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		p, err := screening.LoadPack(entry.Name(), data, reg)
		if err != nil {
			t.Fatalf("does not load: %v", err)
		}
		working = append(working, p)
	}
	count := map[string]int{}
	for _, entry := range entries {
		name := entry.Name()
		kind, _, _ := strings.Cut(name, "_")
		count[kind]++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(packDir, name))
			if err != nil {
				t.Fatal(err)
			}
			p, err := screening.LoadPack(name, data, reg)
			if err == nil {
				_, err = p.Bases(working)
			}
			switch kind {
			case "working":
				if err != nil {
					t.Fatalf("does not load: %v", err)
				}
				if p.SHA256.IsZero() {
					t.Error("has no digest")
				}
			case "busted":
				firstLine, _, _ := strings.Cut(string(data), "\n")
				want, ok := strings.CutPrefix(firstLine, "# want: ")
				if !ok || want == "" {
					t.Fatal(`the first line must be "# want: " and a part of the message`)
				}
				if err == nil {
					t.Fatalf("loads, want %q", want)
				}
				var invalid *screening.InvalidError
				if !errors.As(err, &invalid) {
					t.Errorf("the error is a %T", err)
				}
				for _, part := range []string{want, name} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("message %q lacks %q", err, part)
					}
				}
				if !namesALine.MatchString(err.Error()) {
					t.Errorf("message %q names no line", err)
				}
			default:
				t.Error("a fixture is named working_… or busted_…")
			}
		})
	}
	if count["busted"] < 25 || count["working"] < 3 {
		t.Errorf("found %d busted and %d working packs", count["busted"], count["working"])
	}
}
