package api

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// maxWait bounds a long poll.
const maxWait = time.Minute

// submit screens a spec. 201 decided, 202 escalated, 200 for a dry run or when
// an earlier screening answers; with gate=true the codes of gate/check.
func (s *Server) submit(c echo.Context) error {
	dryRun, err := boolParam(c, "dry_run")
	if err != nil {
		return err
	}
	gate, err := boolParam(c, "gate")
	if err != nil {
		return err
	}
	if dryRun && gate {
		return errDryGate
	}
	key, err := idempotencyKey(c.Request())
	if err != nil {
		return err
	}
	raw, err := s.readBody(c)
	if err != nil {
		return err
	}
	desk, p, ctx := gateOf(c).Desk, principalOf(c), c.Request().Context()
	if dryRun {
		d, err := desk.Preview(ctx, p, raw)
		if err != nil {
			return err
		}
		return reply(c, http.StatusOK, map[string]any{"dry_run": true, "decision": d})
	}
	sc, existing, err := desk.Submit(ctx, p, raw, key)
	if err != nil {
		return err
	}
	if !existing {
		s.cfg.Metrics.decided(sc.Outcome)
	}
	c.Response().Header().Set("Location", "/v1/screenings/"+sc.ID)
	if gate {
		answer, err := desk.AnswerTo(ctx, p, sc, screening.Sum(raw))
		if err != nil {
			return err
		}
		return gateReply(c, answer)
	}
	status := http.StatusCreated
	switch {
	case sc.Status == review.StatusPending:
		status = http.StatusAccepted
		c.Response().Header().Set("Retry-After", strconv.Itoa(pendingRetry))
	case existing:
		status = http.StatusOK
	}
	return reply(c, status, screeningJSON(sc, true))
}

// pendingRetry is how long, in seconds, a client should wait before it asks
// again about something that people decide.
const pendingRetry = 30

// idempotencyKey gives the digest of the client's key, nil when it sent none.
func idempotencyKey(r *http.Request) (*screening.Digest256, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > 255 {
		return nil, errBadHeader
	}
	for _, b := range []byte(values[0]) {
		if b < 0x21 || b > 0x7e {
			return nil, errBadHeader
		}
	}
	sum := screening.Sum([]byte(values[0]))
	return &sum, nil
}

func (s *Server) listScreenings(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	status := review.Status(c.QueryParam("status"))
	switch status {
	case "", review.StatusAdmitted, review.StatusBlocked, review.StatusPending, review.StatusExpired, review.StatusSuperseded, review.StatusWithdrawn:
	default:
		return fmt.Errorf("%w: status must be admitted, blocked, pending, expired, superseded or withdrawn", errBadParam)
	}
	list, err := gateOf(c).Desk.Screenings(c.Request().Context(), principalOf(c),
		review.ListQuery{Status: status, RunRef: c.QueryParam("run_ref"), After: after, Limit: limit})
	if err != nil {
		return err
	}
	out := struct {
		Screenings []wireScreening `json:"screenings"`
		Next       string          `json:"next,omitzero"`
	}{Screenings: make([]wireScreening, len(list))}
	for i, sc := range list {
		out.Screenings[i] = screeningJSON(sc, false)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.CreatedAt, last.ID)
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getScreening(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var wait time.Duration
	if text := c.QueryParam("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > maxWait {
			return fmt.Errorf("%w: wait must be between 0s and %s", errBadParam, maxWait)
		}
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), wait+s.cfg.Timeout)
	defer cancel()
	if wait > 0 {
		// A poll gives its slot to those who work, and takes one of the sleepers'.
		c.Get(slotKey).(*slot).free()
		sleeper := slot{from: s.waiting, gauge: s.cfg.Metrics.inFlight.WithLabelValues("waiting")}
		if !sleeper.take(ctx) {
			return errBusy
		}
		defer sleeper.free()
	}
	sc, err := gateOf(c).Desk.Wait(ctx, principalOf(c), id, wait, s.stopping)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, screeningJSON(sc, true))
}

