package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"
)

// The files of an export bundle.
const (
	ManifestFile   = "manifest.dsse.json" // what the bundle is and the digest of every other file, signed
	CheckpointFile = "checkpoint.txt"     // the signed state of the log that the bundle ends at
	EntriesFile    = "entries.jsonl"      // a range of the log without a gap, up to that state
	PayloadsFile   = "payloads.jsonl"     // the bytes that the entries name by digest
	ProofFile      = "proof.json"         // what stands before the range, and the proof towards the previous export
	KeyFile        = "public-key.pem"     // the keys that signed; proves nothing by itself
	CosignedFile   = "cosigned.txt"       // the newest state in the bundle that witnesses cosigned; missing when there is none
	ReadmeFile     = "README.md"
	IndexFile      = "index.html"
)

// Selection says what to export. A bundle holds a range of the log without a gap;
// what the selection leaves out is in it by hash only.
type Selection struct {
	Project     string
	From, To    time.Time // zero: from the beginning, to the latest checkpoint
	Size        int64     // of the log at the checkpoint to end at; 0: by To. The same size gives the same bundle again
	Since       int64     // size of the log that the export before ended at; 0: none
	RunRef      string    // only screenings whose run_ref begins so
	Outcome     string    // only screenings that the packs decided so
	DigestsOnly bool      // leave out the bytes of specs and decisions
}

// Words says what of a project the selection shows, "" for all of it.
func (s Selection) Words() string {
	var parts []string
	if s.RunRef != "" {
		parts = append(parts, "run_ref begins with "+s.RunRef)
	}
	if s.Outcome != "" {
		parts = append(parts, "outcome "+s.Outcome)
	}
	return strings.Join(parts, ", ")
}

// Extent is the part of the log that an export covers.
type Extent struct {
	First, Size int64
	MadeAt      time.Time // when the checkpoint was written
}

// ErrNothingToExport: the log holds nothing signed of the time asked for.
var ErrNothingToExport = errors.New("the log holds no signed entries of that time yet")

// ManifestType is the in-toto predicate type of a bundle's manifest.
const ManifestType = "urn:weir:export:v1"

const (
	payloadTypeInToto = "application/vnd.in-toto+json"
	statementType     = "https://in-toto.io/Statement/v1"
)

// Statement is an in-toto Statement v1 with a predicate P.
type Statement[P any] struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     P         `json:"predicate"`
}

// Subject is what a statement speaks of, by digest.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Manifest says what a bundle holds.
type Manifest struct {
	Project  string         `json:"project"`
	From     string         `json:"from,omitzero"` // RFC 3339; the events that were asked for
	To       string         `json:"to,omitzero"`
	Filter   string         `json:"filter,omitzero"` // in words; others are given by hash only
	MadeAt   time.Time      `json:"made_at"`
	Engine   string         `json:"engine"`
	Origin   string         `json:"origin"`
	First    int64          `json:"first"` // index of the first entry
	Size     int64          `json:"size"`  // of the log at the checkpoint; the last entry is the one before
	Shown    int64          `json:"shown"`
	Hidden   int64          `json:"hidden"` // entries given by hash only
	Outcomes map[string]int `json:"outcomes"`
	Payloads string         `json:"payloads"` // included or digests
	Erased   int64          `json:"erased"`   // payloads that are gone, on request or by age
	Packs    []PackFile     `json:"packs"`
	Previous *State         `json:"previous,omitzero"` // the state that the export before ended at
}

// PackFile is a pack that decided something in the bundle.
type PackFile struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256"` // as decisions name it
	File   string `json:"file"`   // "" when its bytes were not kept
}

// State is a state of the log.
type State struct {
	Size int64  `json:"size"`
	Root string `json:"root"` // hex
}

// Proof is the content of ProofFile. Hashes are hex.
type Proof struct {
	Before      []string `json:"before"`                // the Frontier at Manifest.First
	Consistency []string `json:"consistency,omitempty"` // from Manifest.Previous to the checkpoint
}

// Payload is a line of PayloadsFile: the bytes that the decision entry at Index
// names by digest. Erased bytes are absent, and Erased says why.
type Payload struct {
	Index    int64   `json:"index"`
	Spec     []byte  `json:"spec,omitempty"`
	Decision []byte  `json:"decision,omitempty"`
	Erased   *Erased `json:"erased,omitzero"`
}

