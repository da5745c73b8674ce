package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/screening"
)

// batchLine is a line of an answer, of whatever kind.
type batchLine struct {
	Line      int
	Status    int
	Screening *struct {
		ID, Status string
		SpecSHA256 string `json:"spec_sha256"`
		Decision   struct{ Outcome string }
	}
	Preview *struct {
		DryRun   bool `json:"dry_run"`
		Decision struct{ Outcome string }
	}
	Problem *struct {
		Type, Detail string
		RequestID    string `json:"request_id"`
		Errors       []screening.Problem
	}
	End *struct {
		Complete bool
		Lines    int
		Counts   map[string]int
		Problem  *struct{ Type, Title string }
	}
}

func (l batchLine) id() string {
	if l.Screening == nil {
		return ""
	}
	return l.Screening.ID
}

var ndjson = header("Content-Type", "application/x-ndjson")

// oneLine is a spec on one line.
func oneLine(run string, changes ...string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, spec(run, changes...)); err != nil {
		panic(err)
	}
	return b.String()
}

// batch sends lines and reads the answer: its last line is apart.
func (w *world) batch(path string, lines []string, options ...option) (results []batchLine, end batchLine) {
	w.Helper()
	a := w.do("POST", "/v1/screenings/batch"+path, "bo", []byte(strings.Join(lines, "\n")), append(options, ndjson)...)
	if a.status != 200 || a.header.Get("Content-Type") != "application/x-ndjson" {
		w.Fatalf("status %d, %s: %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	results = readBatch(w, bytes.NewReader(a.body))
	end = results[len(results)-1]
	if results = results[:len(results)-1]; end.End == nil || end.End.Lines != len(results) {
		w.Fatalf("%d results, and the last line %+v", len(results), end.End)
	}
	for i, r := range results {
		if r.Line != i+1 || r.End != nil {
			w.Fatalf("result %d is for line %d", i+1, r.Line)
		}
	}
	return results, end
}

func readBatch(t testing.TB, r io.Reader) (lines []batchLine) {
	t.Helper()
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadString('\n')
		if err == io.EOF && text == "" {
			return lines
		}
		var l batchLine
		if err != nil || json.Unmarshal([]byte(text), &l) != nil {
			t.Fatalf("line %d is not whole (%v): %.200s", len(lines)+1, err, text)
		}
		lines = append(lines, l)
	}
}

// A result per line, in order; what is wrong with a line is told in its place and
// loses nothing of the others; and what has a 2xx is stored.
func TestBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := []string{
		oneLine("a"),
		oneLine("b", personal),
		`{"schema": "weir/spec/v1", "run_ref": "c", "colour": 1}`,
		oneLine("d", sexualised, minors),
		"schema: weir/spec/v1",
		"",
		oneLine("e", `"sft" → "sft", "purpose": "`+strings.Repeat("x", screening.MaxDocumentBytes)+`"`),
		oneLine("f") + "\r",
		oneLine("a"), // the bytes of the first
		`{"run_ref": `,
		oneLine("g"),
	}
	results, end := w.batch("", lines)
	var got []string
	for _, r := range results {
		switch {
		case r.Screening != nil:
			got = append(got, fmt.Sprintf("%d %s", r.Status, r.Screening.Status))
		default:
			pointer := ""
			if len(r.Problem.Errors) > 0 {
				pointer = " " + r.Problem.Errors[0].Pointer
			}
			got = append(got, fmt.Sprintf("%d %s%s", r.Status, strings.TrimPrefix(r.Problem.Type, "urn:weir:problem:"), pointer))
		}
	}
	want := []string{"201 superseded", "202 pending", "422 invalid /colour", "201 blocked", "400 invalid ", "400 invalid ", "413 too-large",
		"201 admitted", "201 admitted", "400 invalid /run_ref", "201 admitted"}
	// Whether the first is told as admitted or as superseded depends on when it is read again.
	if results[0].Screening != nil && results[0].Screening.Status == "admitted" {
		want[0] = "201 admitted"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if !end.End.Complete || end.End.Problem != nil || end.End.Counts["refused"] != 5 || end.End.Counts["blocked"] != 1 || end.End.Counts["pending"] != 1 {
		t.Errorf("end: %+v", end.End)
	}
	for i, r := range results {
		if r.Status >= 300 {
			if r.Screening != nil || r.Problem == nil || r.Problem.RequestID == "" {
				t.Errorf("line %d: %d without a problem of its own", i+1, r.Status)
			}
			continue
		}
		var stored string
		if err := w.pool.QueryRow(t.Context(), `select encode(spec_sha256, 'hex') from screening where id = $1`, r.id()).Scan(&stored); err != nil {
			t.Errorf("line %d has a %d and no row: %v", i+1, r.Status, err)
		}
		if sum := screening.Sum([]byte(lines[i])).String(); stored != sum || r.Screening.SpecSHA256 != sum {
			t.Errorf("line %d: digest %s, stored %s, want that of the bytes, %s", i+1, r.Screening.SpecSHA256, stored, sum)
		}
	}
	if n := w.count("screening"); n != 6 {
		t.Errorf("%d screenings, want 6", n)
	}
}

// Specs of one run are kept in the order of their lines: the last one stands.
func TestBatchKeepsTheOrderOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lines []string
	for i := range 12 {
		lines = append(lines, oneLine("run", fmt.Sprintf(`"sft" → "sft", "purpose": "try %d"`, i)))
	}
	results, _ := w.batch("", lines)
	for i, r := range results {
		want := "superseded"
		if i == len(results)-1 {
			want = "admitted"
		}
		if a := w.do("GET", "/v1/screenings/"+r.id(), "bo", nil); a.text("status") != want {
			t.Errorf("line %d of %d is %s, want %s", i+1, len(results), a.text("status"), want)
		}
	}
}