// getSpec gives the bytes as they were received, byte for byte.
func (s *Server) getSpec(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	raw, err := gateOf(c).Desk.SpecBytes(c.Request().Context(), principalOf(c), id)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="spec"`)
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, raw)
}

// checkGate answers for exactly the bytes sent, or for a digest. 200 only if
// they are admitted now, so that curl -f fails closed.
func (s *Server) checkGate(c echo.Context) error {
	raw, err := s.readBody(c)
	if err != nil {
		return err
	}
	sum := screening.Sum(raw)
	if named, is, err := namedDigest(raw); err != nil {
		return err
	} else if is {
		sum = named
	}
	answer, err := gateOf(c).Desk.Check(c.Request().Context(), principalOf(c), sum)
	if err != nil {
		return err
	}
	return gateReply(c, answer)
}

// namedDigest reads {"spec_sha256": "…"}. No spec has that key, and what has it is short.
func namedDigest(raw []byte) (sum screening.Digest256, is bool, err error) {
	const longest = 256
	if len(raw) > longest || !bytes.Contains(raw, []byte("spec_sha256")) {
		return sum, false, nil
	}
	var named struct {
		SpecSHA256 *screening.Digest256 `json:"spec_sha256"`
	}
	if err := screening.Decode("gate check", "", raw, &named); err != nil {
		return sum, false, err
	}
	if named.SpecSHA256 == nil {
		return sum, false, &screening.InvalidError{What: "gate check", Problems: []screening.Problem{
			{Pointer: "/spec_sha256", Detail: "must be given, or send the bytes of the spec"}}}
	}
	return *named.SpecSHA256, true, nil
}

// closedGate is the gate's answer when training may not start.
type closedGate struct{ answer review.Answer }

func (g *closedGate) Error() string { return "the gate is closed: " + string(g.answer.Status) }

func (g *closedGate) problem() problem {
	p := problem{Type: problemPrefix + "gate-" + string(g.answer.Status), Status: http.StatusConflict,
		Screening: g.answer.Screening.ID, Gate: g.answer.Status}
	switch g.answer.Status {
	case review.StatusBlocked:
		p.Status, p.Title = http.StatusForbidden, "These bytes are blocked"
	case review.StatusPending:
		p.Title, p.Detail = "These bytes wait for review", "Ask again with GET /v1/screenings/"+g.answer.Screening.ID+"?wait=30s"
	case review.StatusExpired:
		p.Title, p.Detail = "The review or the admission of these bytes expired", "Submit them again for a new admission."
	case review.StatusSuperseded:
		p.Title, p.Detail = "Another spec took the place of these bytes", "Check the bytes of screening "+g.answer.Screening.SupersededBy
	default:
		p.Title = "These bytes are not admitted"
	}
	return p
}

func (g *closedGate) retryAfter() int {
	if g.answer.Status == review.StatusPending {
		return pendingRetry
	}
	return 0
}

// openGate is the gate's answer when training may start.
type openGate struct {
	Gate          review.Status            `json:"gate"`
	Screening     string                   `json:"screening"`
	SpecSHA256    screening.Digest256      `json:"spec_sha256"`
	AdmittedUntil time.Time                `json:"admitted_until"`
	SecondsLeft   int                      `json:"seconds_left"`
	Hedge         *screening.InjectedHedge `json:"hedge,omitzero"` // what the disclosure statement has to become
}

// gateReply is 200 for a live admission and nothing else.
func gateReply(c echo.Context, a review.Answer) error {
	if !a.Open() || a.Screening.AdmittedUntil == nil {
		return &closedGate{a}
	}
	// A hedge travels with the admission, also with one that people granted.
	var decision struct {
		Hedge *screening.InjectedHedge `json:"hedge"`
	}
	if err := json.Unmarshal(a.Screening.Decision, &decision); err != nil {
		return err
	}
	return reply(c, http.StatusOK, openGate{Gate: a.Status, Screening: a.Screening.ID, SpecSHA256: a.Screening.SpecSHA256,
		AdmittedUntil: *a.Screening.AdmittedUntil, Hedge: decision.Hedge,
		SecondsLeft: int(math.Max(0, time.Until(*a.Screening.AdmittedUntil).Seconds()))})
}
