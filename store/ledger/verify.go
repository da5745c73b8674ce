package ledger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
)

// BrokenError says where a bundle is not what was exported. Index is of the first
// bad entry, -1 when it is about no entry.
type BrokenError struct {
	File   string
	Index  int64
	Detail string
}

func (e *BrokenError) Error() string {
	if e.Index < 0 {
		return e.File + ": " + e.Detail
	}
	return fmt.Sprintf("%s: entry %d: %s", e.File, e.Index, e.Detail)
}

func broken(file string, index int64, format string, args ...any) *BrokenError {
	return &BrokenError{file, index, fmt.Sprintf(format, args...)}
}

// Verified is what a bundle was shown to be.
type Verified struct {
	Manifest   Manifest
	Checkpoint Checkpoint
	SignedBy   []PublicKey // those of the given keys that signed manifest and checkpoint; none: whose it is was not shown
	Since      *Checkpoint // the earlier state that it was shown to go on from
	Cosigned   *Cosigned   // the state that witnesses saw; nil: the bundle tells of none
	Erasures   []Erasures  // what is said of the payloads that are gone, at most maxErasures
}

// Cosigned is a state of the log that witnesses saw, and those of the given ones
// that did.
type Cosigned struct {
	Checkpoint Checkpoint
	By         []Cosignature
}

// Erasures are the payloads that somebody erased at once.
type Erasures struct {
	Erased
	Payloads int
}

// maxErasures bounds what is told of them one by one.
const maxErasures = 100

// VerifyOptions is what the verifier knows beforehand. Everything is optional.
type VerifyOptions struct {
	Keys  []PublicKey // that may sign; without one nothing shows whose bundle it is
	Since []byte      // an earlier checkpoint that the log must go on from

	Witnesses []Witness // whose cosignatures count
}

// maxLine bounds a line of a bundle: a payload line holds a spec of at most 1 MiB
// and its decision, in base64.
const maxLine = 16 << 20

// VerifyBundle checks a bundle with nothing but its files: digests, the tree, the
// chain of each subject, the counts, every payload against the entry that names
// it, and the signatures of the given keys. A *BrokenError names the first thing
// that is wrong; another error means that the files could not be read.
func VerifyBundle(ctx context.Context, files fs.FS, opt VerifyOptions) (*Verified, error) {
	v := &bundleVerifier{files: files, out: &Verified{}}
	if err := v.manifest(ctx, opt.Keys); err != nil {
		return nil, err
	}
	if err := v.checkpoint(opt); err != nil {
		return nil, err
	}
	if err := v.proof(); err != nil {
		return nil, err
	}
	if err := v.cosigned(opt); err != nil {
		return nil, err
	}
	if err := v.entries(); err != nil {
		return nil, err
	}
	if err := v.digests(); err != nil {
		return nil, err
	}
	return v.out, nil
}

type bundleVerifier struct {
	files    fs.FS
	out      *Verified
	subjects []Subject
	tree     *Range
}

// read reads a small file whole.
func (v *bundleVerifier) read(name string) ([]byte, error) {
	f, err := v.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, broken(name, -1, "is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLine+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxLine {
		return nil, broken(name, -1, "is longer than %d bytes", maxLine)
	}
	sum := sha256.Sum256(data)
	for _, s := range v.subjects { // none yet while the manifest is read
		if s.Name == name && s.Digest["sha256"] != hex.EncodeToString(sum[:]) {
			return nil, broken(name, -1, "is not the file that the manifest names")
		}
	}
	return data, nil
}

