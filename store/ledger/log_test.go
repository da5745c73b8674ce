package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	formats "github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// stored is a tree that is kept as the store keeps it: nodes by index.
type stored struct {
	nodes []tlog.Hash
	size  int64
	read  []int64 // what the last growth asked for
}

func (s *stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	s.read = append(s.read, indexes...)
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = s.nodes[at]
	}
	return out, nil
}

func (s *stored) grow(t *testing.T, leaves ...tlog.Hash) Checkpoint {
	t.Helper()
	s.read = nil
	frontier := Frontier(s.size)
	g, err := Grow(s.size, leaves, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range s.read {
		if !contains(frontier, at) {
			t.Fatalf("growing from %d read node %d, which is not in the frontier %v", s.size, at, frontier)
		}
	}
	if g.First != int64(len(s.nodes)) {
		t.Fatalf("growth begins at node %d, want %d", g.First, len(s.nodes))
	}
	s.nodes, s.size = append(s.nodes, g.Nodes...), g.Size
	return Checkpoint{Origin: "weir.test/log", Size: g.Size, Root: g.Root}
}

func contains(list []int64, v int64) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// Every proof is checked by this package and by an independent library.
func TestTreeAgreesWithAnotherLibrary(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	tree := &stored{}
	var leaves []tlog.Hash
	var checkpoints []Checkpoint
	for len(leaves) < 300 {
		batch := make([]tlog.Hash, rng.IntN(40))
		for i := range batch {
			data := fmt.Appendf(nil, "leaf %d", len(leaves)+i)
			batch[i] = LeafHash(data)
			if want := rfc6962.DefaultHasher.HashLeaf(data); !bytes.Equal(batch[i][:], want) {
				t.Fatalf("leaf hash %x, want %x", batch[i], want)
			}
		}
		leaves = append(leaves, batch...)
		checkpoints = append(checkpoints, tree.grow(t, batch...))
	}
	raw := func(hashes []tlog.Hash) (out [][]byte) {
		for _, h := range hashes {
			out = append(out, h[:])
		}
		return out
	}
	last := checkpoints[len(checkpoints)-1]
	for i, leaf := range leaves {
		p, err := ProveInclusion(last.Size, int64(i), tree)
		if err != nil {
			t.Fatal(err)
		}
		if err := last.CheckInclusion(int64(i), leaf, p); err != nil {
			t.Errorf("leaf %d: %v", i, err)
		}
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(i), uint64(last.Size), leaf[:], raw(p), last.Root[:]); err != nil {
			t.Errorf("leaf %d, the other library: %v", i, err)
		}
		if err := last.CheckInclusion(int64(i), LeafHash([]byte("another")), p); err == nil {
			t.Errorf("leaf %d: another leaf is proved by its proof", i)
		}
	}
	for _, old := range checkpoints[1:] {
		if old.Size == 0 {
			continue
		}
		p, err := ProveConsistency(last.Size, old.Size, tree)
		if err != nil {
			t.Fatal(err)
		}
		if err := last.CheckConsistency(old, p); err != nil {
			t.Errorf("from %d: %v", old.Size, err)
		}
		if old.Size < last.Size {
			if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(old.Size), uint64(last.Size), raw(p), old.Root[:], last.Root[:]); err != nil {
				t.Errorf("from %d, the other library: %v", old.Size, err)
			}
		}
		old.Root[0] ^= 1
		if err := last.CheckConsistency(old, p); err == nil {
			t.Errorf("from %d: another root is taken for an earlier state", old.Size)
		}
	}
}

func TestCheckpointIsReadByAnotherLibrary(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	next, _, _ := newKey(t)
	stranger, _, _ := newKey(t)
	c := Checkpoint{Origin: "weir.test/3b2f", Size: 12345, Root: tlog.RecordHash([]byte("root"))}
	signed, err := c.Sign(key, next)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]Key{"key": key, "next": next} {
		got, by, err := ReadCheckpoint(signed, k.Public())
		if err != nil || got != c || len(by) != 1 || by[0].ID() != k.Public().ID() {
			t.Errorf("%s: %+v by %v, %v", name, got, by, err)
		}
		vkey, err := k.Public().VerifierKey(c.Origin)
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := note.NewVerifier(vkey)
		if err != nil {
			t.Fatal(err)
		}
		other, _, _, err := formats.ParseCheckpoint(signed, c.Origin, verifier)
		if err != nil || int64(other.Size) != c.Size || !bytes.Equal(other.Hash, c.Root[:]) || other.Origin != c.Origin {
			t.Errorf("%s, the other library: %+v, %v", name, other, err)
		}
	}
	if _, _, err := ReadCheckpoint(signed, stranger.Public()); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("a stranger's key: %v, want ErrCheckpoint", err)
	}
	if _, _, err := ReadCheckpoint(signed); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("no key: %v, want ErrCheckpoint", err)
	}
	if got, err := ReadUnsigned(signed); err != nil || got != c {
		t.Errorf("unsigned: %+v, %v", got, err)
	}
	// Whatever one byte becomes, the text is another's or nobody's.
	one, err := c.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range one {
		for _, flip := range []byte{1, 0x20} {
			bad := bytes.Clone(one)
			bad[i] ^= flip
			if got, _, err := ReadCheckpoint(bad, key.Public()); err == nil {
				t.Errorf("byte %d changed by %#x is still accepted: %+v", i, flip, got)
			}
		}
	}
}

