package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
)

// exampleLog is a log of a few subjects with what its decisions name.
type exampleLog struct {
	tree     stored
	entries  []Entry
	payloads map[int64]Payload
	states   []Checkpoint // after each entry
	cosigned []byte       // what witnesses saw, nil for no witness
}

func newExampleLog(t *testing.T) *exampleLog {
	t.Helper()
	l := &exampleLog{payloads: map[int64]Payload{}}
	last := map[string]Entry{}
	for i, step := range []struct{ subject, project, kind string }{
		{"a", "default", DecidedEvent}, {"b", "other", DecidedEvent}, {"a", "default", "review.decided"},
		{"c", "default", DecidedEvent}, {"log", "", "key.rotated"}, {"b", "other", "review.decided"}, {"d", "default", DecidedEvent},
		{"c", "default", "screening.superseded"},
	} {
		e := Entry{Subject: step.subject, Project: step.project, Type: step.kind, Actor: "bo",
			At: time.Date(2026, 11, 30, 0, 0, i, 0, time.UTC), Body: jsontext.Value(`{}`)}
		if step.kind == DecidedEvent {
			spec, decision := fmt.Appendf(nil, "spec %d", i), fmt.Appendf(nil, `{"n":%d}`, i)
			specSum, decisionSum := sha256.Sum256(spec), sha256.Sum256(decision)
			e.Body = fmt.Appendf(nil, `{"decision_sha256":"%x","outcome":"admit","spec_sha256":"%x"}`, decisionSum, specSum)
			if step.project == "default" {
				l.payloads[int64(i)] = Payload{Index: int64(i), Spec: spec, Decision: decision}
			}
		}
		if prev, ok := last[step.subject]; ok {
			e.Seq, e.PrevHash = prev.Seq, prev.Hash
		}
		e.Seq++
		sum := e.sum()
		e.Hash = sum[:]
		last[step.subject] = e
		l.entries = append(l.entries, e)
		leaf, err := e.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		l.states = append(l.states, l.tree.grow(t, LeafHash(leaf)))
	}
	return l
}

