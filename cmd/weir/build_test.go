package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The image is built from what .dockerignore leaves: every file that the program is
// made of has to be there.
func TestImageHasWhatTheProgramNeeds(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	patterns := strings.Fields(string(text))
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,GoFiles,EmbedFiles", "./cmd/weir")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"go.mod", "go.sum"}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(dir) {
			continue // not ours
		}
		for _, name := range append(p.GoFiles, p.EmbedFiles...) {
			needed = append(needed, path.Join(filepath.ToSlash(dir), name))
		}
	}
	if len(needed) < 100 {
		t.Errorf("only %d files were listed", len(needed))
	}
	for _, file := range needed {
		if left(patterns, file) {
			t.Errorf(".dockerignore leaves out %s, which the program is made of", file)
		}
	}
	for file, want := range map[string]bool{".git/config": true, "docs/api.md": true, "docs/decisions/0001.md": true, "docs/schemas/spec.v1.json": false, "go.mod": false} {
		if left(patterns, file) != want {
			t.Errorf("%s is left out: %v", file, !want)
		}
	}
}

// left tells whether patterns of .dockerignore leave a file out: the last one wins
// that matches it or a directory above it.
func left(patterns []string, file string) (out bool) {
	for _, p := range patterns {
		p, back := strings.CutPrefix(p, "!")
		for at := file; at != "."; at = path.Dir(at) {
			if ok, err := path.Match(p, at); err == nil && ok {
				out = !back
			}
		}
	}
	return out
}

// A fuzz target that fails, or does not run, fails make fuzz, and each has its whole
// time: nothing stops reading what it prints.
func TestMakeFuzz(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		target string
		passes bool
	}{
		"all pass":     {"echo 'fuzz: elapsed: 0s'; seq 20000; echo PASS", true},
		"one fails":    {"echo 'fuzz: elapsed: 0s'; seq 20000; echo FAIL; exit 1", false},
		"none is run":  {"echo 'no tests to run'", false},
		"cannot build": {"echo '[build failed]'; exit 2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gone := filepath.Join(dir, "gone")
			tool := filepath.Join(dir, "go")
			script := "#!/bin/bash\ntrap 'touch " + gone + "' PIPE\n" + tt.target + "\n"
			if err := os.WriteFile(tool, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", "fuzz", "GO="+tool)
			cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=") // of the make that runs the tests
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.passes {
				t.Errorf("%v\n%.2000s", err, out)
			}
			if _, err := os.Stat(gone); err == nil {
				t.Error("the target was cut off")
			}
		})
	}
}
