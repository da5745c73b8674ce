package witness

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"weir/store/ledger"
	"weir/webhooks/witness/witnesstest"
)

const origin = "weir.test/log"

// memoryLog is a log that grows when it is told to.
type memoryLog struct {
	key    ledger.Key
	hashes []tlog.Hash
	size   int64
	vkey   string

	mu   sync.Mutex
	kept map[int64][]ledger.Cosignature
	fail error
}

func newLog(t *testing.T) *memoryLog {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ledger.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	vkey, err := key.Public().VerifierKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	return &memoryLog{key: key, vkey: vkey, kept: map[int64][]ledger.Cosignature{}}
}

func (l *memoryLog) ReadHashes(indexes []int64) (out []tlog.Hash, err error) {
	for _, i := range indexes {
		out = append(out, l.hashes[i])
	}
	return out, nil
}

func (l *memoryLog) grow(t *testing.T, n int) {
	t.Helper()
	for range n {
		more, err := tlog.StoredHashes(l.size, fmt.Append(nil, l.size), l)
		if err != nil {
			t.Fatal(err)
		}
		l.hashes = append(l.hashes, more...)
		l.size++
	}
}

func (l *memoryLog) SignedCheckpoint(context.Context) ([]byte, error) {
	if l.size == 0 || l.fail != nil {
		return nil, l.fail
	}
	root, err := tlog.TreeHash(l.size, l)
	if err != nil {
		return nil, err
	}
	return ledger.Checkpoint{Origin: origin, Size: l.size, Root: root}.Sign(l.key)
}

func (l *memoryLog) CosignedSizes(_ context.Context, ids []string) (map[string]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := map[string]int64{}
	for size, list := range l.kept {
		for _, c := range list {
			if id := c.Witness.ID(); slices.Contains(ids, id) {
				sizes[id] = max(sizes[id], size)
			}
		}
	}
	return sizes, nil
}

func (l *memoryLog) ProveLog(_ context.Context, size, old int64) (tlog.TreeProof, error) {
	return ledger.ProveConsistency(size, old, l)
}

func (l *memoryLog) KeepCosignatures(_ context.Context, size int64, list []ledger.Cosignature) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[size] = append(l.kept[size], list...)
	return nil
}

// cosigned is the latest checkpoint with what is kept of it.
func (l *memoryLog) cosigned(t *testing.T) []byte {
	t.Helper()
	checkpoint, err := l.SignedCheckpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range l.kept[l.size] {
		checkpoint = append(checkpoint, c.Line...)
	}
	return checkpoint
}

func asker(t *testing.T, l Log, cfg Config, witnesses ...*witnesstest.Witness) *Asker {
	t.Helper()
	declared := make([]Witness, len(witnesses))
	for i, w := range witnesses {
		var err error
		if declared[i], err = Parse(w.Declared()); err != nil {
			t.Fatal(err)
		}
	}
	cfg.AllowPrivate = true
	a, err := New(l, declared, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func round(t *testing.T, a *Asker) []State {
	t.Helper()
	states, err := a.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// TestWitnessesFollowTheLog: witnesses cosign each state that goes on from the one
// before, from whatever size they are at.
func TestWitnessesFollowTheLog(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	one, two := witnesstest.New(t, "one.example"), witnesstest.New(t, "two.example/w")
	one.Trust(t, l.vkey)
	two.Trust(t, l.vkey)
	a := asker(t, l, Config{}, one, two)
	if states := round(t, a); len(states) != 0 {
		t.Errorf("before there is anything: %+v", states)
	}
	for _, n := range []int{1, 1, 5, 1, 120} {
		l.grow(t, n)
		for _, s := range round(t, a) {
			if s.Err != nil || s.Seen != l.size || s.Size != l.size {
				t.Errorf("at %d: %+v", l.size, s)
			}
		}
		if size, n := witnesstest.Verify(t, l.cosigned(t), origin, l.vkey, one, two); size != l.size || n != 2 {
			t.Errorf("at %d: the other libraries see %d cosignatures of %d entries", l.size, n, size)
		}
	}
	asked := len(one.Asked())
	round(t, a)
	if got := one.Asked(); len(got) != asked || !slices.Equal(got, []string{"0", "1", "2", "7", "8"}) {
		t.Errorf("asked from %v", got)
	}
	// One that lost what it saw, one that is behind, and one that is ahead of what we kept, say where they are.
	l.grow(t, 1)
	one.Forget(0, nil)
	root, err := tlog.TreeHash(7, l)
	if err != nil {
		t.Fatal(err)
	}
	two.Forget(7, root[:])
	if states := round(t, a); states[0].Err != nil || states[1].Err != nil || one.Seen() != l.size || two.Seen() != l.size {
		t.Errorf("%+v", states)
	}
	if got := one.Asked()[asked:]; !slices.Equal(got, []string{"128", "0"}) {
		t.Errorf("asked from %v", got)
	}
	delete(l.kept, l.size) // as when the process ended before it kept the answer
	if states := round(t, a); states[0].Err != nil || states[0].Seen != l.size {
		t.Errorf("asked again for the same state: %+v", states)
	}
	if _, n := witnesstest.Verify(t, l.cosigned(t), origin, l.vkey, one, two); n != 2 {
		t.Errorf("%d cosignatures", n)
	}
}

// hang answers nothing until the other side gives up, which a server notices only
// when it has read the request.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestWitnessThatDoesNotCosign: whatever one answers, the others are kept, nothing
// that its key did not sign is, and it is said what is wrong.
func TestWitnessThatDoesNotCosign(t *testing.T) {
	t.Parallel()
	status := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		forget int // it saw that many entries of another history
		within time.Duration
		want   error
		says   string
	}{
		"knows no log":        {answer: status(404, "text/plain", ""), want: ErrRefused, says: "origin"},
		"knows another key":   {answer: status(403, "text/plain", ""), want: ErrRefused, says: "key"},
		"does not understand": {answer: status(400, "text/plain", ""), want: ErrRefused},
		"is busy":             {answer: status(503, "text/plain", ""), want: ErrUnreachable, says: "503"},
		"redirects":           {answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, want: ErrUnreachable, says: "302"},
		"saw another history": {forget: 3, want: ErrHistory, says: "proof"},
		"saw more":            {forget: 9, want: ErrHistory, says: "it cosigned one of 9 entries, and there are 5"},
		"of as many, other":   {forget: 5, want: ErrHistory},
		"conflicts in words":  {answer: status(409, "text/plain", "no"), want: ErrHistory},
		"a size that is none": {answer: status(409, "text/x.tlog.size", "-1\n"), want: ErrHistory},
		"turns round and round": {answer: func() http.HandlerFunc {
			n := 0
			return func(w http.ResponseWriter, r *http.Request) {
				n++
				status(409, "text/x.tlog.size", fmt.Sprintf("%d\n", n%4))(w, r)
			}
		}(), want: ErrUnreachable, says: "another size"},
		"answers nonsense":  {answer: status(200, "text/plain", "yes\n"), want: ledger.ErrWitness},
		"answers at length": {answer: status(200, "text/plain", strings.Repeat("— x AAAA\n", 9000)), want: ledger.ErrWitness},
		"hangs":             {answer: hang, within: time.Second, want: ErrUnreachable},
		"breaks off":        {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t)
			l.grow(t, 5)
			bad, good := witnesstest.New(t, "bad.example"), witnesstest.New(t, "good.example")
			bad.Trust(t, l.vkey)
			good.Trust(t, l.vkey)
			if tt.forget > 0 {
				bad.Forget(uint64(tt.forget), make([]byte, 32))
			}
			bad.Answer(tt.answer)
			a := asker(t, l, Config{Timeout: cmp.Or(tt.within, time.Minute)}, bad, good)
			states := round(t, a)
			if !errors.Is(states[0].Err, tt.want) || !strings.Contains(states[0].Err.Error(), tt.says) || states[0].Seen != 0 || states[0].Size != 5 {
				t.Errorf("%+v, want %v (%s)", states[0], tt.want, tt.says)
			}
			if states[1].Err != nil || states[1].Seen != 5 {
				t.Errorf("the other one: %+v", states[1])
			}
			if _, n := witnesstest.Verify(t, l.cosigned(t), origin, l.vkey, bad, good); n != 1 || len(l.kept[5]) != 1 {
				t.Errorf("%d cosignatures, %d kept", n, len(l.kept[5]))
			}
		})
	}
}

