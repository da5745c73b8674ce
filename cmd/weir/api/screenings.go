package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
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
	explain, err := boolParam(c, "explain")
	if err != nil {
		return err
	}
	switch {
	case dryRun && gate:
		return errDryGate
	case explain && gate:
		return fmt.Errorf("%w: explain goes with the answer that is a screening, and gate=true gives the gate's", errBadParam)
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
		body, err := preview(ctx, desk, p, raw, explain)
		if err != nil {
			return err
		}
		return reply(c, http.StatusOK, body)
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
	status := submittedStatus(sc, existing)
	if status == http.StatusAccepted {
		c.Response().Header().Set("Retry-After", strconv.Itoa(pendingRetry))
	}
	return replyScreening(c, status, sc, explain)
}

// submittedStatus is 202 while people decide, 200 when an earlier screening
// answers, else 201.
func submittedStatus(sc *review.Screening, existing bool) int {
	switch {
	case sc.Status == review.StatusPending:
		return http.StatusAccepted
	case existing:
		return http.StatusOK
	}
	return http.StatusCreated
}

// wirePreview is the decision of a dry run.
type wirePreview struct {
	DryRun      bool                `json:"dry_run"`
	ReportUntil screening.Day       `json:"report_until,omitzero"`
	Decision    *screening.Decision `json:"decision"`
	Recall      *wireRecallRef      `json:"recall,omitzero"` // that a submission would be blocked by
	Explanation *wireExplanation    `json:"explanation,omitzero"`
}

func preview(ctx context.Context, desk *review.Desk, p review.Principal, raw []byte, explain bool) (*wirePreview, error) {
	d, recall, err := desk.Preview(ctx, p, raw)
	if err != nil {
		return nil, err
	}
	w := &wirePreview{DryRun: true, ReportUntil: desk.Setup().Policies.ReportUntil(p.Project, d.AsOf), Decision: d, Recall: recallRefJSON(recall)}
	if explain {
		x, err := desk.ExplainPreview(raw, d)
		if err != nil {
			return nil, err
		}
		w.Explanation = explanationJSON(x)
	}
	return w, nil
}

