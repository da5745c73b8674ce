package ledger

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Growth is what appending leaves adds to a tree: the nodes to be stored, which
// follow on those that are there, and the root.
type Growth struct {
	First int64 // storage index of the first node
	Nodes []tlog.Hash
	Size  int64 // leaves of the tree now
	Root  tlog.Hash
}

// Frontier lists the storage indexes of the nodes on which a tree of this many
// leaves grows: one for each complete subtree at its right edge.
func Frontier(size int64) (indexes []int64) {
	var first int64
	for level := 62; level >= 0; level-- {
		if size&(1<<level) != 0 {
			indexes = append(indexes, tlog.StoredHashIndex(level, first>>level))
			first += 1 << level
		}
	}
	return indexes
}

// Grow appends leaves to a tree of this many leaves. read needs to know the
// frontier only.
func Grow(size int64, leaves []tlog.Hash, read tlog.HashReader) (Growth, error) {
	g := Growth{First: tlog.StoredHashCount(size), Size: size + int64(len(leaves))}
	both := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		var old []int64
		for _, i := range indexes {
			if i < g.First {
				old = append(old, i)
			}
		}
		stored, err := read.ReadHashes(old)
		if err != nil {
			return nil, err
		}
		for i, index := range indexes {
			if index < g.First {
				hashes[i], stored = stored[0], stored[1:]
			} else {
				hashes[i] = g.Nodes[index-g.First]
			}
		}
		return hashes, nil
	})
	for i, leaf := range leaves {
		nodes, err := tlog.StoredHashesForRecordHash(size+int64(i), leaf, both)
		if err != nil {
			return Growth{}, fmt.Errorf("grow the log: %w", err)
		}
		g.Nodes = append(g.Nodes, nodes...)
	}
	var err error
	if g.Root, err = tlog.TreeHash(g.Size, both); err != nil {
		return Growth{}, fmt.Errorf("grow the log: %w", err)
	}
	return g, nil
}

// ProveInclusion proves that the leaf at index, from 0, is in the tree of size leaves.
func ProveInclusion(size, index int64, read tlog.HashReader) (tlog.RecordProof, error) {
	return tlog.ProveRecord(size, index, read)
}

// ProveConsistency proves that the tree of size leaves begins with the tree of old leaves.
func ProveConsistency(size, old int64, read tlog.HashReader) (tlog.TreeProof, error) {
	return tlog.ProveTree(size, old, read)
}

// CheckInclusion reports whether a proof shows that the leaf is at index in the
// tree of a checkpoint.
func (c Checkpoint) CheckInclusion(index int64, leaf tlog.Hash, proof tlog.RecordProof) error {
	return tlog.CheckRecord(proof, c.Size, c.Root, index, leaf)
}

// CheckConsistency reports whether a proof shows that the tree of a checkpoint
// begins with the tree of an older one.
func (c Checkpoint) CheckConsistency(old Checkpoint, proof tlog.TreeProof) error {
	return tlog.CheckTree(proof, c.Size, c.Root, old.Size, old.Root)
}

// Range is a tree that is known by its right edge and to which leaves are
// appended: enough to compute roots in constant memory.
type Range struct {
	size  int64
	edge  []tlog.Hash // of the complete subtrees, the largest first
	level []int
}

// NewRange begins with a tree of size leaves, given by the hashes of its Frontier.
func NewRange(size int64, frontier []tlog.Hash) (*Range, error) {
	if want := len(Frontier(size)); size < 0 || len(frontier) != want {
		return nil, fmt.Errorf("a tree of %d leaves is given by %d hashes, not by %d", size, want, len(frontier))
	}
	r := &Range{size: size, edge: slices.Clone(frontier)}
	for level := 62; level >= 0; level-- {
		if size&(1<<level) != 0 {
			r.level = append(r.level, level)
		}
	}
	return r, nil
}

// Append adds a leaf.
func (r *Range) Append(leaf tlog.Hash) {
	r.size++
	r.edge, r.level = append(r.edge, leaf), append(r.level, 0)
	for n := len(r.edge); n > 1 && r.level[n-1] == r.level[n-2]; n = len(r.edge) {
		r.edge = append(r.edge[:n-2], tlog.NodeHash(r.edge[n-2], r.edge[n-1]))
		r.level = append(r.level[:n-2], r.level[n-2]+1)
	}
}

// Size is the number of leaves.
func (r *Range) Size() int64 { return r.size }

// Root is the root of the tree. A tree without leaves has that of RFC 6962.
func (r *Range) Root() tlog.Hash {
	if r.size == 0 {
		return sha256.Sum256(nil)
	}
	root := r.edge[len(r.edge)-1]
	for i := len(r.edge) - 2; i >= 0; i-- {
		root = tlog.NodeHash(r.edge[i], root)
	}
	return root
}