// growingLog grows while a witness is asked, as by another replica.
type growingLog struct {
	*memoryLog
	t     *testing.T
	looks int
}

func (l *growingLog) SignedCheckpoint(ctx context.Context) ([]byte, error) {
	if l.looks++; l.looks == 2 {
		l.grow(l.t, 4)
	}
	return l.memoryLog.SignedCheckpoint(ctx)
}

func TestAnotherReplicaWasFirst(t *testing.T) {
	t.Parallel()
	l := &growingLog{memoryLog: newLog(t), t: t}
	l.grow(t, 5)
	w := witnesstest.New(t, "w")
	w.Trust(t, l.vkey)
	w.Forget(9, make([]byte, 32)) // the state that the other replica had cosigned
	if states := round(t, asker(t, l, Config{}, w)); states[0].Err != nil || states[0].Seen != 0 {
		t.Errorf("%+v", states[0])
	}
}

func TestLogThatFails(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.fail = errors.New("the database is away")
	if _, err := asker(t, l, Config{}, witnesstest.New(t, "w")).Round(t.Context()); !errors.Is(err, l.fail) {
		t.Errorf("got %v", err)
	}
}

// TestWitnessesAreGuarded: a name or an address inside is not asked unless it is
// declared to be there.
func TestWitnessesAreGuarded(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.grow(t, 1)
	w := witnesstest.New(t, "w")
	w.Trust(t, l.vkey)
	for _, url := range []string{strings.Replace(w.Server.URL, "http:", "https:", 1), "https://169.254.169.254", "https://localhost:1"} {
		declared, err := Parse(w.Key + "@" + url)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(l, []Witness{declared}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if states := round(t, a); !errors.Is(states[0].Err, ErrUnreachable) || !strings.Contains(states[0].Err.Error(), "address refused") {
			t.Errorf("%s: %v", url, states[0].Err)
		}
	}
	if len(w.Asked()) > 0 {
		t.Error("it was asked")
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	w := witnesstest.New(t, "w.example/x")
	for _, text := range []string{"", w.Key, w.Key + "@", w.Key + "@ftp://x", w.Key + "@http://", "x@https://w.example", w.Key + "@https://u:p@w.example", w.Key + "@https://w.example?q=1",
		w.Key + "@https://w.example#f"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	one, err := Parse(w.Key + "@https://w.example/logs/")
	if err != nil || one.URL != "https://w.example/logs" || one.Key.Name() != "w.example/x" {
		t.Fatalf("%+v, %v", one, err)
	}
	plain := one
	plain.URL = "http://w.example"
	for name, list := range map[string][]Witness{"twice": {one, one}, "without TLS": {plain}, "too many": slices.Repeat([]Witness{one}, 17)} {
		if _, err := New(newLog(t), list, Config{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
