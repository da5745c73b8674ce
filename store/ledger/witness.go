package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Witness is the public key of somebody who looks at the log and cosigns its
// checkpoints: C2SP tlog-cosignature, cosignature/v1 with ed25519. It says that
// each state of the log that it cosigned goes on from the one before.
type Witness struct {
	name   string
	public ed25519.PublicKey
}

// ErrWitness: not the key of a witness, or not a cosignature by it.
var ErrWitness = errors.New("not a cosignature of this witness")

// algCosignature is the signature type of cosignature/v1.
const algCosignature = 4

// maxTimestamp is the last second that a time can be written in.
const maxTimestamp = math.MaxInt64 / int64(time.Second)

// ParseWitness reads a key in the form of signed notes, NAME+HASH+KEY. Witnesses
// give out keys of the type for cosignatures, or of plain ed25519.
func ParseWitness(text string) (Witness, error) {
	name, rest, _ := strings.Cut(text, "+")
	hash, encoded, _ := strings.Cut(rest, "+")
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != algEd25519 && key[0] != algCosignature {
		return Witness{}, fmt.Errorf("%w: the key must be NAME+HASH+KEY with an ed25519 key, as the witness gives it out", ErrWitness)
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return Witness{}, fmt.Errorf("%w: the key has no name", ErrWitness)
	}
	if want := fmt.Sprintf("%08x", keyHash(name, key[0], key[1:])); hash != want {
		return Witness{}, fmt.Errorf("%w: the hash in the key is not that of its name and key; look for a typing error", ErrWitness)
	}
	return Witness{name, key[1:]}, nil
}

// Name is what the witness is called in its cosignatures.
func (w Witness) Name() string { return w.name }

// ID tells witnesses apart: the name and the hash of the key.
func (w Witness) ID() string { return fmt.Sprintf("%s+%08x", w.name, w.KeyHash()) }

// KeyHash and Verify make a Witness a verifier of signed notes.
func (w Witness) KeyHash() uint32 { return keyHash(w.name, algCosignature, w.public) }

// Verify reports whether a signature is a cosignature of the text of a checkpoint.
func (w Witness) Verify(text, sig []byte) bool {
	at, signed, ok := splitCosignature(sig)
	return ok && ed25519.Verify(w.public, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text), signed)
}

func splitCosignature(sig []byte) (at uint64, signed []byte, ok bool) {
	if len(sig) != 8+ed25519.SignatureSize {
		return 0, nil, false
	}
	at = binary.BigEndian.Uint64(sig)
	return at, sig[8:], at > 0 && at <= uint64(maxTimestamp)
}

func keyHash(name string, alg byte, key []byte) uint32 {
	sum := sha256.Sum256(slices.Concat([]byte(name), []byte{'\n', alg}, key))
	return binary.BigEndian.Uint32(sum[:4])
}

// Cosignature says that a witness saw a state of the log, and when.
type Cosignature struct {
	Witness Witness
	At      time.Time
	Line    string // of the signed note, with its end
}

// Cosignatures gives those that witnesses made of a checkpoint, one of each. A
// line by a known key that does not hold is ErrWitness; lines by others say nothing.
func Cosignatures(checkpoint []byte, witnesses ...Witness) ([]Cosignature, error) {
	if len(witnesses) == 0 {
		return nil, nil
	}
	verifiers := make([]note.Verifier, len(witnesses))
	for i, w := range witnesses {
		verifiers[i] = w
	}
	n, err := note.Open(checkpoint, note.VerifierList(verifiers...))
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	var all []Cosignature
	for _, sig := range n.Sigs {
		i := slices.IndexFunc(witnesses, func(w Witness) bool { return w.name == sig.Name && w.KeyHash() == sig.Hash })
		raw, err := base64.StdEncoding.Strict().DecodeString(sig.Base64)
		if i < 0 || err != nil || len(raw) < 4 {
			return nil, fmt.Errorf("%w: it is written in another form than it was made in", ErrWitness)
		}
		at, _, ok := splitCosignature(raw[4:])
		if !ok {
			return nil, fmt.Errorf("%w: it has no time", ErrWitness)
		}
		all = append(all, Cosignature{witnesses[i], time.Unix(int64(at), 0).UTC(), "— " + sig.Name + " " + sig.Base64 + "\n"})
	}
	return all, nil
}

// maxCosignature bounds what a witness may answer with.
const maxCosignature = 16 << 10

// ReadCosignature takes the answer of a witness, one or more signature lines, and
// gives the cosignature of the checkpoint by its key. ErrWitness.
func ReadCosignature(checkpoint, answer []byte, w Witness) (Cosignature, error) {
	switch {
	case len(answer) > maxCosignature:
		return Cosignature{}, fmt.Errorf("%w: the answer is too long", ErrWitness)
	case !bytes.HasPrefix(answer, []byte("— ")) || bytes.Contains(answer, []byte("\n\n")): // it would be of another text
		return Cosignature{}, fmt.Errorf("%w: the answer is not signature lines", ErrWitness)
	}
	text, _, ok := bytes.Cut(checkpoint, []byte("\n\n"))
	if !ok {
		return Cosignature{}, fmt.Errorf("%w: there is no checkpoint to cosign", ErrWitness)
	}
	found, err := Cosignatures(slices.Concat(text, []byte("\n\n"), answer), w)
	if err != nil {
		return Cosignature{}, err
	}
	if len(found) == 0 {
		return Cosignature{}, fmt.Errorf("%w: the answer holds none by its key", ErrWitness)
	}
	return found[0], nil
}

// AddCheckpoint is what a witness is asked (C2SP tlog-witness): to cosign a
// checkpoint that goes on from a log of the size that it saw last, by this proof.
func AddCheckpoint(old int64, proof tlog.TreeProof, checkpoint []byte) []byte {
	body := fmt.Appendf(nil, "old %d\n", old)
	for _, h := range proof {
		body = fmt.Appendf(body, "%s\n", base64.StdEncoding.EncodeToString(h[:]))
	}
	return append(append(body, '\n'), checkpoint...)
}
