package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"weir/cmd/weir/api"
	"weir/store"
	"weir/store/ledger"
	"weir/webhooks"
	"weir/webhooks/witness"
)

// witnessOptions are the flags about witnesses of the log.
type witnessOptions struct {
	declared []string
	config   witness.Config
}

func (o *witnessOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.declared, "witness", nil, "witness that cosigns the log, as NAME+HASH+KEY@URL: its key, and where it is asked")
	f.BoolVar(&o.config.AllowPrivate, "witness-allow-private", false, "witnesses may be at private addresses, and be asked without TLS")
}

// parse reads the declarations.
func (o *witnessOptions) parse() ([]witness.Witness, error) {
	list := make([]witness.Witness, len(o.declared))
	for i, text := range o.declared {
		var err error
		if list[i], err = witness.Parse(text); err != nil {
			return nil, fmt.Errorf("--witness: %w", err)
		}
	}
	return list, nil
}

// check says what is wrong with the declarations; signs is whether the gate will
// have a key.
func (o *witnessOptions) check(signs bool) error {
	list, err := o.parse()
	if err != nil {
		return err
	}
	if len(list) > 0 && !signs {
		return errors.New("witnesses cosign what a gate signed: --witness needs --signing-key")
	}
	_, err = witness.New(nil, list, o.config)
	return err
}

func (o *witnessOptions) describe() string {
	return count(len(o.declared), "witness", "witnesses") + " of the log"
}

// witnessWatch asks witnesses to cosign the log and shows in log, metrics and
// /readyz which do not. Nothing waits for it.
type witnessWatch struct {
	asker   *witness.Asker
	store   *store.Store
	keys    []ledger.Signer
	metrics *api.Metrics
	log     *slog.Logger

	begun  bool
	failed map[string]error // why a witness does not cosign, as it was logged last
	last   atomic.Pointer[[]string]
}

// witnessEvery is how often witnesses are asked about what the log came to.
const witnessEvery = 10 * time.Second

// watch makes the watch, nil when no witness is declared.
func (o *witnessOptions) watch(st *store.Store, keys []ledger.Signer, egress webhooks.Config, metrics *api.Metrics, log *slog.Logger) (*witnessWatch, error) {
	list, err := o.parse()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	o.config.Egress = egress
	asker, err := witness.New(st, list, o.config)
	if err != nil {
		return nil, err
	}
	return &witnessWatch{asker: asker, store: st, keys: keys, metrics: metrics, log: log, failed: map[string]error{}}, nil
}

func (w *witnessWatch) look(ctx context.Context) {
	if !w.begun {
		w.begin(ctx)
	}
	states, err := w.asker.Round(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("witnesses not asked", "error", err)
		}
		return
	}
	var warnings []string
	for _, s := range states {
		w.metrics.SetWitness(s.Witness, s.Size-s.Seen)
		if s.Err != nil {
			warnings = append(warnings, fmt.Sprintf("witness %s %s; it cosigned %d of the log's %s", s.Witness, kindOf(s.Err), s.Seen, count(int(s.Size), "entry", "entries")))
		}
		if ctx.Err() == nil {
			w.tell(s)
		}
	}
	w.last.Store(&warnings)
}

// begin says by what witnesses know this log: their operators have to be told.
func (w *witnessWatch) begin(ctx context.Context) {
	note, err := w.store.SignedCheckpoint(ctx)
	if err != nil || note == nil {
		return
	}
	c, err := ledger.ReadUnsigned(note)
	if err != nil {
		return
	}
	for _, k := range w.keys {
		if line, err := k.Public().VerifierKey(c.Origin); err == nil {
			w.log.Info("witnesses are asked", "origin", c.Origin, "log_key", line)
			w.begun = true
		}
	}
}

// tell logs what is new about a witness.
func (w *witnessWatch) tell(s witness.State) {
	before, now := w.failed[s.Witness], kindOf(s.Err)
	switch {
	case before == now:
		return
	case now == nil:
		w.log.Info("witness cosigns again", "witness", s.Witness, "entries", s.Seen)
	default:
		w.log.Warn("witness does not cosign", "witness", s.Witness, "cosigned", s.Seen, "entries", s.Size, "error", s.Err)
	}
	w.failed[s.Witness] = now
}

var errOther = errors.New("answers with what its key did not sign")

// kindOf is an error without what changes from one time to the next.
func kindOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrWitness):
		return errOther
	case errors.Is(err, witness.ErrHistory):
		return witness.ErrHistory
	case errors.Is(err, witness.ErrRefused):
		return witness.ErrRefused
	}
	return witness.ErrUnreachable
}

// warnings lists the witnesses that do not cosign. A nil watch has none.
func (w *witnessWatch) warnings() []string {
	if w == nil || w.last.Load() == nil {
		return nil
	}
	return *w.last.Load()
}
