package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/store/storetest"
	"weir/webhooks"
)

// until polls a condition on the database; what never comes fails the test.
func (w *world) until(sql string, args ...any) {
	w.Helper()
	ctx := within(w.T, 30*time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !one[bool](w, sql, args...) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("never true: %s", sql)
		}
	}
}

// hold makes statements of kind ("insert on spec") wait until the test lets them
// go; it returns how. Uses the advisory lock 42.
func (w *world) hold(kind string) (letGo func()) {
	w.Helper()
	w.exec(`create function wait_for_test() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); return new; end $$`)
	w.exec(`create trigger wait_for_test before ` + kind + ` for each row execute function wait_for_test()`)
	conn, err := w.pool.Acquire(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if _, err := conn.Exec(w.Context(), `select pg_advisory_lock(42)`); err != nil {
		w.Fatal(err)
	}
	var once sync.Once
	letGo = func() {
		once.Do(func() {
			_, err := conn.Exec(context.WithoutCancel(w.Context()), `select pg_advisory_unlock(42)`)
			conn.Release()
			if err != nil {
				w.Error(err)
			}
		})
	}
	w.Cleanup(letGo)
	return letGo
}

const somebodyWaits = `select exists (select from pg_locks where locktype = 'advisory' and not granted
	and database = (select oid from pg_database where datname = current_database()))`

// fail makes statements of kind fail n times with a SQLSTATE. The count is a
// sequence's, which a rollback does not turn back.
func (w *world) fail(kind, sqlstate string, n int) {
	w.Helper()
	w.exec(`create sequence failures`)
	w.exec(fmt.Sprintf(`create function fail_for_test() returns trigger language plpgsql security definer as $$ begin
		if nextval('failures') <= %d then raise exception 'for the test' using errcode = '%s'; end if; return new; end $$`, n, sqlstate))
	w.exec(`create trigger fail_for_test before ` + kind + ` for each row execute function fail_for_test()`)
}

// A transaction that certainly did not commit is run again, a few times.
func TestSerialisationFailuresAreRetried(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			t.Run("submit", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.fail("insert on screening", state, 3)
				w.submit("bo", spec("r", "", "personal_data=present"))
				w.checkRecord()
			})
			t.Run("vote", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := w.submit("dee", spec("r", "", "violent=present"))
				w.fail("insert on vote", state, 3)
				if err := w.vote("bo", s, review.VoteAdmit); err != nil {
					t.Error(err)
				}
				w.checkRecord()
			})
			t.Run("without end", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.fail("insert on audit_event", state, 1<<30)
				if _, _, err := w.desk.Submit(t.Context(), principal("bo"), spec("r", ""), nil); !errors.Is(err, review.ErrUnavailable) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
				if n := one[int](w, `select count(*) from spec`) + one[int](w, `select count(*) from screening`); n != 0 {
					t.Errorf("%d rows kept", n)
				}
			})
		})
	}
}

// A submission whose rival is still being written is told so, and nothing else
// that a lock holds up is.
func TestInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	patient, err := store.Open(t.Context(), withParam(t, w.dsn, "lock_timeout", "20s"), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(patient.Close)
	hurried, err := store.Open(t.Context(), withParam(t, w.dsn, "lock_timeout", "50ms"), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hurried.Close)
	submit := func(st *store.Store, raw []byte) (*review.Screening, bool, error) {
		desk, err := review.NewDesk(st, setup(t), review.Config{})
		if err != nil {
			t.Fatal(err)
		}
		key := screening.Sum([]byte("k"))
		return desk.Submit(within(t, 30*time.Second), principal("bo"), raw, &key)
	}
	letGo := w.hold("insert on spec")
	kept := make(chan *review.Screening, 1)
	go func() {
		s, _, err := submit(patient, spec("r", ""))
		if err != nil {
			t.Error(err)
		}
		kept <- s
	}()
	w.until(somebodyWaits)
	for what, raw := range map[string][]byte{"same key": spec("r", ""), "same run": spec("r", "other bytes")} {
		if _, _, err := submit(hurried, raw); !errors.Is(err, review.ErrInFlight) || errors.Is(err, review.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrInFlight", what, err)
		}
	}
	letGo()
	first := <-kept
	if s, existing, err := submit(hurried, spec("r", "")); err != nil || !existing || s.ID != first.ID {
		t.Errorf("afterwards: existing %t, %v", existing, err)
	}
	w.checkRecord()
}