// Under one key a batch can be sent again, whole or in part and in any order, and
// screens nothing twice. The key of a line is none that a client could send.
func TestBatchIdempotency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := []string{oneLine("a"), oneLine("b", personal), oneLine("c", sexualised, minors)}
	key := header("Idempotency-Key", "k1")
	first, _ := w.batch("", lines, key)
	again, _ := w.batch("", []string{lines[2], lines[0], lines[1]}, key)
	for i, j := range []int{1, 2, 0} {
		if first[i].id() == "" || first[i].id() != again[j].id() || first[i].Screening.Status != again[j].Screening.Status {
			t.Errorf("line %d: %+v, sent again: %+v", i+1, first[i].Screening, again[j].Screening)
		}
	}
	if again[0].Status != 200 || again[2].Status != 202 {
		t.Errorf("sent again: %d and %d, want 200 and 202", again[0].Status, again[2].Status)
	}
	if n := w.count("screening"); n != 3 {
		t.Errorf("%d screenings, want 3", n)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("other"), key); a.status != 201 {
		t.Errorf("the same key for one spec: %d %s", a.status, a.body)
	}
	if fresh, _ := w.batch("", lines[:1]); fresh[0].id() == first[0].id() || fresh[0].Status != 201 {
		t.Errorf("without a key: %d, screening %s", fresh[0].Status, fresh[0].id())
	}
}

func TestBatchDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results, end := w.batch("?dry_run=true", []string{oneLine("a"), oneLine("b", personal), `{"run_ref": 1}`})
	if results[0].Preview == nil || !results[0].Preview.DryRun || results[0].Preview.Decision.Outcome != "admit" || results[1].Preview.Decision.Outcome != "escalate" ||
		results[2].Status != 422 || !end.End.Complete {
		t.Errorf("%+v, end %+v", results, end.End)
	}
	if diff := cmp.Diff(map[string]int{"admitted": 1, "pending": 1, "refused": 1}, end.End.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	w.nothingStored("a dry run")
}

func TestBatchRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		name, path, who, body string
		options               []option
		status                int
	}{
		{"no line", "", "bo", "", nil, 422},
		{"another media type", "", "bo", oneLine("a"), []option{header("Content-Type", "application/json")}, 415},
		{"compressed", "", "bo", oneLine("a"), []option{header("Content-Encoding", "gzip")}, 415},
		{"Latin-1", "", "bo", oneLine("a"), []option{header("Content-Type", "application/x-ndjson; charset=latin1")}, 415},
		{"a parameter that is none", "?gate=true", "bo", oneLine("a"), nil, 400},
		{"a bad key", "", "bo", oneLine("a"), []option{header("Idempotency-Key", "")}, 400},
		{"nobody's key", "", "", oneLine("a"), nil, 401},
		{"for nobody declared", "", "ghost", oneLine("a"), nil, 403},
		{"a dry run for nobody declared", "?dry_run=true", "ghost", oneLine("a"), nil, 403},
		{"more bytes than a batch may have", "", "bo", oneLine("a"), []option{func(r *http.Request) { r.ContentLength = 300 << 20 }}, 413},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/screenings/batch"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		ndjson(req)
		if tt.who != "" {
			req.Header.Set("Authorization", "Bearer "+w.key(tt.who, review.ScopeSubmit))
		}
		for _, o := range tt.options {
			o(req)
		}
		a := w.raw(req)
		if a.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, a.status, tt.status, a.body)
		} else {
			checkProblem(t, tt.name, a)
		}
	}
	w.nothingStored("refused batches")
}

