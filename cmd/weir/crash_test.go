package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"weir/store/localpg"
)

// What is tested here is the built binary, from outside: processes are killed at
// random moments under load, and then everything that was acknowledged has to be
// there, and every invariant has to hold.

const (
	crashCycles = 6 // kills of the gate; each costs about two seconds
	writers     = 8
	longest     = 6 * time.Second // that any request may take, whatever happens to the database
)

// stateDir is like t.TempDir, but the account that Postgres runs as can reach it.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-state-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// acked is a submission that the gate acknowledged.
type acked struct {
	key, outcome string
	body         []byte
	first        reply
}

// load is a number of writers that submit without end, each under a key that it
// repeats until it gets a 2xx.
type load struct {
	testing.TB
	url     atomic.Pointer[string]
	token   string
	stop    chan struct{}
	writers sync.WaitGroup
	away    atomic.Int64 // answers of 503
	lost    atomic.Int64 // requests without an answer
	mu      sync.Mutex
	acked   []acked
}

func startLoad(t testing.TB, url, token string) *load {
	l := &load{TB: t, token: token, stop: make(chan struct{})}
	l.url.Store(&url)
	for w := range writers {
		l.writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.submit(fmt.Sprintf("w%d/%d", w, i), i%3)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

var endLoad sync.Mutex

// end stops the writers when each has its last answer.
func (l *load) end() {
	endLoad.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	endLoad.Unlock()
	l.writers.Wait()
}

// submit repeats one submission until it is acknowledged.
func (l *load) submit(run string, kind int) {
	body := [][]byte{spec(run), spec(run, escalates), spec(run, blocks)}[kind]
	outcome := []string{"admit", "escalate", "block"}[kind]
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for ctx := l.Context(); ctx.Err() == nil; <-pause.C {
		start := time.Now()
		r, err := post(ctx, *l.url.Load(), l.token, run, body)
		took := time.Since(start)
		if err == nil && took > longest {
			l.Errorf("%s: status %d after %s", run, r.status, took)
		}
		switch {
		case err != nil:
			l.lost.Add(1)
		case r.status == 503 || r.status == 409 && r.text("type") == "urn:weir:problem:in-flight":
			l.away.Add(1)
			if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 1 || n > 5 {
				l.Errorf("%s: status %d with Retry-After %q", run, r.status, r.header.Get("Retry-After"))
			}
		case r.status >= 200 && r.status < 300:
			if got := r.text("outcome"); got != outcome {
				l.Errorf("%s: %s, want %s", run, got, outcome)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.acked = append(l.acked, acked{run, outcome, body, r})
			return
		default:
			l.Errorf("%s: status %d: %s", run, r.status, r.body)
			return
		}
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// check asks for everything that was acknowledged: the same screening with the
// same decision, under its id and under its key, and the gate's answer to its bytes.
func (l *load) check() {
	l.Helper()
	for _, a := range l.acked {
		id := a.first.text("id")
		read, err := send(l.Context(), "GET", *l.url.Load()+"/v1/screenings/"+id, l.token, nil)
		if err != nil || read.status != 200 || decision(read) != decision(a.first) || decision(read) == "" {
			l.Errorf("%s was acknowledged as %s; read back: status %d, %v\n%s", a.key, id, read.status, err, read.body)
		}
		again, err := post(l.Context(), *l.url.Load(), l.token, a.key, a.body)
		if err != nil || again.text("id") != id {
			l.Errorf("%s was acknowledged as %s; the same key gives %s, status %d, %v", a.key, id, again.text("id"), again.status, err)
		}
		want := map[string]int{"admit": 200, "escalate": 409, "block": 403}[a.outcome]
		if gate, err := send(l.Context(), "POST", *l.url.Load()+"/v1/gate/check", l.token, a.body); err != nil || gate.status != want {
			l.Errorf("%s: the gate answers %d (%v), want %d", a.key, gate.status, err, want)
		}
	}
}

// decision is the decision's JSON as the gate sent it.
func decision(r reply) string {
	_, rest, _ := strings.Cut(string(r.body), `"decision":`)
	return rest
}

// checkRecord checks what must hold in the database at any time.
func checkRecord(t testing.TB, dsn string) {
	t.Helper()
	conn := connect(t, dsn)
	for what, sql := range map[string]string{
		"screenings without exactly one decided event": `select count(*) from screening s where
			(select count(*) from audit_event a where a.screening_id = s.id and a.type = 'screening.decided') <> 1`,
		"screenings that nothing refers to by key": `select count(*) from screening s where not exists (select from idempotency i where i.screening_id = s.id)`,
		"keys with two screenings":                 `select count(*) from (select from idempotency group by project, principal, key_sha256 having count(*) > 1) k`,
		"runs with two screenings":                 `select count(*) from (select from screening group by run_ref having count(*) > 1) r`,
		"escalations without exactly one review":   `select count(*) from screening s where outcome = 'escalate' and (select count(*) from review r where r.screening_id = s.id) <> 1`,
		"reviews without a panel":                  `select count(*) from review r where not exists (select from review_panel p where p.review_id = r.id)`,
		"panel endpoints without exactly one message": `select count(*) from review_panel p, unnest(p.endpoints) e where
			(select count(*) from delivery d where d.review_id = p.review_id and d.endpoint = e and d.type = 'review.opened') <> 1`,
		"screenings without their bytes": `select count(*) from screening s where sha256(spec_of(s)) is distinct from s.spec_sha256 or sha256(decision_of(s)) is distinct from s.decision_sha256`,
		"events whose chain is broken": `select count(*) from (select *, row_number() over chain as n, lag(hash) over chain as before from audit_event
			window chain as (partition by coalesce(screening_id::text, subject) order by seq)) e
			where seq <> n or prev_hash <> coalesce(before, '\x') or hash <> sha256(prev_hash || convert_to(concat_ws(e'\n', coalesce(screening_id::text, subject), seq, type, actor,
				to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ''), 'UTF8') || body)`,
	} {
		var n int
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatalf("%s: %v", what, err)
		} else if n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

// keyFor makes a key on a private database, through the server that runs on it.
func keyFor(t testing.TB, dir, subject string) string {
	t.Helper()
	r := weirEnv(t, nil, "key", "create", "--state-dir", dir, "--for", subject, "--scopes", "submit,review")
	if r.code != 0 {
		t.Fatalf("key create: exit %d: %s", r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

func privateDSN(t testing.TB, dir string) string {
	t.Helper()
	dsn, err := os.ReadFile(filepath.Join(dir, dsnFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dsn))
}

// noneLeft waits until no process of a state directory is left.
func noneLeft(t testing.TB, dir string) {
	t.Helper()
	limit := time.NewTimer(15 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(processesOn(dir)) > 0 {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("still running on %s: %v", dir, processesOn(dir))
		}
	}
}

// Kill -9 of the gate, and with it of its private Postgres, at random moments.
func TestCrashOfTheGate(t *testing.T) {
	t.Parallel()
	dir, config := stateDir(t), configFor(t, "http://127.0.0.1:1/hook") // nobody listens: deliveries stay under way
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	start := func() *gate {
		return startGate(t, nil, "--state-dir", dir, "--config", config, "--webhook-schedule", "0s,1s,1s,1s", "--webhook-lease", "2s").ready()
	}
	g := start()
	token := keyFor(t, dir, "bo")
	l := startLoad(t, g.url, token)
	for cycle := range crashCycles {
		had := l.count()
		g.await("some acknowledged", func() bool { return l.count() > had+writers })
		more := time.NewTimer(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		<-more.C // the random moment
		g.kill()
		noneLeft(t, dir)
		begin := time.Now()
		g = start()
		t.Logf("cycle %d: %d acknowledged, ready again after %s", cycle, l.count(), time.Since(begin).Round(time.Millisecond))
		l.url.Store(&g.url)
	}
	l.end()
	l.check()
	checkRecord(t, privateDSN(t, dir))
	if l.lost.Load() == 0 {
		t.Error("no request was cut off: the kills hit nothing")
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit %d\n%s", code, g.log)
	}
	noneLeft(t, dir)
}

// privatePostgres is a server that the gate is given by DATABASE_URL.
func privatePostgres(t testing.TB, dir string) *localpg.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := localpg.Start(ctx, localpg.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	return s
}

func postmaster(t testing.TB, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func issueKey(t testing.TB, dsn, subject string) string {
	t.Helper()
	r := weirEnv(t, []string{"DATABASE_URL=" + dsn}, "key", "create", "--for", subject, "--scopes", "submit,review")
	if r.code != 0 {
		t.Fatalf("key create: exit %d: %s", r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

// Postgres dies under load, is away for a while, comes back, and later hangs.
// The gate answers 503 in time, never 500, and works again by itself.
func TestCrashOfPostgres(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	server := privatePostgres(t, dir)
	g := startGate(t, []string{"DATABASE_URL=" + server.DSN()}, "--config", configFor(t, "http://127.0.0.1:1/hook")).ready()
	l := startLoad(t, g.url, issueKey(t, server.DSN(), "bo"))
	g.await("some acknowledged", func() bool { return l.count() > 5*writers })

	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-server.Done()
	away := l.away.Load()
	g.await("answers of 503", func() bool { return l.away.Load() > away+5*writers })
	if s := get(t, g.url+"/livez"); s != 200 {
		t.Errorf("livez without a database: %d", s)
	}
	g.await("readyz says no", func() bool { return get(t, g.url+"/readyz") == 503 })
	again := privatePostgres(t, dir)
	if again.DSN() != server.DSN() {
		t.Fatalf("the server moved to %s", again.DSN())
	}
	back, had := time.Now(), l.count()
	g.await("acknowledged again", func() bool { return l.count() > had+writers })
	g.ready()
	t.Logf("works again after %s", time.Since(back).Round(time.Millisecond))

	// Now it hangs: nothing is refused, nothing is answered.
	all := append(children(postmaster(t, dir)), postmaster(t, dir))
	signal := func(sig syscall.Signal) {
		for _, pid := range all {
			_ = syscall.Kill(pid, sig) // some end by themselves
		}
	}
	signal(syscall.SIGSTOP)
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	away = l.away.Load()
	g.await("answers of 503", func() bool { return l.away.Load() >= away+writers })
	if s := get(t, g.url+"/livez"); s != 200 {
		t.Errorf("livez with a database that hangs: %d", s)
	}
	if s := get(t, g.url+"/readyz"); s != 503 {
		t.Errorf("readyz with a database that hangs: %d", s)
	}
	signal(syscall.SIGCONT)
	back, had = time.Now(), l.count()
	g.await("acknowledged again", func() bool { return l.count() > had+writers })
	t.Logf("works again after %s", time.Since(back).Round(time.Millisecond))
	l.end()
	l.check()
	checkRecord(t, again.DSN())
	if l.lost.Load() != 0 {
		t.Errorf("%d requests got no answer from a gate that was never stopped", l.lost.Load())
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit %d\n%s", code, g.log)
	}
}

func get(t testing.TB, url string) int {
	t.Helper()
	client := &http.Client{Timeout: longest}
	resp, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// children gives the processes that a process started.
func children(parent int) (pids []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		_, rest, ok := strings.Cut(string(stat), ") ") // past the name, which may hold anything
		if fields := strings.Fields(rest); err == nil && ok && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// A gate that starts before its database stays up, says so, admits nothing, and
// works when the database comes (KNOWN_FAULTS 1).
func TestPostgresComesLate(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	server := privatePostgres(t, dir)
	dsn := server.DSN()
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := startGate(t, []string{"DATABASE_URL=" + dsn}, "--config", configFor(t, ""))
	for range 50 {
		for method, path := range map[string]string{"GET": "/readyz", "POST": "/v1/screenings?gate=true"} {
			r, err := send(t.Context(), method, g.url+path, "weir_x", spec("r"))
			if err != nil || r.status != 503 || r.header.Get("Retry-After") == "" || strings.Contains(string(r.body), "admit") {
				t.Fatalf("%s before the database is there: status %d, %v: %s", path, r.status, err, r.body)
			}
		}
	}
	if s := get(t, g.url+"/livez"); s != 200 {
		t.Errorf("livez %d", s)
	}
	g.await("a word about it", func() bool { return g.log.event("the database is not usable yet, trying again") != nil })
	privatePostgres(t, dir)
	g.ready()
	r, err := send(t.Context(), "GET", g.url+"/readyz", "", nil)
	if err != nil || !strings.Contains(string(r.body), `"id":"pledge"`) || !strings.Contains(string(r.body), `"sha256":"`) {
		t.Errorf("the first yes does not name the packs: %s (%v)", r.body, err)
	}
	if r, err := post(t.Context(), g.url, issueKey(t, dsn, "bo"), "k", spec("r")); err != nil || r.status != 201 {
		t.Errorf("status %d, %v: %s", r.status, err, r.body)
	}
	// Asked to stop while it waits, a gate just stops.
	waiting := startGate(t, []string{"DATABASE_URL=postgres://weir@127.0.0.1:1/none"}, "--config", configFor(t, ""))
	waiting.await("a word about it", func() bool { return waiting.log.event("the database is not usable yet, trying again") != nil })
	if code := waiting.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM while waiting: exit %d\n%s", code, waiting.log)
	}
}

// receiver takes webhooks; hold decides what happens to a request before it is answered.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	seen []delivered
}

type delivered struct {
	id, typ string
	body    []byte
	err     error // of the signature
}

func newReceiver(t testing.TB, hold func(n int, r *http.Request)) *receiver {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	rec := &receiver{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = hook.Verify(body, r.Header)
		}
		rec.mu.Lock()
		rec.seen = append(rec.seen, delivered{r.Header.Get("webhook-id"), r.Header.Get("Content-Type"), body, err})
		n := len(rec.seen)
		rec.mu.Unlock()
		hold(n, r)
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (r *receiver) got() []delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivered(nil), r.seen...)
}

// deliveries gives "state attempts" of every delivery.
func deliveries(t testing.TB, conn *pgx.Conn) (all []string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select type || ' ' || state || ' ' || attempt from delivery order by created_at, type`)
	if err != nil {
		t.Fatal(err)
	}
	all, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Kill -9 of the gate while the receiver holds the request: it comes again, with
// the same id and the same bytes, and counts once.
func TestCrashDuringDelivery(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	holding := make(chan struct{}, 1)
	rec := newReceiver(t, func(n int, r *http.Request) {
		if n == 1 {
			holding <- struct{}{}
			<-r.Context().Done() // until the gate is dead
		}
	})
	config := configFor(t, rec.URL+"/hook")
	start := func() *gate {
		return startGate(t, []string{db.env()}, "--config", config, "--webhook-lease", "2s", "--webhook-schedule", "0s,1s,1s,1s").ready()
	}
	g := start()
	if r, err := post(t.Context(), g.url, db.token, "k", spec("r", escalates)); err != nil || r.status != 202 {
		t.Fatalf("status %d, %v: %s", r.status, err, r.body)
	}
	<-holding
	g.kill()
	killed := time.Now()
	g = start()
	conn := connect(t, db.dsn)
	g.await("delivered", func() bool { return strings.Join(deliveries(t, conn), "") == "review.opened delivered 2" })
	t.Logf("delivered %s after the kill", time.Since(killed).Round(time.Millisecond))
	got := rec.got()
	if len(got) != 2 || got[0].id != got[1].id || got[0].id == "" || string(got[0].body) != string(got[1].body) {
		t.Errorf("received %+v", got)
	}
	for _, d := range got {
		if d.err != nil {
			t.Errorf("signature: %v", d.err)
		}
	}
}

// SIGTERM with everything under way: half a request, long polls, a delivery. All
// are answered, nothing new is taken, exit 0, and nothing is left "delivering".
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	delivering, answer := make(chan struct{}, 1), make(chan struct{})
	rec := newReceiver(t, func(int, *http.Request) { delivering <- struct{}{}; <-answer })
	var once sync.Once
	letGo := func() { once.Do(func() { close(answer) }) }
	t.Cleanup(letGo)
	config := configFor(t, rec.URL+"/hook")
	policies, err := os.ReadFile(filepath.Join(config, "policies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The receiver answers when all is under way, which may take longer than a second.
	writeFile(t, []byte(strings.Replace(string(policies), "timeout: 1s", "timeout: 30s", 1)), config, "policies.yaml")
	g := startGate(t, []string{db.env()}, "--config", config, "--webhook-lease", "60s").ready()
	pending, err := post(t.Context(), g.url, db.token, "k", spec("r", escalates))
	if err != nil || pending.status != 202 {
		t.Fatalf("status %d, %v: %s", pending.status, err, pending.body)
	}
	<-delivering
	const polls = 20
	polled := make(chan reply, polls)
	for range polls {
		go func() {
			r, err := send(t.Context(), "GET", g.url+"/v1/screenings/"+pending.text("id")+"?wait=60s", db.token, nil)
			if err != nil {
				t.Error(err)
			}
			polled <- r
		}()
	}
	g.await("all polls under way", func() bool {
		r, err := send(t.Context(), "GET", g.url+"/metrics", "", nil)
		return err == nil && strings.Contains(string(r.body), fmt.Sprintf("weir_requests_in_flight{kind=%q} %d\n", "waiting", polls))
	})
	// A request of which only half is there.
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := string(spec("half"))
	fmt.Fprintf(conn, "POST /v1/screenings HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer %s\r\nContent-Type: application/yaml\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		db.token, len(body))
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the handler reads: the request is under way
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}

	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.await("stopping", func() bool { return g.log.event("stopping") != nil })
	fmt.Fprint(conn, body)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != 201 {
		t.Errorf("half a request: %v, %v", resp, err)
	}
	for range polls {
		if r := <-polled; r.status != 200 || r.text("status") != "pending" {
			t.Errorf("a poll: status %d: %s", r.status, r.body)
		}
	}
	letGo()
	<-g.ended
	if code := g.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d\n%s", code, g.log)
	}
	if got := deliveries(t, connect(t, db.dsn)); strings.Join(got, ",") != "review.opened delivered 1" && strings.Join(got, ",") != "review.opened pending 0" {
		t.Errorf("deliveries after the stop: %v", got)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://")); err == nil {
		t.Error("somebody still listens")
	}
	checkRecordOf(t, db.dsn, "half")
}

// checkRecordOf: the run was kept.
func checkRecordOf(t testing.TB, dsn, run string) {
	t.Helper()
	var n int
	if err := connect(t, dsn).QueryRow(t.Context(), `select count(*) from screening where run_ref = $1`, run).Scan(&n); err != nil || n != 1 {
		t.Errorf("run %s: %d screenings, %v", run, n, err)
	}
}