func (v *bundleVerifier) manifest(ctx context.Context, keys []PublicKey) error {
	data, err := v.read(ManifestFile)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		return broken(ManifestFile, -1, "is cut off")
	}
	s, signed, err := OpenStatement[Manifest](ctx, data, ManifestType, keys...)
	if err != nil {
		return broken(ManifestFile, -1, "%v", err)
	}
	if len(keys) > 0 && len(signed) == 0 {
		return broken(ManifestFile, -1, "is not signed by the given key")
	}
	v.out.Manifest, v.subjects, v.out.SignedBy = s.Predicate, s.Subject, signed
	m := s.Predicate
	if m.First < 0 || m.Size <= m.First || m.Shown+m.Hidden != m.Size-m.First {
		return broken(ManifestFile, -1, "its counts do not add up: entries %d to %d, %d shown, %d by hash", m.First, m.Size, m.Shown, m.Hidden)
	}
	if m.Payloads != "included" && m.Payloads != "digests" {
		return broken(ManifestFile, -1, "payloads must be included or digests")
	}
	return nil
}

func (v *bundleVerifier) checkpoint(opt VerifyOptions) error {
	data, err := v.read(CheckpointFile)
	if err != nil {
		return err
	}
	if len(opt.Keys) > 0 {
		c, by, err := ReadCheckpoint(data, opt.Keys...)
		if err != nil {
			return broken(CheckpointFile, -1, "%v", err)
		}
		v.out.Checkpoint = c
		v.out.SignedBy = slices.DeleteFunc(v.out.SignedBy, func(k PublicKey) bool {
			return !slices.ContainsFunc(by, func(b PublicKey) bool { return b.ID() == k.ID() })
		})
		if len(v.out.SignedBy) == 0 {
			return broken(CheckpointFile, -1, "is signed by another key than the manifest")
		}
	} else if v.out.Checkpoint, err = ReadUnsigned(data); err != nil {
		return broken(CheckpointFile, -1, "%v", err)
	}
	c, m := v.out.Checkpoint, v.out.Manifest
	if c.Size != m.Size || c.Origin != m.Origin {
		return broken(CheckpointFile, -1, "is of another state of the log than the manifest's")
	}
	if opt.Since == nil {
		return nil
	}
	old, err := ReadUnsigned(opt.Since)
	if len(opt.Keys) > 0 {
		old, _, err = ReadCheckpoint(opt.Since, opt.Keys...)
	}
	if err != nil {
		return fmt.Errorf("the earlier checkpoint: %w", err)
	}
	if old.Origin != c.Origin {
		return fmt.Errorf("the earlier checkpoint is of another log, %s", old.Origin)
	}
	v.out.Since = &old
	return nil
}

func (v *bundleVerifier) proof() error {
	data, err := v.read(ProofFile)
	if err != nil {
		return err
	}
	var p Proof
	if err := json.Unmarshal(data, &p, json.RejectUnknownMembers(true)); err != nil {
		return broken(ProofFile, -1, "cannot be read: %v", err)
	}
	again, err := json.Marshal(p)
	if err != nil || !bytes.Equal(append(again, '\n'), data) {
		return broken(ProofFile, -1, "is written in another form than weir's")
	}
	before, err := readHashes(p.Before)
	if err != nil {
		return broken(ProofFile, -1, "before: %v", err)
	}
	m := v.out.Manifest
	if v.tree, err = NewRange(m.First, before); err != nil {
		return broken(ProofFile, -1, "before: %v", err)
	}
	var previous *Checkpoint
	if m.Previous != nil {
		root, err := readHashes([]string{m.Previous.Root})
		if err != nil {
			return broken(ManifestFile, -1, "previous: %v", err)
		}
		previous = &Checkpoint{Origin: m.Origin, Size: m.Previous.Size, Root: root[0]}
		consistency, err := readHashes(p.Consistency)
		if err != nil {
			return broken(ProofFile, -1, "consistency: %v", err)
		}
		if err := v.out.Checkpoint.CheckConsistency(*previous, consistency); err != nil {
			return broken(ProofFile, -1, "the log does not go on from the state that the export before ended at")
		}
	}
	if old := v.out.Since; old != nil && (previous == nil || *old != *previous) && old.Size != m.First {
		return fmt.Errorf("the bundle has no proof towards the earlier checkpoint of %d entries; export with it as --since", old.Size)
	}
	if old := v.out.Since; old != nil && old.Size == m.First && v.tree.Root() != old.Root {
		return broken(ProofFile, -1, "the log does not go on from the earlier checkpoint")
	}
	return nil
}

