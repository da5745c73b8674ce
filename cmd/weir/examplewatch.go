package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"weir/cmd/weir/api"
	"weir/screening"
	"weir/store"
)

// exampleWatch compares the packs in force with the coherent reviewed examples
// again and again. A disagreement is a warning for curators, never a stop: the
// packs were ratified, and examples are revised.
type exampleWatch struct {
	vocabulary *screening.Vocabulary
	store      *store.Store
	metrics    *api.Metrics
	log        *slog.Logger
	count      atomic.Int64
}

const watchEvery = 5 * time.Minute

func (w *exampleWatch) look(ctx context.Context) {
	precedents, err := w.store.Precedents(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("reviewed examples not compared", "error", err)
		}
		return
	}
	agree, err := w.vocabulary.Agreement(precedents)
	if err != nil {
		w.log.Warn("reviewed examples not compared", "error", err)
		return
	}
	n := int64(0)
	for i, ok := range agree {
		if !ok {
			n++
			w.log.Warn("the packs disagree with a coherent example", "correction", precedents[i].Source, "term", precedents[i].Term)
		}
	}
	w.count.Store(n)
	w.metrics.SetDisagreements(int(n))
}

func (w *exampleWatch) warnings() []string {
	n := w.count.Load()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the packs in force disagree with %s; see the log", count(int(n), "coherent reviewed example", "coherent reviewed examples"))}
}