// A caller who stops waiting is told that nothing is known, at once. What he
// waited for is kept whole or not at all, and asking again settles it.
func TestCallerGoesAwayDuringTheCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	letGo := w.hold("insert on spec")
	ctx, cancel := context.WithCancel(t.Context())
	key, raw := screening.Sum([]byte("k")), spec("r", "", "personal_data=present")
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.desk.Submit(ctx, principal("bo"), raw, &key)
		ended <- err
	}()
	w.until(somebodyWaits)
	cancel()
	if err := <-ended; !errors.Is(err, review.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	letGo()
	w.until(`select exists (select from screening)`)
	s, existing, err := w.desk.Submit(t.Context(), principal("bo"), raw, &key)
	if err != nil || !existing || s.Status != review.StatusPending {
		t.Errorf("asked again: existing %t, %v", existing, err)
	}
	w.checkRecord()
}

// A table that somebody has locked makes every caller wait its own time and no
// longer; nobody hears that his submission is in flight, and work goes on as
// soon as the lock is gone.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, err := store.Open(t.Context(), withParam(t, w.dsn, "lock_timeout", "100ms"), store.Config{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if w.desk, err = review.NewDesk(st, setup(t), review.Config{}); err != nil {
		t.Fatal(err)
	}
	w.submit("bo", spec("warm", ""))
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table screening in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	start := time.Now()
	for i := range 100 {
		callers.Go(func() {
			ctx := within(t, time.Second)
			var err error
			if i%2 == 0 {
				_, _, err = w.desk.Submit(ctx, principal("bo"), spec(fmt.Sprintf("r%d", i), ""), nil)
			} else {
				_, err = w.desk.Screenings(ctx, principal("bo"), review.ListQuery{Limit: 1})
			}
			if !errors.Is(err, review.ErrUnavailable) || errors.Is(err, review.ErrInFlight) {
				t.Errorf("caller %d: %v, want ErrUnavailable", i, err)
			}
		})
	}
	callers.Wait()
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("the callers waited %s", took)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if _, _, err := w.desk.Submit(within(t, 10*time.Second), principal("bo"), spec("after", ""), nil); err != nil || time.Since(start) > 3*time.Second {
		t.Errorf("after the lock: %v, %s", err, time.Since(start))
	}
	w.checkRecord()
}

// With all connections taken, callers wait their own time and hear "unavailable".
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, store.Config{MaxConns: 1})
	s := w.submit("dee", spec("r", "", "violent=present"))
	letGo := w.hold("insert on vote")
	voted := make(chan error, 1)
	go func() { voted <- w.vote("bo", s, review.VoteAdmit) }() // holds the only connection
	w.until(somebodyWaits)
	for what, err := range map[string]error{
		"read":   errOf(w.desk.Screenings(within(t, 100*time.Millisecond), principal("bo"), review.ListQuery{Limit: 1})),
		"submit": errOf2(w.desk.Submit(within(t, 100*time.Millisecond), principal("bo"), spec("x", ""), nil)),
		"key":    errOf(w.store.Authenticate(within(t, 100*time.Millisecond), "x", screening.Sum(nil))),
		"ping":   w.store.Ping(within(t, 100*time.Millisecond)),
	} {
		if !errors.Is(err, review.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
	}
	letGo()
	if err := <-voted; err != nil {
		t.Error(err)
	}
	w.submit("bo", spec("y", ""))
	w.checkRecord()
}