// export writes entries from first on as a bundle of project default. line may
// spoil the lines of the entries.
func (l *exampleLog) export(t *testing.T, key Key, first int64, line func(lines *EntryLines, index int64, hash tlog.Hash, leaf []byte) []byte) fstest.MapFS {
	t.Helper()
	if line == nil {
		line = (*EntryLines).Line
	}
	files := fstest.MapFS{}
	w := NewBundleWriter(func(name string) (io.WriteCloser, error) { return &mapFile{files: files, name: name}, nil }, key)
	size := int64(len(l.entries))
	m := Manifest{Project: "default", MadeAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Engine: "1", Origin: "weir.test/log", First: first, Size: size,
		Outcomes: map[string]int{}, Payloads: "included", Packs: []PackFile{}}
	write := func(name string, do func(io.Writer) error) {
		if err := w.Write(name, do); err != nil {
			t.Fatal(err)
		}
	}
	write(EntriesFile, func(out io.Writer) error {
		var lines EntryLines
		for i := first; i < size; i++ {
			e := l.entries[i]
			leaf, err := e.Leaf()
			if err != nil {
				return err
			}
			hash := LeafHash(leaf)
			if e.Project == "other" {
				leaf, m.Hidden = nil, m.Hidden+1
			} else {
				m.Shown++
				if e.Type == DecidedEvent {
					m.Outcomes["admit"]++
				}
			}
			if text := line(&lines, i, hash, leaf); text != nil {
				fmt.Fprintf(out, "%s\n", text)
			}
		}
		return nil
	})
	write(PayloadsFile, func(out io.Writer) error {
		for _, i := range slices.Sorted(maps.Keys(l.payloads)) {
			if i < first {
				continue
			}
			p := l.payloads[i]
			if p.Erased != nil {
				m.Erased++
			}
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", text)
		}
		return nil
	})
	write(CheckpointFile, func(out io.Writer) error {
		note, err := l.states[size-1].Sign(key)
		if err != nil {
			return err
		}
		_, err = out.Write(note)
		return err
	})
	write(ProofFile, func(out io.Writer) error {
		before, err := l.tree.ReadHashes(Frontier(first))
		if err != nil {
			return err
		}
		p := Proof{Before: []string{}}
		for _, h := range before {
			p.Before = append(p.Before, hex.EncodeToString(h[:]))
		}
		if first > 0 {
			m.Previous = &State{Size: first, Root: hex.EncodeToString(l.states[first-1].Root[:])}
			proof, err := ProveConsistency(size, first, &l.tree)
			if err != nil {
				return err
			}
			for _, h := range proof {
				p.Consistency = append(p.Consistency, hex.EncodeToString(h[:]))
			}
		}
		line, err := json.Marshal(p)
		fmt.Fprintf(out, "%s\n", line)
		return err
	})
	if l.cosigned != nil {
		write(CosignedFile, func(out io.Writer) error { _, err := out.Write(l.cosigned); return err })
	}
	write(ReadmeFile, func(out io.Writer) error { _, err := io.WriteString(out, "read me\n"); return err })
	if err := w.Finish(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return files
}

type mapFile struct {
	files fstest.MapFS
	name  string
	bytes.Buffer
}

func (f *mapFile) Close() error {
	f.files[f.name] = &fstest.MapFile{Data: bytes.Clone(f.Bytes())}
	return nil
}

func (l *exampleLog) verify(files fstest.MapFS, opt VerifyOptions) (*Verified, error) {
	return VerifyBundle(context.Background(), files, opt)
}

func TestBundleVerifies(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	l := newExampleLog(t)
	l.payloads[3] = Payload{Index: 3, Erased: &Erased{At: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Actor: "ana", Reason: "asked for"}}
	for first := range int64(len(l.entries)) {
		files := l.export(t, key, first, nil)
		got, err := l.verify(files, VerifyOptions{Keys: []PublicKey{key.Public()}})
		if err != nil || len(got.SignedBy) != 1 {
			t.Fatalf("from %d: %+v, %v", first, got, err)
		}
		if got, err := l.verify(files, VerifyOptions{}); err != nil || len(got.SignedBy) != 0 {
			t.Errorf("from %d without a key: %+v, %v", first, got, err)
		}
		if first == 0 {
			continue
		}
		since, err := l.states[first-1].Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.verify(files, VerifyOptions{Keys: []PublicKey{key.Public()}, Since: since}); err != nil || got.Since == nil {
			t.Errorf("since %d: %v", first, err)
		}
		forged := l.states[first-1]
		forged.Root[3] ^= 1
		if since, err = forged.Sign(key); err != nil {
			t.Fatal(err)
		}
		if _, err := l.verify(files, VerifyOptions{Keys: []PublicKey{key.Public()}, Since: since}); err == nil {
			t.Errorf("since a state of another history, at %d: accepted", first)
		}
	}
}

// Whatever is done to a bundle, it is found, and the place is named.
func TestEveryChangeOfABundleIsFound(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	l := newExampleLog(t)
	opt := VerifyOptions{Keys: []PublicKey{key.Public()}}
	good := l.export(t, key, 1, nil)
	if _, err := l.verify(good, opt); err != nil {
		t.Fatal(err)
	}
	changed := func(name string, data []byte) error {
		files := maps.Clone(good)
		if data == nil {
			delete(files, name)
		} else {
			files[name] = &fstest.MapFile{Data: data}
		}
		_, err := l.verify(files, opt)
		return err
	}
	named := func(err error, file string) bool {
		var b *BrokenError
		return errors.As(err, &b) && (b.File == file || b.File == ManifestFile)
	}
	for name, file := range good {
		for i := range file.Data {
			for _, flip := range []byte{1} {
				data := bytes.Clone(file.Data)
				data[i] ^= flip
				err := changed(name, data)
				if !named(err, name) {
					t.Errorf("%s: byte %d changed by %#x: %v", name, i, flip, err)
				}
				if b := (*BrokenError)(nil); name == EntriesFile && errors.As(err, &b) {
					if want := 1 + int64(bytes.Count(file.Data[:i], []byte("\n"))); b.Index != want {
						t.Errorf("%s: byte %d is in entry %d, named is %d: %v", name, i, want, b.Index, err)
					}
				}
			}
			if err := changed(name, file.Data[:i:i]); !named(err, name) {
				t.Errorf("%s: cut to %d bytes: %v", name, i, err)
			}
			if err := changed(name, slices.Insert(bytes.Clone(file.Data), i, 'x')); !named(err, name) {
				t.Errorf("%s: a byte inserted at %d: %v", name, i, err)
			}
		}
		if err := changed(name, nil); !named(err, name) {
			t.Errorf("%s deleted: %v", name, err)
		}
		lines := strings.SplitAfter(string(file.Data), "\n")
		for i := range len(lines) - 1 {
			if err := changed(name, []byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), ""))); !named(err, name) {
				t.Errorf("%s: line %d deleted: %v", name, i, err)
			}
			if err := changed(name, []byte(strings.Join(slices.Insert(slices.Clone(lines), i, lines[i]), ""))); !named(err, name) {
				t.Errorf("%s: line %d doubled: %v", name, i, err)
			}
			if i > 0 {
				swapped := slices.Clone(lines)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				if err := changed(name, []byte(strings.Join(swapped, ""))); !named(err, name) {
					t.Errorf("%s: lines %d and %d swapped: %v", name, i-1, i, err)
				}
			}
		}
	}
	if err := changed("extra.txt", []byte("x")); err == nil {
		t.Error("a file that the manifest does not name: accepted")
	}
}

