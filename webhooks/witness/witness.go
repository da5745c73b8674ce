package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"weir/store/ledger"
	"weir/webhooks"
)

// Log is the log that witnesses look at.
type Log interface {
	// SignedCheckpoint is the latest checkpoint as the log signed it, nil when there is none.
	SignedCheckpoint(ctx context.Context) ([]byte, error)
	// CosignedSizes gives the size of the newest checkpoint that each witness cosigned, by ledger.Witness.ID.
	CosignedSizes(ctx context.Context, witnesses []string) (map[string]int64, error)
	// ProveLog proves that the log of one size begins with that of an older one.
	ProveLog(ctx context.Context, size, old int64) (tlog.TreeProof, error)
	// KeepCosignatures keeps what witnesses added to the checkpoint of a size.
	KeepCosignatures(ctx context.Context, size int64, list []ledger.Cosignature) error
}

// Witness is one that is declared: its key and where it is asked.
type Witness struct {
	Key ledger.Witness
	URL string
}

// Parse reads a declaration, NAME+HASH+KEY@URL.
func Parse(text string) (Witness, error) {
	// A key has neither of the two; a URL may have an @ further on.
	at := strings.Index(text, "@http")
	if at < 0 {
		return Witness{}, errors.New("a witness is declared as NAME+HASH+KEY@URL: its key as it gives it out, and the address that it is asked at")
	}
	key, err := ledger.ParseWitness(text[:at])
	if err != nil {
		return Witness{}, err
	}
	u, err := url.Parse(text[at+1:])
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return Witness{}, fmt.Errorf("witness %s: the address must be like https://witness.example/weir", key.Name())
	}
	return Witness{key, strings.TrimSuffix(u.String(), "/")}, nil
}

// MaxWitnesses bounds how many there may be.
const MaxWitnesses = 16

// Config tunes an Asker. The zero value is usable.
type Config struct {
	// AllowPrivate lets witnesses be at private addresses, and be asked without TLS.
	AllowPrivate bool

	// Timeout limits each request. Zero means 10 seconds.
	Timeout time.Duration

	// Egress has the resolver, ranges to refuse, own addresses and authorities that
	// webhooks are sent by; the rest of it is not used.
	Egress webhooks.Config
}

// Asker asks witnesses. It is made by New and may be used by one goroutine at a time.
type Asker struct {
	log       Log
	witnesses []Witness
	client    http.RoundTripper
	timeout   time.Duration
}

// New checks what was declared.
func New(log Log, witnesses []Witness, cfg Config) (*Asker, error) {
	if len(witnesses) > MaxWitnesses {
		return nil, fmt.Errorf("%d witnesses are declared; at most %d can be asked", len(witnesses), MaxWitnesses)
	}
	seen := map[string]bool{}
	for _, w := range witnesses {
		if seen[w.Key.ID()] {
			return nil, fmt.Errorf("witness %s is declared twice", w.Key.Name())
		}
		seen[w.Key.ID()] = true
		if strings.HasPrefix(w.URL, "http:") && !cfg.AllowPrivate {
			return nil, fmt.Errorf("witness %s: without TLS it can only be asked where private addresses are allowed", w.Key.Name())
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	return &Asker{log, witnesses, webhooks.NewTransport(cfg.AllowPrivate, cfg.Egress), cfg.Timeout}, nil
}

// State is how far a witness has come, after a round.
type State struct {
	Witness string // its name
	Seen    int64  // entries of the log in the newest state that it cosigned
	Size    int64  // entries in the state that it was to cosign
	Err     error  // why it did not
}

// Why a witness did not cosign.
var (
	// ErrUnreachable: no answer, or one that means nothing; it is asked again.
	ErrUnreachable = errors.New("does not answer")
	// ErrRefused: it does not cosign for this log, or not this state of it.
	ErrRefused = errors.New("refuses to cosign")
	// ErrHistory: it saw another history of this log, or more of it: the database was
	// restored from an old state, or somebody changed it.
	ErrHistory = errors.New("saw another history of this log")
)

// Round asks every witness that has not cosigned the latest checkpoint to do so,
// and keeps what they answer. An error is one of the log; before there is a
// checkpoint there is no state and no error.
func (a *Asker) Round(ctx context.Context) ([]State, error) {
	checkpoint, size, err := a.latest(ctx)
	if err != nil || size == 0 {
		return nil, err
	}
	ids := make([]string, len(a.witnesses))
	for i, w := range a.witnesses {
		ids[i] = w.Key.ID()
	}
	seen, err := a.log.CosignedSizes(ctx, ids)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(a.witnesses))
	got := make([]*ledger.Cosignature, len(a.witnesses))
	var asking sync.WaitGroup
	for i, w := range a.witnesses {
		states[i] = State{Witness: w.Key.Name(), Seen: seen[ids[i]], Size: size}
		if states[i].Seen >= size { // another replica may have asked for a later one
			continue
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			got[i], states[i].Err = a.ask(ctx, w, checkpoint, states[i].Seen, size)
		})
	}
	asking.Wait()
	var keep []ledger.Cosignature
	for _, c := range got {
		if c != nil {
			keep = append(keep, *c)
		}
	}
	if len(keep) == 0 {
		return states, nil
	}
	if err := a.log.KeepCosignatures(ctx, size, keep); err != nil {
		return nil, err
	}
	for i := range states {
		if got[i] != nil {
			states[i].Seen = size
		}
	}
	return states, nil
}