// cosigned reads the state that witnesses saw. It is held to the entries when they
// come to its size.
func (v *bundleVerifier) cosigned(opt VerifyOptions) error {
	if !slices.ContainsFunc(v.subjects, func(s Subject) bool { return s.Name == CosignedFile }) {
		return nil // and a file that is there all the same is not in the manifest
	}
	data, err := v.read(CosignedFile)
	if err != nil {
		return err
	}
	c, err := ReadUnsigned(data)
	if len(opt.Keys) > 0 {
		c, _, err = ReadCheckpoint(data, opt.Keys...)
	}
	if err != nil {
		return broken(CosignedFile, -1, "%v", err)
	}
	if m := v.out.Manifest; c.Origin != m.Origin || c.Size < m.First || c.Size > m.Size {
		return broken(CosignedFile, -1, "is of another log, or of a state that is not in the bundle")
	}
	by, err := Cosignatures(data, opt.Witnesses...)
	if err != nil {
		return broken(CosignedFile, -1, "%v", err)
	}
	v.out.Cosigned = &Cosigned{c, by}
	return nil
}

// cosignedHere holds the state that witnesses saw to the entries up to it.
func (v *bundleVerifier) cosignedHere() error {
	if c := v.out.Cosigned; c != nil && c.Checkpoint.Size == v.tree.Size() && c.Checkpoint.Root != v.tree.Root() {
		return broken(CosignedFile, -1, "witnesses saw another history: its root is not that of the entries")
	}
	return nil
}

func readHashes(list []string) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(list))
	for i, text := range list {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != len(out[i]) || hex.EncodeToString(b) != text {
			return nil, fmt.Errorf("hash %d is not one", i)
		}
		copy(out[i][:], b)
	}
	return out, nil
}

// Chains follows the chain of each subject through a log. It must be made
// before use; at a subject's first entry it takes what stands before as given.
type Chains map[[16]byte]chainEnd

// chainEnd is the last known entry of a subject. There is one for each subject of
// a log, so it is small: half a hash is as hard to come by again.
type chainEnd struct {
	seq  int32
	hash [sha256.Size / 2]byte
}

// Follow holds an entry to the one before of its subject. With gaps, entries in
// between may be missing.
func (c Chains) Follow(e Entry, gaps bool) error {
	sum := sha256.Sum256([]byte(e.Subject))
	key := [16]byte(sum[:16])
	last, known := c[key]
	seq := int(last.seq)
	switch {
	case !known && e.Seq == 1 && len(e.PrevHash) != 0:
		return errors.New("is the first of its chain and names one before it")
	case len(e.Hash) != sha256.Size || e.Seq < 1 || e.Seq > math.MaxInt32:
		return errors.New("has no hash, or no place in its chain")
	case known && e.Seq == seq+1 && (len(e.PrevHash) != sha256.Size || !bytes.HasPrefix(e.PrevHash, last.hash[:])):
		return errors.New("does not follow the one before of its chain")
	case known && (e.Seq <= seq || e.Seq > seq+1 && !gaps):
		return fmt.Errorf("has number %d of its chain after number %d", e.Seq, seq)
	}
	c[key] = chainEnd{int32(e.Seq), [sha256.Size / 2]byte(e.Hash)}
	return nil
}

// decided is what the body of a DecidedEvent says of payloads and outcome.
type decided struct {
	Outcome  string `json:"outcome"`
	Spec     string `json:"spec_sha256"`
	Decision string `json:"decision_sha256"`
}