// What nothing can be called is not found: the database is there and has answered.
func TestImpossibleNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for _, name := range []string{"nonsense", "\x00", "\xff", "018f0000-0000-7000-8000-00000000000\x00"} {
		for what, err := range map[string]error{
			"screening":   errOf(w.store.Screening(ctx, "default", name)),
			"review":      errOf(w.store.Review(ctx, "default", name)),
			"waiver":      errOf(w.store.Waiver(ctx, "default", name)),
			"recall":      errOf(w.store.Recall(ctx, "default", name)),
			"bypass":      errOf(w.store.Bypass(ctx, "default", name)),
			"delivery":    errOf(w.store.Delivery(ctx, "default", name)),
			"endpoint":    errOf(w.store.Endpoint(ctx, "default", name)),
			"redelivery":  errOf(w.store.Redeliver(ctx, name, webhooks.Order{Actor: "bo", Project: "default", Reason: "r"})),
			"revoked key": w.store.RevokeKey(ctx, name),
		} {
			w.refused(fmt.Sprintf("%s %q", what, name), err, review.ErrNotFound)
		}
	}
}

// What people write is text, or it is told them: a form can hold anything.
func TestWordsAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, p := t.Context(), principal("chi")
	s := w.submit("dee", spec("r", "", "violent=present"))
	id := idOf(w.correct("bo", s, "These are company names, not people.", nil))
	for _, text := range []string{"a\x00", "a\xff"} {
		waive := func(change func(*review.WaiverRequest)) error {
			r := review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "r", Ticket: "T-1", Days: 1}
			change(&r)
			return errOf(w.desk.Waive(ctx, p, r))
		}
		for what, err := range map[string]error{
			"vote": errOf(w.desk.Vote(ctx, p, s.Review.ID, review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256,
				Choice: review.VoteBlock, Reason: text, Terms: []string{violentTerm}})),
			"comment":    errOf(w.desk.Comment(ctx, p, s.Review.ID, 0, text)),
			"question":   errOf(w.desk.Ask(ctx, p, s.Review.ID, 0, text)),
			"withdrawal": errOf(w.desk.Withdraw(ctx, principal("dee"), s.ID, text)),
			"waiver":     waive(func(r *review.WaiverRequest) { r.Reason = text }),
			"ticket":     waive(func(r *review.WaiverRequest) { r.Ticket = text }),
			"prefix":     waive(func(r *review.WaiverRequest) { r.RunPrefix = text }),
			"recall":     errOf(w.desk.Recall(ctx, steward("chi"), bytesOf("bad"), text)),
			"URI":        errOf(w.desk.Recall(ctx, steward("chi"), review.RecalledData{URI: text}, "r")),
			"erasure":    errOf(w.desk.Erase(ctx, admin("chi"), review.ErasureRequest{ScreeningID: s.ID, Reason: text})),
			"judgement":  errOf(w.desk.Judge(ctx, curator("dee"), id, review.Contested, text)),
			"correction": errOf2(w.desk.Correct(ctx, curator("bo"), review.CorrectionRequest{ScreeningID: s.ID, Text: text})),
			"bypass": errOf2(w.desk.ReportBypass(ctx, p, review.Bypass{ID: "018f0000-0000-7000-8000-000000000001", At: time.Now(),
				Reason: text, Spec: spec("r", "")})),
		} {
			if invalid := (*screening.InvalidError)(nil); !errors.As(err, &invalid) {
				t.Errorf("%s %q: %v", what, text, err)
			}
		}
	}
}

func errOf2[A, B any](_ A, _ B, err error) error { return err }

