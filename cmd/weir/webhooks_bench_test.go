package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// BenchmarkCommitToFirstAttempt submits 20 escalations a second to the built
// binary with its private Postgres (which syncs each commit to disk) and a
// healthy receiver, and reports the time from the screening's row to the request
// at the receiver. The row's time is taken just before the commit, so the commit
// itself is in the figures.
//
//	go test ./cmd/weir -run '^$' -bench CommitToFirstAttempt -benchtime 400x
func BenchmarkCommitToFirstAttempt(b *testing.B) {
	const every = time.Second / 20
	h := newHook(b, answering(200))
	dir := stateDir(b)
	g := startGate(b, nil, "--state-dir", dir, "--config", endpointsConfig(b, endpoint("hook", h.URL))).ready()
	token := keyFor(b, dir, "bo")
	tick := time.NewTicker(every)
	defer tick.Stop()
	var asked sync.WaitGroup
	for i := 0; b.Loop(); i++ {
		<-tick.C
		asked.Go(func() {
			run := fmt.Sprintf("r%d", i)
			if r, err := post(b.Context(), g.url, token, run, spec(run, escalates)); err != nil || r.status != http.StatusAccepted {
				b.Errorf("status %d, %v", r.status, err)
			}
		})
	}
	b.StopTimer()
	asked.Wait()
	rows, err := connect(b, privateDSN(b, dir)).Query(b.Context(), `select id::text, created_at from screening`)
	if err != nil {
		b.Fatal(err)
	}
	kept := map[string]time.Time{}
	var id string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { kept[id] = at; return nil }); err != nil {
		b.Fatal(err)
	}
	g.await("all of them at the receiver", func() bool { return len(h.requests()) >= len(kept) })
	var took []time.Duration
	for _, r := range h.requests() {
		var m struct {
			Data struct {
				Screening string `json:"screening_id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(r.body, &m); err != nil {
			b.Fatal(err)
		}
		took = append(took, r.at.Sub(kept[m.Data.Screening]))
	}
	slices.Sort(took)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