func (v *bundleVerifier) entries() error {
	m := v.out.Manifest
	lines, err := v.lines(EntriesFile)
	if err != nil {
		return err
	}
	defer lines.Close()
	payloads := &lineReader{}
	if m.Payloads == "included" {
		if payloads, err = v.lines(PayloadsFile); err != nil {
			return err
		}
		defer payloads.Close()
	}
	chains := Chains{}
	outcomes := map[string]int{}
	var shown, hidden, erased int64
	var written EntryLines
	for index := m.First; index < m.Size; index++ {
		if err := v.cosignedHere(); err != nil {
			return err
		}
		line, err := lines.next()
		if err != nil {
			return broken(EntriesFile, index, "is missing")
		}
		hash, leaf, err := readEntryLine(&written, line, index)
		if err != nil {
			return broken(EntriesFile, index, "%v", err)
		}
		v.tree.Append(hash)
		if leaf == nil {
			hidden++
			continue
		}
		shown++
		if LeafHash(leaf) != hash {
			return broken(EntriesFile, index, "its hash is not that of what it says")
		}
		e, err := ParseEntry(leaf)
		if err != nil {
			return broken(EntriesFile, index, "%v", err)
		}
		if err := chains.Follow(e, m.Hidden > 0); err != nil {
			return broken(EntriesFile, index, "%v", err)
		}
		if e.Type != DecidedEvent {
			continue
		}
		var d decided
		if err := json.Unmarshal(e.Body, &d); err != nil {
			return broken(EntriesFile, index, "what was decided cannot be read: %v", err)
		}
		outcomes[d.Outcome]++
		if m.Payloads == "included" {
			gone, err := payloads.payload(index, d)
			if err != nil {
				return err
			}
			if gone != nil {
				erased++
				v.out.erased(*gone)
			}
		}
	}
	if _, err := lines.next(); err == nil {
		return broken(EntriesFile, m.Size, "is more than the manifest names")
	}
	if _, err := payloads.next(); err == nil {
		return broken(PayloadsFile, -1, "holds a line that no entry asks for")
	}
	if err := v.cosignedHere(); err != nil {
		return err
	}
	if root := v.tree.Root(); root != v.out.Checkpoint.Root {
		return broken(EntriesFile, -1, "the entries do not come to the root of the checkpoint: some were changed, left out, added or put in another order together with their hashes")
	}
	if shown != m.Shown || hidden != m.Hidden || erased != m.Erased || !sameCounts(outcomes, m.Outcomes) {
		return broken(ManifestFile, -1, "its counts are not those of the entries")
	}
	return nil
}

