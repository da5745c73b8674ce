// Package witnesstest runs witnesses for tests. They verify and sign with the
// libraries of the transparency community, not with what weir signs and proves
// with, so that a mistake of weir's cannot agree with itself.
package witnesstest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/transparency-dev/formats/log"
	cosig "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Witness is a C2SP tlog-witness of one log.
type Witness struct {
	Server *httptest.Server
	Key    string // to verify its cosignatures by, NAME+HASH+KEY

	mu     sync.Mutex
	signer *cosig.Signer
	log    note.Verifier // nil: it knows no log
	seen   log.Checkpoint
	answer http.HandlerFunc // instead of its own
	asked  []string         // the old sizes it was asked from
}

// New starts a witness that ends with the test.
func New(t testing.TB, name string) *Witness {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cosig.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	w := &Witness{Key: vkey, signer: signer}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Server.Close)
	return w
}

// Declared is the witness as weir is told of it.
func (w *Witness) Declared() string { return w.Key + "@" + w.Server.URL }

// Trust tells it of the log, by the log's key in the form of signed notes.
func (w *Witness) Trust(t testing.TB, vkey string) {
	t.Helper()
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = verifier
}

// Answer has it answer otherwise than a witness does; nil: as one again.
func (w *Witness) Answer(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = h
}

// Forget takes away what it saw, or gives it another size and root.
func (w *Witness) Forget(size uint64, root []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Size, w.seen.Hash = size, root
}

// Seen is the size of the log that it cosigned last.
func (w *Witness) Seen() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.seen.Size)
}

// Asked lists the old sizes that it was asked from so far.
func (w *Witness) Asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.asked...)
}

// Verify reads a checkpoint with the libraries that the witness has, and gives how
// many of the witnesses cosigned it.
func Verify(t testing.TB, checkpoint []byte, origin, logKey string, witnesses ...*Witness) (size int64, cosigned int) {
	t.Helper()
	logVerifier, err := note.NewVerifier(logKey)
	if err != nil {
		t.Fatal(err)
	}
	verifiers := make([]note.Verifier, len(witnesses))
	for i, w := range witnesses {
		if verifiers[i], err = cosig.NewVerifierForCosignatureV1(w.Key); err != nil {
			t.Fatal(err)
		}
	}
	c, _, n, err := log.ParseCheckpoint(checkpoint, origin, logVerifier, verifiers...)
	if err != nil {
		t.Fatalf("%v\n%s", err, checkpoint)
	}
	return int64(c.Size), len(n.Sigs) - 1
}

func (w *Witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answer != nil {
		w.answer(rw, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint" {
		http.NotFound(rw, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	status, answer := w.add(body)
	if status == http.StatusConflict {
		rw.Header().Set("Content-Type", "text/x.tlog.size")
	}
	rw.WriteHeader(status)
	_, _ = rw.Write(answer)
}

// add does what C2SP tlog-witness says, in its order.
func (w *Witness) add(body []byte) (status int, answer []byte) {
	head, checkpoint, ok := bytes.Cut(body, []byte("\n\n"))
	if !ok {
		return http.StatusBadRequest, nil
	}
	lines := strings.Split(string(head), "\n")
	text, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseUint(text, 10, 64)
	if !isOld || err != nil {
		return http.StatusBadRequest, nil
	}
	w.asked = append(w.asked, text)
	hashes := make([][]byte, len(lines)-1)
	for i, line := range lines[1:] {
		if hashes[i], err = base64.StdEncoding.DecodeString(line); err != nil {
			return http.StatusBadRequest, nil
		}
	}
	if w.log == nil {
		return http.StatusNotFound, nil
	}
	c, _, n, err := log.ParseCheckpoint(checkpoint, w.log.Name(), w.log)
	switch {
	case err != nil:
		return http.StatusForbidden, nil
	case old > c.Size:
		return http.StatusBadRequest, nil
	case old != w.seen.Size:
		return http.StatusConflict, fmt.Appendf(nil, "%d\n", w.seen.Size)
	}
	if old == 0 && len(hashes) > 0 {
		return http.StatusUnprocessableEntity, nil
	}
	if old > 0 {
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, old, c.Size, hashes, w.seen.Hash, c.Hash); err != nil {
			return http.StatusUnprocessableEntity, nil
		}
	}
	signed, err := note.Sign(&note.Note{Text: n.Text}, w.signer)
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	w.seen = *c
	_, line, _ := bytes.Cut(signed, []byte("\n\n"))
	return http.StatusOK, line
}
