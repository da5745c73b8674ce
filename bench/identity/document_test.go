package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLineBreaks(t *testing.T) {
	last := lineBreak{offset: -2}
	for i, br := range lineBreaks {
		switch {
		case br.offset <= last.offset+1 || br.offset >= documentSize-1:
			t.Errorf("entry %d: offset %d comes after %d", i, br.offset, last.offset)
		case br.indent < 0 || br.indent%4 != 0:
			t.Errorf("entry %d: indent %d is not a multiple of 4", i, br.indent)
		case br.indent > last.indent+4:
			t.Errorf("entry %d: indent %d comes after %d", i, br.indent, last.indent)
		}
		last = br
	}
}

func TestRestoreRefusesOtherTexts(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat(" ", documentSize)} {
		if _, err := restore([]byte(text)); err == nil || !strings.Contains(err.Error(), "is not the document") {
			t.Errorf("%d bytes of another text: error %v", len(text), err)
		}
	}
}

// Needs WEIR_SEED_DIR; without it there is no document to restore.
func TestRestoredDocumentCompiles(t *testing.T) {
	dir := os.Getenv("WEIR_SEED_DIR")
	if dir == "" {
		return
	}
	document, err := readDocument(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "document.py")
	if err := os.WriteFile(path, document, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("python3", "-I", "-m", "py_compile", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The whole comparison, small. With WEIR_SEED_DIR it fails if a verdict differs.
func TestCompare(t *testing.T) {
	var b strings.Builder
	if err := compare(&b, os.Getenv("WEIR_SEED_DIR"), 300, 100_000, 1); err != nil {
		t.Fatal(err)
	}
	want := "all equal to the document's"
	if os.Getenv("WEIR_SEED_DIR") == "" {
		want = "the document's implementation is absent: WEIR_SEED_DIR is not set"
	}
	if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "accepted documentation") {
		t.Errorf("want %q and a table:\n%s", want, b.String())
	}
}

func TestCompareRefusesAnotherDocument(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, documentFile), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readDocument(dir); err == nil {
		t.Error("another document is accepted")
	}
	if _, err := readDocument(t.TempDir()); err == nil {
		t.Error("a folder without the document is accepted")
	}
}