func sameCounts(a, b map[string]int) bool {
	for k, n := range b {
		if n != a[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// readEntryLine takes a line of EntriesFile in the one form that EntryLines writes.
func readEntryLine(written *EntryLines, line []byte, index int64) (hash tlog.Hash, leaf []byte, err error) {
	var l struct {
		Index int64          `json:"index"`
		Hash  string         `json:"hash"`
		Run   string         `json:"run"`
		Leaf  jsontext.Value `json:"leaf"`
	}
	if err := json.Unmarshal(line, &l, json.RejectUnknownMembers(true)); err != nil {
		return hash, nil, fmt.Errorf("cannot be read: %w", err)
	}
	hashes, err := readHashes([]string{l.Hash})
	if err != nil {
		return hash, nil, err
	}
	if l.Index != index {
		return hash, nil, errors.New("has the number " + strconv.FormatInt(l.Index, 10) + " instead")
	}
	if !bytes.Equal(written.Line(l.Index, hashes[0], l.Leaf), line) {
		return hash, nil, errors.New("is written in another form than weir's, or the lines before it are not those that it was written after")
	}
	return hashes[0], l.Leaf, nil
}

// payload holds the next payload line to the entry that names it, and tells
// what erased its bytes; nil when they are there.
func (r *lineReader) payload(index int64, d decided) (erased *Erased, err error) {
	line, err := r.next()
	if err != nil {
		return nil, broken(PayloadsFile, index, "is missing")
	}
	var p Payload
	if err := json.Unmarshal(line, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, broken(PayloadsFile, index, "cannot be read: %v", err)
	}
	again, err := json.Marshal(p)
	if err != nil || !bytes.Equal(again, line) {
		return nil, broken(PayloadsFile, index, "is written in another form than weir's")
	}
	if p.Index != index {
		return nil, broken(PayloadsFile, index, "is missing; the next is of entry %d", p.Index)
	}
	for _, part := range []struct {
		name, want string
		data       []byte
	}{{"spec", d.Spec, p.Spec}, {"decision", d.Decision, p.Decision}} {
		if part.data == nil && p.Erased != nil {
			continue
		}
		if sum := sha256.Sum256(part.data); hex.EncodeToString(sum[:]) != part.want {
			return nil, broken(PayloadsFile, index, "the %s is not the one that the entry names", part.name)
		}
	}
	return p.Erased, nil
}

func (v *Verified) erased(e Erased) {
	i := slices.IndexFunc(v.Erasures, func(known Erasures) bool { return known.Erased == e })
	switch {
	case i >= 0:
		v.Erasures[i].Payloads++
	case len(v.Erasures) < maxErasures:
		v.Erasures = append(v.Erasures, Erasures{e, 1})
	}
}

// digests holds every file to the manifest, and the manifest to the files there are.
func (v *bundleVerifier) digests() error {
	named := map[string]bool{ManifestFile: true}
	for _, s := range v.subjects {
		named[s.Name] = true
		f, err := v.files.Open(s.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return broken(s.Name, -1, "is missing")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != s.Digest["sha256"] {
			return broken(s.Name, -1, "is not the file that the manifest names")
		}
	}
	return fs.WalkDir(v.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !named[name] {
			return broken(name, -1, "is not in the manifest")
		}
		return err
	})
}

// lineReader reads a file line by line. Its zero value is an empty file.
type lineReader struct {
	file fs.File
	buf  *bufio.Reader
}

func (v *bundleVerifier) lines(name string) (*lineReader, error) {
	f, err := v.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, broken(name, -1, "is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &lineReader{f, bufio.NewReaderSize(f, 64<<10)}, nil
}

// next gives a line without its end. A line without an end is cut off, which is
// no line.
func (r *lineReader) next() ([]byte, error) {
	if r.buf == nil {
		return nil, io.EOF
	}
	var line []byte
	for {
		part, err := r.buf.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
			return nil, errors.New("the line is cut off or too long")
		}
	}
}

func (r *lineReader) Close() error { return r.file.Close() }

// EachPayload gives the payloads of a bundle that was verified, each with the
// entry that names it. It ends with each's error.
func EachPayload(files fs.FS, m Manifest, each func(Entry, Payload) error) error {
	v := &bundleVerifier{files: files}
	lines, err := v.lines(EntriesFile)
	if err != nil {
		return err
	}
	defer lines.Close()
	payloads, err := v.lines(PayloadsFile)
	if err != nil {
		return err
	}
	defer payloads.Close()
	var written EntryLines
	for index := m.First; index < m.Size; index++ {
		line, err := lines.next()
		if err != nil {
			return broken(EntriesFile, index, "is missing")
		}
		_, leaf, err := readEntryLine(&written, line, index)
		if err != nil {
			return broken(EntriesFile, index, "%v", err)
		}
		if leaf == nil {
			continue
		}
		e, err := ParseEntry(leaf)
		if err != nil {
			return broken(EntriesFile, index, "%v", err)
		}
		if e.Type != DecidedEvent {
			continue
		}
		var p Payload
		if line, err = payloads.next(); err == nil {
			err = json.Unmarshal(line, &p)
		}
		if err != nil {
			return broken(PayloadsFile, index, "cannot be read")
		}
		if err := each(e, p); err != nil {
			return err
		}
	}
	return nil
}
