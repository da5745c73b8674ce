package api_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/store"
	"weir/store/storetest"
)

// BenchmarkSubmit measures a submission over HTTP to the committed row, with 64
// clients: go test -run '^$' -bench Submit ./cmd/weir/api. The test server's
// Postgres does not sync to disk, so this is the gate's own cost.
func BenchmarkSubmit(b *testing.B) {
	st, err := store.Open(b.Context(), storetest.DSN(b), store.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	desk, err := review.NewDesk(st, setup(b), review.Config{})
	if err != nil {
		b.Fatal(err)
	}
	server := api.New(api.Config{Log: slog.New(slog.DiscardHandler), Metrics: api.NewMetrics()})
	server.Open(api.Gate{Desk: desk, Keys: st})
	ts := httptest.NewServer(server.Handler())
	defer ts.Close()
	token := newKey(b, st, store.NewKey{Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := spec(fmt.Sprintf("run-%d", n.Add(1)))
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, ts.URL+"/v1/screenings", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				b.Errorf("status %d", resp.StatusCode)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "specs/s")
}