func TestCheckpointForms(t *testing.T) {
	t.Parallel()
	root := strings.Repeat("A", 43) + "="
	for name, text := range map[string]string{
		"empty":           "",
		"two lines":       "o\n1\n\n",
		"four lines":      "o\n1\n" + root + "\nmore\n\n",
		"no origin":       "\n1\n" + root + "\n\n",
		"negative":        "o\n-1\n" + root + "\n\n",
		"leading zero":    "o\n01\n" + root + "\n\n",
		"plus":            "o\n+1\n" + root + "\n\n",
		"short root":      "o\n1\nAAAA\n\n",
		"loose base64":    "o\n1\n" + strings.Repeat("A", 42) + "B=\n\n",
		"no blank line":   "o\n1\n" + root + "\n",
		"size of letters": "o\nx\n" + root + "\n\n",
	} {
		if _, err := ReadUnsigned([]byte(text)); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %v, want ErrCheckpoint", name, err)
		}
	}
}

func exampleEntry() Entry {
	e := Entry{Subject: "0198c5d0-0000-7000-8000-000000000001", Project: "default", Seq: 2, Type: "review.decided",
		Actor: `a"body":null,`, At: time.Date(2026, 11, 30, 12, 0, 0, 5000, time.UTC), Body: jsontext.Value(`{"b": 1, "a":"é\u0001"}`),
		PrevHash: bytes.Repeat([]byte{7}, 32)}
	sum := e.sum()
	e.Hash = sum[:]
	return e
}

func TestEntryHasOneForm(t *testing.T) {
	t.Parallel()
	first := exampleEntry()
	first.PrevHash, first.Seq = nil, 1
	sum := first.sum()
	first.Hash = sum[:]
	for _, e := range []Entry{first, exampleEntry()} {
		line, err := e.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseEntry(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(e, got, cmp.Transformer("nil", func(b []byte) string { return string(b) })); diff != "" {
			t.Error(diff)
		}
		if !bytes.Contains(line, e.Body) {
			t.Errorf("the body's bytes are not in %s", line)
		}
		// The project is not under the chain's hash, only under the tree's.
		project := bytes.Index(line, []byte(`"default"`)) + 1
		for i := range line {
			if i >= project && i < project+len("default") {
				continue
			}
			for _, flip := range []byte{1, 0x20, 0x80} {
				bad := bytes.Clone(line)
				bad[i] ^= flip
				if _, err := ParseEntry(bad); !errors.Is(err, ErrEntry) {
					t.Errorf("byte %d changed by %#x: %v, want ErrEntry", i, flip, err)
				}
			}
			if _, err := ParseEntry(line[:i]); !errors.Is(err, ErrEntry) {
				t.Errorf("cut at %d: %v, want ErrEntry", i, err)
			}
		}
		for _, other := range []string{" " + string(line), string(line) + "\n", strings.Replace(string(line), ",", ", ", 1)} {
			if _, err := ParseEntry([]byte(other)); !errors.Is(err, ErrEntry) {
				t.Errorf("another form is taken: %s", other)
			}
		}
	}
}

func TestLeafRefusesWhatCannotBeOneLine(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{", "{}\n", "{\n}", "null null"} {
		e := exampleEntry()
		e.Body = jsontext.Value(body)
		if line, err := e.Leaf(); !errors.Is(err, ErrEntry) {
			t.Errorf("%q: %s, %v, want ErrEntry", body, line, err)
		}
	}
}

// A range that begins anywhere comes to the roots of the whole tree.
func TestRangeComesToTheRoots(t *testing.T) {
	t.Parallel()
	tree := &stored{}
	var leaves []tlog.Hash
	roots := []tlog.Hash{}
	for i := range 130 {
		leaves = append(leaves, LeafHash(fmt.Append(nil, i)))
		roots = append(roots, tree.grow(t, leaves[i]).Root)
	}
	for first := range int64(len(leaves)) {
		hashes, err := tree.ReadHashes(Frontier(first))
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRange(first, hashes)
		if err != nil {
			t.Fatal(err)
		}
		if first > 0 && r.Root() != roots[first-1] {
			t.Errorf("root of the first %d differs", first)
		}
		for i := first; i < int64(len(leaves)); i++ {
			r.Append(leaves[i])
			if r.Root() != roots[i] || r.Size() != i+1 {
				t.Fatalf("from %d: root of the first %d differs", first, i+1)
			}
		}
		if _, err := NewRange(first, append(hashes, tlog.Hash{})); err == nil {
			t.Errorf("a hash too many is taken for a tree of %d", first)
		}
	}
	empty, err := NewRange(0, nil)
	if err != nil || !bytes.Equal(func() []byte { h := empty.Root(); return h[:] }(), rfc6962.DefaultHasher.EmptyRoot()) {
		t.Error("the empty tree has another root", err)
	}
}
