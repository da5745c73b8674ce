package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// englishProse is text that people wrote: the comments of Go's standard library, in the order of its files, as one
// text of plain ASCII. What one Go version gives is always the same.
func englishProse(size int) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the Go source: %w", err)
	}
	var b bytes.Buffer
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case b.Len() >= size:
			return fs.SkipAll
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(src[:min(len(src), 4096)], []byte("Code generated")) {
			appendComments(&b, src)
		}
		return err
	})
	if err == nil && b.Len() < size {
		err = fmt.Errorf("the Go source has only %d bytes of comments", b.Len())
	}
	return string(b.Bytes()[:min(size, b.Len())]), err
}

// appendComments appends the comments that are sentences: not build tags, licences' heads, or commented code.
func appendComments(b *bytes.Buffer, src []byte) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		_, tok, text := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok != token.COMMENT || len(text) < 40 || !strings.HasPrefix(text, "// ") || strings.Contains(text, "Copyright") ||
			strings.Contains(text, "license that can be found") || strings.Contains(text, "Use of this source code") {
			continue
		}
		for _, c := range []byte(text[3:]) {
			if c >= 0x80 {
				c = ' '
			}
			b.WriteByte(c)
		}
		b.WriteByte('\n')
	}
}

// phrasesLike are n different phrases of two to four words that the text has, frequent ones more often; a fiftieth of
// the phrases is taken from the text as it is.
func phrasesLike(text string, n int) []string {
	rng := rand.New(rand.NewPCG(3, 4))
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWordByte(byte(r)) })
	count := map[string]int{}
	for _, w := range fields {
		if len(w) >= 3 && !strings.ContainsAny(w, "0123456789") {
			count[w]++
		}
	}
	ranked := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	ranked = ranked[200:min(len(ranked), 20_000)] // words that carry a meaning, as those of a vocabulary of harms do
	zipf := rand.NewZipf(rng, 1.1, 30, uint64(len(ranked)-1))
	seen := make(map[string]bool, n)
	var phrases []string
	for len(phrases) < n {
		pick := make([]string, 2+rng.IntN(3))
		at := rng.IntN(len(fields) - len(pick))
		for j := range pick {
			if pick[j] = fields[at+j]; len(phrases)%50 != 0 {
				pick[j] = ranked[zipf.Uint64()]
			}
		}
		if p := strings.Join(pick, " "); !seen[p] {
			seen[p] = true
			phrases = append(phrases, p)
		}
	}
	return phrases
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// hit is one occurrence of a phrase, as all matchers can report it.
type hit struct{ phrase, start, end int }

// literal keeps the hits that every matcher must have: whole words, with one space between them.
func literal(text string, hits []hit) []hit {
	kept := hits[:0]
	for _, h := range hits {
		whole := (h.start == 0 || !isWordByte(text[h.start-1])) && (h.end == len(text) || !isWordByte(text[h.end]))
		if whole && strings.IndexFunc(text[h.start:h.end], func(r rune) bool { return r != ' ' && !isWordByte(byte(r)) }) < 0 &&
			!strings.Contains(text[h.start:h.end], "  ") {
			kept = append(kept, h)
		}
	}
	return kept
}