// The answer to a COMMIT is lost on the way back: the row is there, the caller
// does not know, and the same key finds it.
func TestLostCommitAnswer(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"after the server answered", "before the server heard"} {
		t.Run(cut, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := newProxy(t, w.dsn, cut == "before the server heard")
			st, err := store.Open(t.Context(), p.dsn, store.Config{MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(st.Close)
			desk, err := review.NewDesk(st, setup(t), review.Config{})
			if err != nil {
				t.Fatal(err)
			}
			// Once, so that the connection is there, the day known and the statements prepared.
			if _, _, err := desk.Submit(t.Context(), principal("bo"), spec("warm", ""), nil); err != nil {
				t.Fatal(err)
			}
			key, raw := screening.Sum([]byte("k")), spec("r", "", "personal_data=present")
			p.cut.Store(true)
			if _, _, err := desk.Submit(t.Context(), principal("bo"), raw, &key); !errors.Is(err, review.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
			if p.cut.Load() {
				t.Fatal("nothing was cut")
			}
			stored := cut == "after the server answered"
			if n := one[int](w, `select count(*) from screening where run_ref = 'r'`); (n == 1) != stored {
				t.Errorf("%d rows after the cut", n)
			}
			s, existing, err := desk.Submit(t.Context(), principal("bo"), raw, &key)
			if err != nil || existing != stored || s.Status != review.StatusPending {
				t.Errorf("the same key again: existing %t, %v", existing, err)
			}
			for table, want := range map[string]int{"screening": 2, "audit_event": 2, "review": 1, "idempotency": 1, "delivery": 2} {
				if n := one[int](w, `select count(*) from `+table); n != want {
					t.Errorf("%d rows in %s, want %d", n, table, want)
				}
			}
			w.checkRecord()
		})
	}
}

// proxy stands between a store and its server, counts how often the client waited
// for the server, and can cut one exchange.
type proxy struct {
	dsn       string
	exchanges atomic.Int64
	asking    atomic.Bool // the client spoke last
	before    bool
	cut       atomic.Bool // cut the next exchange
}

func newProxy(t *testing.T, dsn string, before bool) *proxy {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	if strings.HasPrefix(cfg.Host, "/") {
		network, address = "unix", filepath.Join(cfg.Host, ".s.PGSQL."+strconv.Itoa(int(cfg.Port)))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{before: before, dsn: (&url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: listener.Addr().String(),
		Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}).String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close()
				return
			}
			var cutting atomic.Bool
			go func() { p.pass(server, client, &cutting); server.Close() }()
			go func() { p.back(client, server, &cutting); client.Close() }()
		}
	}()
	return p
}

// pass carries what the client says.
func (p *proxy) pass(server, client net.Conn, cutting *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if !p.asking.Swap(true) {
			p.exchanges.Add(1)
		}
		if p.cut.CompareAndSwap(true, false) {
			if p.before {
				client.Close()
				return
			}
			cutting.Store(true)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// back carries what the server says; when cutting, it waits for the end of the
// answer and throws it away.
func (p *proxy) back(client, server net.Conn, cutting *atomic.Bool) {
	buf := make([]byte, 64<<10)
	var eaten bytes.Buffer
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.asking.Store(false)
		var to io.Writer = client
		if cutting.Load() {
			to = &eaten
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		if bytes.HasSuffix(eaten.Bytes(), []byte("Z\x00\x00\x00\x05I")) { // ready for the next query: committed
			return
		}
	}
}

// withParam adds a run-time parameter to a DSN.
func withParam(t *testing.T, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " " + name + "=" + value
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestDSNSettingsWin(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	for _, tt := range []struct{ name, value string }{{"statement_timeout", "7s"}, {"lock_timeout", "3s"}, {"application_name", "mine"}, {"jit", "on"}} {
		st, err := store.Open(t.Context(), withParam(t, dsn, tt.name, tt.value), store.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.Setting(t.Context(), st, tt.name); err != nil || got != tt.value {
			t.Errorf("%s is %q (%v), want %q", tt.name, got, err, tt.value)
		}
		st.Close()
	}
	// One connection from the DSN serves all the same.
	st, err := store.Open(t.Context(), withParam(t, dsn, "pool_max_conns", "1"), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got := store.MaxConns(st); got != 1 {
		t.Errorf("%d connections, want the DSN's 1", got)
	}
}