// replyScreening answers with a screening and its decision, and with what would
// change it when that was asked for.
func replyScreening(c echo.Context, status int, sc *review.Screening, explain bool) error {
	w := standingJSON(gateOf(c).Desk, sc)
	if explain {
		x, err := gateOf(c).Desk.Explain(c.Request().Context(), principalOf(c), sc)
		switch {
		case errors.Is(err, review.ErrErased):
			w.Explanation = &wireExplanation{Unavailable: "the bytes of the spec and its decisions were erased"}
		case err != nil:
			return err
		default:
			w.Explanation = explanationJSON(x)
		}
	}
	return reply(c, status, w)
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

// screeningList is a page of them.
type screeningList struct {
	Screenings []wireScreening `json:"screenings"`
	Next       string          `json:"next,omitzero"`
}

func (s *Server) listScreenings(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	status := review.Status(c.QueryParam("status"))
	if status != "" && !slices.Contains(review.Statuses(), status) {
		return fmt.Errorf("%w: status must be admitted, blocked, pending, expired, superseded, withdrawn or revoked", errBadParam)
	}
	list, err := gateOf(c).Desk.Screenings(c.Request().Context(), principalOf(c),
		review.ListQuery{Status: status, RunRef: c.QueryParam("run_ref"), After: after, Limit: limit})
	if err != nil {
		return err
	}
	out := screeningList{Screenings: make([]wireScreening, len(list))}
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
	explain, err := boolParam(c, "explain")
	if err != nil {
		return err
	}
	var wait time.Duration
	if text := c.QueryParam("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > maxWait {
			return fmt.Errorf("%w: wait must be between 0s and %s", errBadParam, maxWait)
		}
	}
	if explain && wait > 0 {
		return fmt.Errorf("%w: explain is work and wait is sleep; ask for one after the other", errBadParam)
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
	return replyScreening(c, http.StatusOK, sc, explain)
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

// gateProblem is the gate's answer when training may not start.
func gateProblem(a review.Answer) problem {
	p := problem{Type: problemPrefix + "gate-" + string(a.Status), Status: http.StatusConflict,
		Screening: a.Screening.ID, Gate: a.Status}
	switch a.Status {
	case review.StatusBlocked:
		p.Status, p.Title = http.StatusForbidden, "These bytes are blocked"
	case review.StatusPending:
		p.Title, p.Detail = "These bytes wait for review", "Ask again with GET /v1/screenings/"+a.Screening.ID+"?wait=30s"
	case review.StatusExpired:
		p.Title, p.Detail = "The review or the admission of these bytes expired", "Submit them again for a new admission."
	case review.StatusSuperseded:
		p.Title, p.Detail = "Another spec took the place of these bytes", "Check the bytes of screening "+a.Screening.SupersededBy
	case review.StatusRevoked:
		p.Title, p.Detail = "The admission of these bytes was revoked", "Data that they come from was recalled."
	default:
		p.Title = "These bytes are not admitted"
	}
	if p.Recall = recallRefJSON(a.Screening.Recall); p.Recall != nil && a.Screening.DecidedBy == review.ByRecall {
		p.Detail = "Data that they come from was recalled: " + a.Screening.Recall.Reason
		if p.Recall.LiftedAt != nil {
			p.Detail = "The recall that ended this is lifted. Submit them again."
		}
	}
	if e := a.Screening.Erased; e != nil {
		p.Erased = erasedJSON(e)
		if a.Status == review.StatusAdmitted {
			p.Type, p.Title, p.Detail = problemPrefix+"erased", "The bytes were erased", "Submit them again for a new admission."
		}
	}
	return p
}

func gateRetry(a review.Answer) int {
	if a.Status == review.StatusPending {
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

// reportedGate is the answer in report mode where the gate would be closed. It is
// no admission, and says so.
type reportedGate struct {
	Gate        review.Status       `json:"gate"`
	Would       screening.Outcome   `json:"would"`
	ReportUntil screening.Day       `json:"report_until"`
	Screening   string              `json:"screening"`
	SpecSHA256  screening.Digest256 `json:"spec_sha256"`
}

// gateReply is 200 for a live admission, and in report mode for what the project
// wants to hear of; for nothing else.
func gateReply(c echo.Context, a review.Answer) error {
	if a.Would != 0 {
		would, err := a.Would.MarshalText()
		if err != nil {
			return err
		}
		c.Response().Header().Set("X-Weir-Would", string(would))
		return reply(c, http.StatusOK, reportedGate{Gate: a.Status, Would: a.Would, ReportUntil: a.Until, Screening: a.Screening.ID,
			SpecSHA256: a.Screening.SpecSHA256})
	}
	if !a.Open() || a.Screening.AdmittedUntil == nil {
		return &review.ClosedError{Answer: a}
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

type reasonBody struct {
	Reason string `json:"reason" validate:"required,max=10000"`
}

// withReason does what the submitter's side asks for a screening, with its reason.
func (s *Server) withReason(do func(*review.Desk, context.Context, review.Principal, string, string) (*review.Screening, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c)
		if err != nil {
			return err
		}
		var body reasonBody
		if err := s.decode(c, "request", &body); err != nil {
			return err
		}
		sc, err := do(gateOf(c).Desk, c.Request().Context(), principalOf(c), id, body.Reason)
		if err != nil {
			return err
		}
		return reply(c, http.StatusOK, standingJSON(gateOf(c).Desk, sc))
	}
}

type noteBody struct {
	Note string `json:"note" validate:"required,max=10000"`
}

func (s *Server) answer(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body noteBody
	if err := s.decode(c, "answer", &body); err != nil {
		return err
	}
	sc, err := gateOf(c).Desk.Answer(c.Request().Context(), principalOf(c), id, body.Note)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, standingJSON(gateOf(c).Desk, sc))
}
