package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"weir/cmd/weir/api"
	"weir/store"
)

// endpointWatch shows in metrics and /readyz which webhook endpoints get nothing:
// reviewers who are not told of an escalation will not miss it.
type endpointWatch struct {
	store   *store.Store
	metrics *api.Metrics
	log     *slog.Logger
	last    atomic.Pointer[[]string]
}

const endpointsEvery = 15 * time.Second

func (w *endpointWatch) look(ctx context.Context) {
	list, err := w.store.Outbox().Endpoints(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("state of the webhook endpoints not read", "error", err)
		}
		return
	}
	w.metrics.SetEndpoints(list)
	var warnings []string
	for _, e := range list {
		switch e.State() {
		case "disabled":
			warnings = append(warnings, fmt.Sprintf("webhook endpoint %s is disabled; %s held", e.ID, count(e.Held, "message is", "messages are")))
		case "cooling":
			warnings = append(warnings, fmt.Sprintf("webhook endpoint %s fails; the next try is after %s", e.ID, e.OpenUntil.UTC().Format(time.RFC3339)))
		}
	}
	w.last.Store(&warnings)
}

func (w *endpointWatch) warnings() []string {
	if last := w.last.Load(); last != nil {
		return *last
	}
	return nil
}