// Erased says when, by whom and why bytes were erased.
type Erased struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

// DecidedEvent is the type of the events whose bodies name a spec and a decision.
const DecidedEvent = "screening.decided"

// EntryLines writes the lines of EntriesFile one after the other. Each carries a
// running sum of the hashes so far, so that a reader can say at which line a
// range of hashes ceased to be what it was.
type EntryLines struct{ run [sha256.Size]byte }

// Line is the line for the leaf at an index, without its end; leaf is nil when
// only the hash is shown.
func (l *EntryLines) Line(index int64, hash tlog.Hash, leaf []byte) []byte {
	l.run = sha256.Sum256(append(l.run[:], hash[:]...))
	line := fmt.Appendf(nil, `{"index":%d,"hash":"%x","run":"%x"`, index, hash[:], l.run[:8])
	if leaf != nil {
		line = append(append(line, `,"leaf":`...), leaf...)
	}
	return append(line, '}')
}

// Leaf is a leaf of the log and its place.
type Leaf struct {
	Index int64
	Hash  tlog.Hash
	Bytes []byte // nil when it is not the reader's to see
}

// BundleWriter writes the files of a bundle one after the other and signs their
// digests at the end.
type BundleWriter struct {
	create func(name string) (io.WriteCloser, error)
	files  []Subject
	keys   []Signer
}

// NewBundleWriter writes through create, which is called for one file at a time.
// Without a key the bundle cannot be finished.
func NewBundleWriter(create func(name string) (io.WriteCloser, error), keys ...Signer) *BundleWriter {
	return &BundleWriter{create: create, keys: keys}
}

// Write writes a file.
func (b *BundleWriter) Write(name string, write func(io.Writer) error) (err error) {
	f, err := b.create(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.New()
	err = write(io.MultiWriter(f, sum))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.Written(name, [sha256.Size]byte(sum.Sum(nil)))
	return nil
}

// Written takes a file in that was written by other means, as by an export that
// was interrupted.
func (b *BundleWriter) Written(name string, sum [sha256.Size]byte) {
	b.files = append(b.files, Subject{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
}

// Finish signs the manifest over everything that was written.
func (b *BundleWriter) Finish(ctx context.Context, m Manifest) error {
	envelope, err := SignStatement(ctx, Statement[Manifest]{Subject: b.files, PredicateType: ManifestType, Predicate: m}, b.keys...)
	if err != nil {
		return err
	}
	f, err := b.create(ManifestFile)
	if err != nil {
		return fmt.Errorf("%s: %w", ManifestFile, err)
	}
	_, err = f.Write(append(envelope, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// SignStatement puts a statement into a DSSE envelope that every given key signed.
func SignStatement[P any](ctx context.Context, s Statement[P], keys ...Signer) ([]byte, error) {
	s.Type = statementType
	payload, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("sign a statement: %w", err)
	}
	return Envelope(ctx, payloadTypeInToto, payload, keys...)
}

// OpenStatement reads a statement of the given predicate type. signed tells which
// of the keys signed it: none is no error here, as without a key the rest can
// still be held against it. Only the one form that Envelope writes is read.
func OpenStatement[P any](ctx context.Context, envelope []byte, predicateType string, keys ...PublicKey) (s Statement[P], signed []PublicKey, err error) {
	payload, signed, err := openEnvelope(ctx, payloadTypeInToto, envelope, keys)
	if err != nil {
		return s, nil, err
	}
	if err := json.Unmarshal(payload, &s, json.RejectUnknownMembers(true)); err != nil {
		return s, nil, fmt.Errorf("the statement cannot be read: %w", err)
	}
	again, err := json.Marshal(s, json.Deterministic(true))
	if err != nil || string(again) != string(payload) {
		return s, nil, fmt.Errorf("the statement is written in another form than weir's")
	}
	if s.Type != statementType || s.PredicateType != predicateType {
		return s, nil, fmt.Errorf("it is a statement of type %q, not %q", s.PredicateType, predicateType)
	}
	return s, signed, nil
}