// raw writes a request to a connection of its own, with whatever length it
// claims, and reads the answer.
func (w *world) raw(req *http.Request) answer {
	w.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", req.Method, req.URL.RequestURI(), req.ContentLength)
	if err := req.Header.Write(conn); err != nil {
		w.Fatal(err)
	}
	fmt.Fprint(conn, "\r\n")
	if req.Body != nil {
		if _, err := io.Copy(conn, req.Body); err != nil {
			w.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// talk is a batch that is sent line by line.
type talk struct {
	*testing.T
	send *io.PipeWriter
	resp chan *http.Response
	in   *bufio.Reader
	stop context.CancelFunc
}

// talk begins a batch.
func (w *world) talk() *talk {
	w.Helper()
	body, send := io.Pipe()
	ctx, stop := context.WithCancel(w.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/screenings/batch", body)
	if err != nil {
		w.Fatal(err)
	}
	ndjson(req)
	req.Header.Set("Authorization", "Bearer "+w.key("bo", review.ScopeSubmit))
	t := &talk{T: w.T, send: send, resp: make(chan *http.Response, 1), stop: stop}
	go func() {
		resp, err := w.client.Do(req)
		if err != nil {
			_ = send.CloseWithError(err)
		}
		t.resp <- resp
	}()
	w.Cleanup(stop)
	return t
}

func (t *talk) say(text string) {
	t.Helper()
	if _, err := io.WriteString(t.send, text); err != nil {
		t.Fatal(err)
	}
}

// hear reads the next line of the answer.
func (t *talk) hear() (l batchLine) {
	t.Helper()
	if t.in == nil {
		resp := <-t.resp
		if resp == nil || resp.StatusCode != 200 {
			t.Fatalf("no answer: %+v", resp)
		}
		t.in = bufio.NewReader(resp.Body)
	}
	text, err := t.in.ReadString('\n')
	if err != nil || json.Unmarshal([]byte(text), &l) != nil {
		t.Fatalf("no line (%v): %s", err, text)
	}
	return l
}

// The answer to a line comes when it is kept, not when the body ends; and a
// client that takes its time holds one place of few.
func TestBatchAnswersLineByLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.talk(), w.talk()
	for i := range 3 {
		for _, c := range []*talk{first, second} {
			c.say(oneLine(fmt.Sprint("run", i)) + "\n")
			if l := c.hear(); l.Line != i+1 || l.Status/100 != 2 {
				t.Fatalf("%+v", l)
			}
		}
	}
	third := w.do("POST", "/v1/screenings/batch", "bo", []byte(oneLine("a")), ndjson)
	if third.status != 503 || third.text("type") != "urn:weir:problem:busy" || third.header.Get("Retry-After") == "" {
		t.Errorf("beside two others: %d %s", third.status, third.body)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("alone")); a.status != 201 {
		t.Errorf("a spec alone beside two batches: %d %s", a.status, a.body)
	}
	first.send.Close()
	if end := first.hear().End; end == nil || !end.Complete || end.Lines != 3 {
		t.Errorf("end %+v", end)
	}
	w.server.Drain()
	if end := second.hear().End; end == nil || end.Complete || end.Lines != 3 || end.Problem.Type != "urn:weir:problem:not-ready" {
		t.Errorf("end at a stop %+v", end)
	}
}

// A client that goes away in the middle of a line: that line is not screened, and
// the place is free for others.
func TestBatchOfAClientThatGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		c := w.talk()
		c.say(oneLine("a") + "\n")
		if l := c.hear(); l.Status/100 != 2 {
			t.Fatalf("%+v", l)
		}
		c.say(strings.TrimSuffix(oneLine("b"), "}"))
		c.stop()
	}
	for tries := 0; ; tries++ {
		a := w.do("POST", "/v1/screenings/batch", "bo", []byte(oneLine("c")), ndjson)
		if a.status == 200 {
			break
		}
		if a.status != 503 || tries == 100 { // each try waits for a place
			t.Fatalf("after %d tries: %d %s", tries, a.status, a.body)
		}
	}
	for run, want := range map[string]int{"a": 2, "b": 0, "c": 1} {
		var n int
		if err := w.pool.QueryRow(t.Context(), `select count(*) from screening where run_ref = $1`, run).Scan(&n); err != nil || n != want {
			t.Errorf("%d screenings of run %s, want %d (%v)", n, run, want, err)
		}
	}
}

// Who only closes its side of the connection is taken for gone, and told that the
// answer is not whole.
func TestBatchThatBreaksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	whole := oneLine("a") + "\n"
	fmt.Fprintf(conn, "POST /v1/screenings/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		w.key("bo", review.ScopeSubmit), len(whole)+1000, whole)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, `{"run_ref": "half`)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	lines := readBatch(t, resp.Body)
	end := lines[len(lines)-1].End
	if len(lines) != 2 || lines[0].Status != 201 || end == nil || end.Complete || end.Lines != 1 || end.Problem == nil || end.Problem.Type != "urn:weir:problem:body" {
		t.Fatalf("%+v, end %+v", lines, end)
	}
}

func TestBatchOfTooManyLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results, end := w.batch("", strings.Split(strings.Repeat("{}\n", 10_001)+"{}", "\n"))
	if len(results) != 10_000 || end.End.Complete || end.End.Problem == nil || end.End.Problem.Type != "urn:weir:problem:too-large" {
		t.Errorf("%d results, end %+v", len(results), end.End)
	}
}

// failingStore can keep nothing after a number of submissions.
type failingStore struct {
	review.Store
	left *atomic.Int64
}

func (s failingStore) Submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	if s.left.Add(-1) < 0 {
		return review.Kept{}, review.ErrUnavailable
	}
	return s.Store.Submit(ctx, sub)
}

// withStore puts a store in front of the world's.
func withStore(t *testing.T, wrap func(review.Store) review.Store) func(*api.Config, *api.Gate) {
	return func(_ *api.Config, g *api.Gate) {
		desk, err := review.NewDesk(wrap(g.Keys.(review.Store)), g.Desk.Setup(), review.Config{})
		if err != nil {
			t.Fatal(err)
		}
		g.Desk = desk
	}
}

// When the store goes away the batch ends: no line has a 2xx without a row, and
// the last one says that the answer is not whole.
func TestBatchWithoutAStore(t *testing.T) {
	t.Parallel()
	left := &atomic.Int64{}
	left.Store(5)
	w := newWorld(t, withStore(t, func(s review.Store) review.Store { return failingStore{s, left} }))
	var lines []string
	for i := range 200 {
		lines = append(lines, oneLine(fmt.Sprint("run", i)))
	}
	results, end := w.batch("", lines)
	stored := 0
	for _, r := range results {
		switch {
		case r.Status == 201:
			stored++
		case r.Status != 503 || r.Problem.Type != "urn:weir:problem:unavailable" || r.Problem.Detail != "":
			t.Errorf("line %d: %d %+v", r.Line, r.Status, r.Problem)
		}
	}
	if n := w.count("screening"); stored != 5 || n != 5 {
		t.Errorf("%d lines say stored, %d are, want 5", stored, n)
	}
	if end.End.Complete || end.End.Problem == nil || end.End.Problem.Type != "urn:weir:problem:unavailable" || len(results) == len(lines) {
		t.Errorf("%d results, end %+v", len(results), end.End)
	}
}

// meetingStore keeps nothing before several submissions are there at once.
type meetingStore struct {
	review.Store
	waiting *atomic.Int64
	enough  chan struct{}
}

func (s meetingStore) Submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	if s.waiting.Add(1) == 4 {
		close(s.enough)
	}
	select {
	case <-s.enough:
		return s.Store.Submit(ctx, sub)
	case <-ctx.Done():
		return review.Kept{}, review.ErrUnavailable
	}
}

// Lines reach the store side by side, so that it can commit them together.
func TestBatchLinesMeetInTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desk, err := review.NewDesk(meetingStore{w.store, &atomic.Int64{}, make(chan struct{})}, w.gate.Desk.Setup(), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []review.Line
	for i := range 6 {
		lines = append(lines, review.Line{Raw: spec(fmt.Sprint("run", i))})
	}
	done, err := desk.SubmitAll(t.Context(), review.Principal{Project: "default", Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}}, lines)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range done {
		if d.Err != nil || d.Screening.RunRef != fmt.Sprint("run", i) {
			t.Errorf("line %d: %+v", i+1, d)
		}
	}
}

// panickingStore has a fault for one run.
type panickingStore struct{ review.Store }

func (s panickingStore) Submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	if sub.Spec.RunRef == "bad" {
		panic("a fault")
	}
	return s.Store.Submit(ctx, sub)
}

func TestBatchOutlivesAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withStore(t, func(s review.Store) review.Store { return panickingStore{s} }))
	results, end := w.batch("", []string{oneLine("a"), oneLine("bad"), oneLine("b")})
	if results[0].Status != 201 || results[1].Status != 500 || results[2].Status != 201 || !end.End.Complete {
		t.Errorf("%+v, end %+v", results, end.End)
	}
	if results[1].Problem.Detail != "" || results[1].Problem.Type != "urn:weir:problem:internal" {
		t.Errorf("the fault shows: %+v", results[1].Problem)
	}
}
