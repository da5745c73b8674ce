package api_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/store"
	"weir/store/ledger"
	"weir/store/storetest"
)

// BenchmarkSequencing measures what numbering and signing the log costs those who
// submit: many short pairs of runs, with the sequencer and without, one after the
// other on one database, in turns the one and the other first, so that whatever
// else the machine does falls on both. Clients, gate and Postgres
// (which does not sync to disk here) share the machine, so the sequencer's work is
// taken from the submissions'.
//
//	go test ./cmd/weir/api -run '^$' -bench Sequencing -benchtime 1x
func BenchmarkSequencing(b *testing.B) {
	const (
		pairs   = 30
		lasting = 1500 * time.Millisecond
		clients = 64
	)
	dsn := storetest.DSN(b)
	st, err := store.Open(b.Context(), dsn, store.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	db, err := pgxpool.New(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	desk, err := review.NewDesk(st, setup(b), review.Config{})
	if err != nil {
		b.Fatal(err)
	}
	server := api.New(api.Config{Log: slog.New(slog.DiscardHandler), Metrics: api.NewMetrics(), InFlight: 8 * clients}) // nobody is turned away
	server.Open(api.Gate{Desk: desk, Keys: st})
	ts := httptest.NewServer(server.Handler())
	defer ts.Close()
	l := &load{B: b, url: ts.URL, token: newKey(b, st, store.NewKey{Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * clients}}}
	key := signingKey(b)
	with := func(sequencer bool, run func()) {
		ctx, stop := context.WithCancel(b.Context())
		var work sync.WaitGroup
		if sequencer {
			work.Go(func() { st.RunSequencer(ctx, 200*time.Millisecond, func(err error) { b.Error(err) }, key) })
		}
		run()
		stop()
		work.Wait()
		for { // what is left must not burden the next run
			n, err := st.Sequence(b.Context(), 1000, key)
			if err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				return
			}
		}
	}
	for b.Loop() {
		with(true, func() { l.saturate(clients, 2*lasting) })             // warm
		if _, err := db.Exec(b.Context(), `vacuum analyze`); err != nil { // as autovacuum does, which tests turn off
			b.Fatal(err)
		}
		var rates, took [2][]float64
		for pair := range pairs {
			for turn := range 2 {
				on := (pair + turn) % 2
				with(on == 1, func() { rates[on] = append(rates[on], l.saturate(clients, lasting)) })
			}
		}
		half := median(rates[0]) / 2
		for pair := range pairs {
			for turn := range 2 {
				on := (pair + turn) % 2
				with(on == 1, func() { took[on] = append(took[on], l.paced(half, lasting)...) })
			}
		}
		b.ReportMetric(median(rates[0]), "specs/s-off")
		b.ReportMetric(median(rates[1]), "specs/s-on")
		b.ReportMetric(100*(1-median(ratios(rates[1], rates[0]))), "%throughput")
		b.ReportMetric(median(took[0]), "p50-ms-off")
		b.ReportMetric(median(took[1]), "p50-ms-on")
		b.ReportMetric(100*(median(took[1])/median(took[0])-1), "%p50")
	}
}

// load submits new specs.
type load struct {
	*testing.B
	url, token string
	client     *http.Client
	n          atomic.Int64
}

func (l *load) submit() {
	body := spec(fmt.Sprintf("run-%d", l.n.Add(1)))
	req, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.url+"/v1/screenings", bytes.NewReader(body))
	if err != nil {
		l.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+l.token)
	resp, err := l.client.Do(req)
	if err != nil {
		l.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		l.Errorf("status %d", resp.StatusCode)
	}
}

// saturate gives the submissions a second of clients that each wait for an answer.
func (l *load) saturate(clients int, lasting time.Duration) float64 {
	var done atomic.Int64
	var work sync.WaitGroup
	start := time.Now()
	for range clients {
		work.Go(func() {
			for time.Since(start) < lasting {
				l.submit()
				done.Add(1)
			}
		})
	}
	work.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

// paced submits at a rate whatever the answers take, and gives what each took from
// when it was due, in milliseconds.
func (l *load) paced(rate float64, lasting time.Duration) (took []float64) {
	var mu sync.Mutex
	var work sync.WaitGroup
	start, clock := time.Now(), time.NewTimer(0)
	defer clock.Stop()
	for i := range int(rate * lasting.Seconds()) {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		clock.Reset(time.Until(due)) // the rate is what is asked for: a wait for nothing but the time
		<-clock.C
		work.Go(func() {
			l.submit()
			ms := float64(time.Since(due).Microseconds()) / 1000
			mu.Lock()
			defer mu.Unlock()
			took = append(took, ms)
		})
	}
	work.Wait()
	return took
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func signingKey(b testing.TB) ledger.Key {
	b.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		b.Fatal(err)
	}
	key, err := ledger.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		b.Fatal(err)
	}
	return key
}