// latest gives the newest signed checkpoint and its size, 0 when there is none.
func (a *Asker) latest(ctx context.Context) (checkpoint []byte, size int64, err error) {
	if checkpoint, err = a.log.SignedCheckpoint(ctx); err != nil || checkpoint == nil {
		return nil, 0, err
	}
	c, err := ledger.ReadUnsigned(checkpoint)
	return checkpoint, c.Size, err
}

// ask asks one witness, and once more from where it says that it is. Nothing and
// no error: it has seen a later state already.
func (a *Asker) ask(ctx context.Context, w Witness, checkpoint []byte, old, size int64) (*ledger.Cosignature, error) {
	for range 2 {
		var proof tlog.TreeProof
		if old > 0 && old < size {
			var err error
			if proof, err = a.log.ProveLog(ctx, size, old); err != nil {
				return nil, fmt.Errorf("prove the log to witness %s: %w", w.Key.Name(), err)
			}
		}
		answer, at, err := a.post(ctx, w, ledger.AddCheckpoint(old, proof, checkpoint))
		if err != nil {
			return nil, err
		}
		if at < 0 {
			c, err := ledger.ReadCosignature(checkpoint, answer, w.Key)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
			}
			return &c, nil
		}
		if at > size {
			return nil, a.beyond(ctx, at)
		}
		old = at
	}
	return nil, fmt.Errorf("%w: it keeps saying that it saw another size than before", ErrUnreachable)
}

// beyond tells why a witness saw more entries than are to be cosigned: the log
// went on meanwhile, or it was longer once.
func (a *Asker) beyond(ctx context.Context, seen int64) error {
	_, now, err := a.latest(ctx)
	if err != nil || now >= seen {
		return err
	}
	return fmt.Errorf("%w: it cosigned one of %d entries, and there are %d", ErrHistory, seen, now)
}

// post sends a request. at is the size that a witness says it is at, when that is
// its answer, else -1.
func (a *Asker) post(ctx context.Context, w Witness, body []byte) (answer []byte, at int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/add-checkpoint", bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: the request cannot be built", ErrUnreachable)
	}
	req.Header.Set("User-Agent", "weir-witness/1")
	resp, err := a.client.RoundTrip(req) // which follows no redirect
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the raw connection
		return nil, 0, fmt.Errorf("%w: it answered 101", ErrUnreachable)
	}
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, 32<<10)); err != nil {
		return nil, 0, fmt.Errorf("%w: the answer broke off", ErrUnreachable)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return answer, -1, nil
	case http.StatusConflict:
		if at, ok := sizeOf(resp.Header.Get("Content-Type"), answer); ok {
			return nil, at, nil
		}
		return nil, 0, fmt.Errorf("%w: of this many entries it saw another state", ErrHistory)
	case http.StatusUnprocessableEntity:
		return nil, 0, fmt.Errorf("%w: it does not take the proof that the log went on from there", ErrHistory)
	case http.StatusNotFound:
		return nil, 0, fmt.Errorf("%w: it does not know this log; give it the log's origin and key", ErrRefused)
	case http.StatusForbidden:
		return nil, 0, fmt.Errorf("%w: it knows none of the keys that signed; give it the log's origin and key", ErrRefused)
	case http.StatusBadRequest:
		return nil, 0, fmt.Errorf("%w: it does not understand the request", ErrRefused)
	}
	return nil, 0, fmt.Errorf("%w: it answered %d", ErrUnreachable, resp.StatusCode)
}

// sizeOf reads the size that a witness says it is at.
func sizeOf(contentType string, body []byte) (int64, bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	text, ended := strings.CutSuffix(string(body), "\n")
	size, perr := strconv.ParseInt(text, 10, 64)
	return size, err == nil && kind == "text/x.tlog.size" && ended && perr == nil && size >= 0 && strconv.FormatInt(size, 10) == text
}
