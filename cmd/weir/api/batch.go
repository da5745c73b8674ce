package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

const (
	batchMedia    = "application/x-ndjson"
	mostLines     = 10_000
	mostBytes     = 256 << 20
	longestBatch  = 10 * time.Minute
	largestGroup  = 16      // lines worked on at once: what a store commits together
	mostReadAhead = 4 << 20 // bytes of lines that are read and not answered yet
)

// batchMedias are what the same is called elsewhere.
var batchMedias = []string{batchMedia, "application/ndjson", "application/jsonl"}

// batchResult is the answer to one line: what POST /v1/screenings would have
// answered for it alone, with its status.
type batchResult struct {
	Line      int            `json:"line"` // from 1
	Status    int            `json:"status"`
	Screening *wireScreening `json:"screening,omitzero"`
	Preview   *wirePreview   `json:"preview,omitzero"` // with dry_run
	Problem   *problem       `json:"problem,omitzero"`
}

// batchEnd is the last line. Without it, or without complete, the answer is only
// the beginning of one.
type batchEnd struct {
	Complete bool           `json:"complete"`         // every line that was sent is answered above
	Lines    int            `json:"lines"`            // lines that are answered above
	Counts   map[string]int `json:"counts"`           // of them, by status of the screening; refused: a problem instead
	Problem  *problem       `json:"problem,omitzero"` // why it is not complete
}

type batchLast struct {
	End batchEnd `json:"end"`
}

// countRefused counts the lines that have a problem.
const countRefused = "refused"

// submitBatch screens a spec per line and answers a line for each, in order, as
// soon as it is kept. What is wrong with a line is said in its place. The last
// line says whether the answer is whole.
func (s *Server) submitBatch(c echo.Context) error {
	dryRun, err := boolParam(c, "dry_run")
	if err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request())
	if err != nil {
		return err
	}
	if err := checkBatchMedia(c.Request()); err != nil {
		return err
	}
	if c.Request().ContentLength > mostBytes {
		return errBatchSize
	}
	c.Get(slotKey).(*slot).free() // it takes long: its place is among the batches
	place := &slot{from: s.batches, gauge: s.cfg.Metrics.inFlight.WithLabelValues("batching")}
	if !place.take(c.Request().Context()) {
		return errBusy
	}
	defer place.free()
	ctx, cancel := context.WithTimeoutCause(c.Request().Context(), longestBatch, errBatchTime)
	defer cancel()
	b := &batch{s: s, c: c, key: key, dryRun: dryRun, counts: map[string]int{}, control: http.NewResponseController(c.Response())}
	// Without it the server would read the whole body before the first answer.
	if err := b.control.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	lines := readLines(ctx, c.Request().Body, b.control)
	defer lines.close()
	return b.run(ctx, lines)
}

func checkBatchMedia(r *http.Request) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return errBatchMedia
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") ||
		!slices.Contains(batchMedias, media) {
		return errBatchMedia
	}
	return nil
}

// batch is a batch that is being answered.
type batch struct {
	s       *Server
	c       echo.Context
	key     *screening.Digest256
	dryRun  bool
	control *http.ResponseController

	answered int
	counts   map[string]int
}

// run answers group by group until there are no more lines. An error before the
// first answer is an ordinary one; after it, the last line says it.
func (b *batch) run(ctx context.Context, lines *lineReader) error {
	for {
		group, err := lines.group(ctx, b.s.stopping)
		if len(group) > 0 {
			if werr := b.answer(ctx, group); werr != nil {
				err = werr
			}
			lines.done(group)
		}
		switch {
		case errors.As(err, new(*untakenError)):
			return err // nobody is there to be told
		case err == nil && len(group) > 0:
			continue
		case b.answered == 0 && err == nil:
			return &screening.InvalidError{What: "batch", Problems: []screening.Problem{{Detail: "holds no line; send a spec in JSON on each"}}}
		case b.answered == 0:
			return err
		}
		end := batchEnd{Complete: err == nil, Lines: b.answered, Counts: b.counts}
		if err != nil {
			end.Problem = b.problem(err)
		}
		return b.write(batchLast{end})
	}
}

