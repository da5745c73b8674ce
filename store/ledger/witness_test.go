package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cosig "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// otherWitness is a witness that another library signs for.
func otherWitness(t *testing.T, name string) (Witness, *cosig.Signer, note.Verifier, string) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cosig.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := cosig.NewVerifierForCosignatureV1(vkey)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ParseWitness(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return w, signer, verifier, vkey
}

// cosign adds a signature to a note and gives the line, as a witness does.
func cosign(t *testing.T, checkpoint []byte, signer note.Signer) (line []byte) {
	t.Helper()
	text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
	signed, err := note.Sign(&note.Note{Text: string(text) + "\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ = bytes.Cut(signed, []byte("\n\n"))
	return line
}

func TestCosignaturesAgreeWithAnotherLibrary(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	signed, err := Checkpoint{Origin: "weir.test/log", Size: 12, Root: tlog.RecordHash([]byte("root"))}.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	w, signer, verifier, vkey := otherWitness(t, "witness.example/w1")
	stranger, strange, _, _ := otherWitness(t, "witness.example/w2")
	if w.KeyHash() != verifier.KeyHash() || w.Name() != verifier.Name() {
		t.Errorf("%s %08x, the other library: %s %08x", w.Name(), w.KeyHash(), verifier.Name(), verifier.KeyHash())
	}
	typed, err := cosig.VKeyToCosignatureV1(vkey)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseWitness(typed); err != nil || again.ID() != w.ID() {
		t.Errorf("a key of the type for cosignatures: %+v, %v", again, err)
	}
	before := time.Now().Add(-time.Minute)
	got, err := ReadCosignature(signed, slices.Concat(cosign(t, signed, strange), cosign(t, signed, signer)), w)
	if err != nil || got.Witness.ID() != w.ID() || got.At.Before(before) || got.At.After(before.Add(2*time.Minute)) {
		t.Fatalf("%+v, %v", got, err)
	}
	// With its line the checkpoint is still one, for us and for the other library.
	whole := append(bytes.Clone(signed), got.Line...)
	if _, by, err := ReadCheckpoint(whole, key.Public()); err != nil || len(by) != 1 {
		t.Errorf("with a cosignature: %v, %v", by, err)
	}
	if n, err := note.Open(whole, note.VerifierList(verifier)); err != nil || len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 1 {
		t.Errorf("the other library: %+v, %v", n, err)
	}
	if found, err := Cosignatures(whole, w, stranger); err != nil || len(found) != 1 || found[0].Line != got.Line || !found[0].At.Equal(got.At) {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := Cosignatures(signed, w, stranger); err != nil || len(found) != 0 {
		t.Errorf("without a cosignature: %+v, %v", found, err)
	}
	if found, err := Cosignatures(whole, stranger); err != nil || len(found) != 0 {
		t.Errorf("by a stranger: %+v, %v", found, err)
	}
	// Whatever one byte of text or line becomes, it is no cosignature by this key.
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	bare := slices.Concat(text, []byte("\n\n"), []byte(got.Line))
	for i := range bare {
		for _, flip := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(bare)
			bad[i] ^= flip
			if found, err := Cosignatures(bad, w); err == nil && len(found) > 0 {
				t.Errorf("byte %d changed by %#x is still taken: %+v", i, flip, found)
			}
		}
	}
}

func TestAnswersThatAreNoCosignature(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	c := Checkpoint{Origin: "weir.test/log", Size: 12, Root: tlog.RecordHash([]byte("root"))}
	signed, err := c.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	c.Size++
	next, err := c.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	w, signer, _, vkey := otherWitness(t, "w")
	_, strange, _, _ := otherWitness(t, "w") // the same name, another key
	skey, _, err := note.GenerateKey(nil, "w")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	good := cosign(t, signed, signer)
	raw, err := base64.StdEncoding.DecodeString(strings.Fields(string(good))[2])
	if err != nil {
		t.Fatal(err)
	}
	line := func(raw []byte) []byte { return fmt.Appendf(nil, "— w %s\n", base64.StdEncoding.EncodeToString(raw)) }
	late := bytes.Clone(raw)
	late[4] = 0xff // a time that cannot be
	for name, answer := range map[string][]byte{
		"nothing":               nil,
		"words":                 []byte("no\n"),
		"of another state":      cosign(t, next, signer),
		"by another key":        cosign(t, signed, strange),
		"a plain signature":     cosign(t, signed, plain),
		"the log's own":         signed[bytes.Index(signed, []byte("\n\n"))+2:],
		"cut":                   good[:len(good)-3],
		"without its end":       good[:len(good)-1],
		"of a longer text":      slices.Concat([]byte("— more\n\n"), good),
		"after a blank line":    append([]byte("\n"), good...),
		"at an impossible time": line(late),
		"short":                 line(raw[:20]),
		"very long":             bytes.Repeat(good, 200),
	} {
		if got, err := ReadCosignature(signed, answer, w); !errors.Is(err, ErrWitness) {
			t.Errorf("%s: %+v, %v, want ErrWitness", name, got, err)
		}
	}
	if _, err := ReadCosignature(signed, good, w); err != nil {
		t.Errorf("the good one: %v", err)
	}
	name, rest, _ := strings.Cut(vkey, "+")
	hash, key64, _ := strings.Cut(rest, "+")
	for _, text := range []string{"", "w", name + "+" + hash, "+" + hash + "+" + key64, name + "+00000000+" + key64, name + "+" + hash + "+" + key64[:40], "other+" + hash + "+" + key64,
		"a b+" + rest, strings.ToUpper(vkey)} {
		if got, err := ParseWitness(text); !errors.Is(err, ErrWitness) {
			t.Errorf("key %q: %+v, %v, want ErrWitness", text, got, err)
		}
	}
}

func TestAddCheckpointForm(t *testing.T) {
	t.Parallel()
	proof := tlog.TreeProof{tlog.RecordHash([]byte("a")), tlog.RecordHash([]byte("b"))}
	got := string(AddCheckpoint(7, proof, []byte("o\n9\nroot\n\n— o sig\n")))
	want := "old 7\n" + proof[0].String() + "\n" + proof[1].String() + "\n\no\n9\nroot\n\n— o sig\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(AddCheckpoint(0, nil, []byte("c"))); got != "old 0\n\nc" {
		t.Errorf("got %q", got)
	}
}

// TestBundleTellsWhatWitnessesSaw: a state that witnesses cosigned is held to the
// entries up to it, at whatever place of the bundle it is.
func TestBundleTellsWhatWitnessesSaw(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	w, signer, _, _ := otherWitness(t, "w")
	l := newExampleLog(t)
	size := int64(len(l.entries))
	cosigned := func(c Checkpoint) []byte {
		signed, err := c.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		return append(signed, cosign(t, signed, signer)...)
	}
	opt := VerifyOptions{Keys: []PublicKey{key.Public()}, Witnesses: []Witness{w}}
	for first := range size {
		for at := int64(1); at <= size; at++ {
			state := l.states[at-1]
			l.cosigned = cosigned(state)
			got, err := l.verify(l.export(t, key, first, nil), opt)
			if at < first {
				if err == nil {
					t.Errorf("from %d, a state before it, %d: accepted", first, at)
				}
				continue
			}
			if err != nil || got.Cosigned == nil || got.Cosigned.Checkpoint != state || len(got.Cosigned.By) != 1 {
				t.Errorf("from %d, cosigned at %d: %+v, %v", first, at, got, err)
			}
			if got, err := l.verify(l.export(t, key, first, nil), VerifyOptions{}); err != nil || len(got.Cosigned.By) != 0 {
				t.Errorf("from %d, without keys: %+v, %v", first, got, err)
			}
			state.Root[5] ^= 1
			l.cosigned = cosigned(state)
			var broken *BrokenError
			if _, err := l.verify(l.export(t, key, first, nil), opt); !errors.As(err, &broken) || broken.File != CosignedFile {
				t.Errorf("from %d, witnesses saw another history of %d: %v", first, at, err)
			}
		}
	}
	signed, err := l.states[size-1].Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"of another log":      cosigned(Checkpoint{Origin: "weir.test/other", Size: size, Root: l.states[size-1].Root}),
		"of a longer log":     cosigned(Checkpoint{Origin: "weir.test/log", Size: size + 1, Root: l.states[size-1].Root}),
		"not signed by weir":  cosign(t, cosigned(l.states[size-1]), signer),
		"a false cosignature": append(signed, cosign(t, cosigned(l.states[0]), signer)...),
		"not a checkpoint":    []byte("x"),
	} {
		l.cosigned = text
		if got, err := l.verify(l.export(t, key, 0, nil), opt); err == nil {
			t.Errorf("%s: %+v", name, got.Cosigned)
		}
	}
	l.cosigned = cosigned(l.states[size-1])
	files := l.export(t, key, 0, nil)
	delete(files, CosignedFile)
	if _, err := l.verify(files, opt); err == nil {
		t.Error("what witnesses saw was taken out: accepted")
	}
	l.cosigned = nil
	files = l.export(t, key, 0, nil)
	if got, err := l.verify(files, opt); err != nil || got.Cosigned != nil {
		t.Errorf("no witness: %+v, %v", got, err)
	}
}
