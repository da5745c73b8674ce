package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint names a state of the log: the first Size leaves of the log Origin
// have this root. Written, it is a C2SP tlog-checkpoint in a signed note.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
}

// ErrCheckpoint: not a checkpoint that one of the keys signed.
var ErrCheckpoint = errors.New("not a checkpoint signed by this key")

func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// Sign writes a checkpoint as a note that every given key signed.
func (c Checkpoint) Sign(keys ...Signer) ([]byte, error) {
	signers := make([]note.Signer, len(keys))
	for i, k := range keys {
		signers[i] = noteSigner{k, c.Origin}
	}
	return note.Sign(&note.Note{Text: c.text()}, signers...)
}

// ReadCheckpoint reads a checkpoint of a log that one of the keys signed, and
// tells which of them did. The error is ErrCheckpoint.
func ReadCheckpoint(data []byte, keys ...PublicKey) (Checkpoint, []PublicKey, error) {
	c, err := parseCheckpoint(data)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	verifiers := make([]note.Verifier, len(keys))
	for i, k := range keys {
		verifiers[i] = noteVerifier{k, c.Origin}
	}
	n, err := note.Open(data, note.VerifierList(verifiers...))
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	for _, sig := range slices.Concat(n.Sigs, n.UnverifiedSigs) { // which note reads leniently: spare bits could say anything
		if _, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil {
			return Checkpoint{}, nil, fmt.Errorf("%w: a signature is written in another form than it was made in", ErrCheckpoint)
		}
	}
	var by []PublicKey
	for _, sig := range n.Sigs {
		for _, k := range keys {
			if (noteVerifier{k, c.Origin}).KeyHash() == sig.Hash {
				by = append(by, k)
			}
		}
	}
	return c, by, nil
}

// SignersOf tells which of some keys signed a checkpoint, and whether they are all
// who did. A signature of one of them that does not hold is an error, ErrCheckpoint.
func SignersOf(data []byte, keys ...PublicKey) (by []PublicKey, all bool, err error) {
	_, by, err = ReadCheckpoint(data, keys...)
	var n *note.UnverifiedNoteError
	switch {
	case errors.As(err, &n):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return by, bytes.Count(data, []byte("\n— ")) == len(by), nil
}

// ReadUnsigned reads what a checkpoint says without asking who signed it: it
// shows that the rest fits together, not whose it is.
func ReadUnsigned(data []byte) (Checkpoint, error) { return parseCheckpoint(data) }

func parseCheckpoint(data []byte) (Checkpoint, error) {
	text, _, ok := strings.Cut(string(data), "\n\n")
	lines := strings.Split(text, "\n")
	if !ok || len(lines) != 3 {
		return Checkpoint{}, fmt.Errorf("%w: it has not the three lines of one", ErrCheckpoint)
	}
	c := Checkpoint{Origin: lines[0]}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) || c.Origin == "" {
		return Checkpoint{}, fmt.Errorf("%w: origin or root cannot be read", ErrCheckpoint)
	}
	copy(c.Root[:], root)
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: its size is not a number of leaves", ErrCheckpoint)
	}
	return c, nil
}

// VerifierKey is the public key in the form of signed notes, for other tools:
// origin, key hash and key.
func (p PublicKey) VerifierKey(origin string) (string, error) {
	return note.NewEd25519VerifierKey(origin, p.public)
}

// noteSigner and noteVerifier fit keys to signed notes, where a key has the name
// of the log. note.NewSigner wants the private key as text, which a key that is
// kept elsewhere does not have.
type noteSigner struct {
	Signer
	name string
}

func (s noteSigner) Name() string    { return s.name }
func (s noteSigner) KeyHash() uint32 { return noteVerifier{s.Public(), s.name}.KeyHash() }
func (s noteSigner) Sign(message []byte) ([]byte, error) {
	return s.SignMessage(message)
}

type noteVerifier struct {
	key  PublicKey
	name string
}

// algEd25519 is the signature type of C2SP signed-note.
const algEd25519 = 1

func (v noteVerifier) Name() string { return v.name }
func (v noteVerifier) KeyHash() uint32 {
	return keyHash(v.name, algEd25519, v.key.public)
}
func (v noteVerifier) Verify(message, sig []byte) bool {
	return ed25519.Verify(v.key.public, message, sig)
}