// Somebody who has the export key but not the history cannot sign another one:
// the tree must come to the root of the checkpoint.
func TestResignedBundleIsHeldToTheTree(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	l := newExampleLog(t)
	opt := VerifyOptions{Keys: []PublicKey{key.Public()}}
	for i := range int64(len(l.entries)) {
		files := l.export(t, key, 0, func(lines *EntryLines, index int64, hash tlog.Hash, leaf []byte) []byte {
			if index == i {
				hash, leaf = LeafHash([]byte("something else")), nil
			}
			return lines.Line(index, hash, leaf)
		})
		var b *BrokenError
		if _, err := l.verify(files, opt); !errors.As(err, &b) {
			t.Errorf("entry %d replaced by another hash: %v", i, err)
		}
		files = l.export(t, key, 0, func(lines *EntryLines, index int64, hash tlog.Hash, leaf []byte) []byte {
			if index == i {
				return nil
			}
			return lines.Line(index, hash, leaf)
		})
		if _, err := l.verify(files, opt); !errors.As(err, &b) || b.Index != i {
			t.Errorf("entry %d left out: %v", i, err)
		}
	}
}

func TestPayloadsAreHeldToTheirEntries(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	for name, spoil := range map[string]func(*exampleLog){
		"another spec": func(l *exampleLog) {
			l.payloads[0] = Payload{Index: 0, Spec: []byte("x"), Decision: l.payloads[0].Decision}
		},
		"another decision": func(l *exampleLog) {
			l.payloads[0] = Payload{Index: 0, Spec: l.payloads[0].Spec, Decision: []byte("x")}
		},
		"no bytes":           func(l *exampleLog) { l.payloads[0] = Payload{Index: 0} },
		"missing":            func(l *exampleLog) { delete(l.payloads, 3) },
		"missing at the end": func(l *exampleLog) { delete(l.payloads, 6) },
		"of no entry":        func(l *exampleLog) { l.payloads[7] = Payload{Index: 7, Spec: []byte("x"), Decision: []byte("y")} },
	} {
		l := newExampleLog(t)
		spoil(l)
		var b *BrokenError
		if _, err := l.verify(l.export(t, key, 0, nil), VerifyOptions{Keys: []PublicKey{key.Public()}}); !errors.As(err, &b) || b.File != PayloadsFile {
			t.Errorf("%s: %v, want %s broken", name, err, PayloadsFile)
		}
	}
}