// answer screens a group and writes its results. The error is why the batch
// cannot go on: nothing of the group could be screened or written, or, with its
// results written, the database is away.
func (b *batch) answer(ctx context.Context, group []line) (stop error) {
	results := make([]batchResult, len(group))
	ctx, cancel := context.WithTimeout(ctx, b.s.cfg.Timeout)
	defer cancel()
	screened, stop := b.screen(ctx, group, results)
	if stop != nil {
		return stop
	}
	desk := gateOf(b.c).Desk
	for i, l := range group {
		r := &results[i]
		r.Line = b.answered + 1 + i
		err := l.err
		switch {
		case err != nil || r.Preview != nil:
		case screened[i].Err != nil:
			err = screened[i].Err
		default:
			sc := screened[i].Screening
			if !screened[i].Existing {
				b.s.cfg.Metrics.decided(sc.Outcome)
			}
			w := standingJSON(desk, sc)
			r.Screening, r.Status = &w, submittedStatus(sc, screened[i].Existing)
		}
		if err != nil {
			r.Problem = b.problem(err)
			r.Status = r.Problem.Status
			if r.Status >= 500 {
				b.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "line of a batch", slog.String("request_id", r.Problem.RequestID),
					slog.Int("line", r.Line), slog.String("error", err.Error()))
			}
			if errors.Is(err, review.ErrUnavailable) {
				stop = err // so would be the next ones, each after a wait
			}
		}
	}
	out := make([]any, len(results))
	for i := range results {
		out[i] = &results[i]
	}
	if err := b.write(out...); err != nil {
		return err
	}
	for i := range results {
		b.answered++
		switch r := &results[i]; {
		case r.Problem != nil:
			b.counts[countRefused]++
		case r.Preview != nil:
			b.counts[string(review.StatusOf(r.Preview.Decision.Outcome))]++
		default:
			b.counts[string(r.Screening.Status)]++
		}
	}
	return stop
}

// screen decides what of a group can be read. The error is for all of them.
func (b *batch) screen(ctx context.Context, group []line, results []batchResult) ([]review.Submitted, error) {
	desk, p := gateOf(b.c).Desk, principalOf(b.c)
	screened := make([]review.Submitted, len(group))
	var specs []review.Line
	var at []int
	for i := range group {
		switch l := &group[i]; {
		case l.err != nil:
		case !startsObject(l.raw):
			l.err = &screening.InvalidError{What: "training spec", Syntax: true, Problems: []screening.Problem{
				{Detail: "must be a spec as one JSON object on this line"}}}
		case b.dryRun:
			w, err := preview(ctx, desk, p, l.raw, false)
			if errors.Is(err, review.ErrNotAllowed) {
				return nil, err
			}
			if l.err = err; err == nil {
				results[i].Preview, results[i].Status = w, http.StatusOK
			}
		default:
			specs, at = append(specs, review.Line{Raw: l.raw, Key: lineKey(b.key, l.raw)}), append(at, i)
		}
	}
	if len(specs) == 0 {
		return screened, nil
	}
	done, err := desk.SubmitAll(ctx, p, specs)
	for n, d := range done {
		screened[at[n]] = d
	}
	return screened, err
}

// startsObject: YAML is no line, however short.
func startsObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r"), []byte("{"))
}

// lineKey is the idempotency key of a line: of the client's key and the bytes, so
// that what was not answered may be sent again alone, and in any order. No key of
// a client hashes to the same, as none has a zero byte.
func lineKey(key *screening.Digest256, raw []byte) *screening.Digest256 {
	if key == nil {
		return nil
	}
	spec := screening.Sum(raw)
	sum := screening.Sum(slices.Concat([]byte("batch\x00"), key[:], spec[:]))
	return &sum
}

// problem is what an error would have been answered with.
func (b *batch) problem(err error) *problem {
	p, _ := describe(err)
	p.RequestID = b.c.Response().Header().Get(requestIDHeader)
	return &p
}

// untakenError: the client takes nothing more.
type untakenError struct{ err error }

func (e *untakenError) Error() string { return "the answer was not taken: " + e.err.Error() }
func (e *untakenError) Unwrap() error { return e.err }

// write sends values, a line each, when all of them can be encoded. A client that
// takes nothing for a while is given up; until then nothing more is read from it.
func (b *batch) write(values ...any) error {
	var out bytes.Buffer
	for _, v := range values {
		body, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("%w: %w", errInternal, err)
		}
		out.Write(append(body, '\n'))
	}
	if !b.c.Response().Committed {
		h := b.c.Response().Header()
		h.Set(echo.HeaderContentType, batchMedia)
		h.Set("Cache-Control", "no-store")
		b.c.Response().WriteHeader(http.StatusOK)
	}
	paced := &pacedWriter{w: b.c.Response(), control: b.control}
	if _, err := paced.Write(out.Bytes()); err != nil {
		return &untakenError{err}
	}
	if err := b.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return &untakenError{err}
	}
	return nil
}
