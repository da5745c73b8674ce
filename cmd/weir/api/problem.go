package api

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
	"weir/store/ledger"
	"weir/webhooks"
)

// problem is the body of every error: RFC 9457.
type problem struct {
	Type      string              `json:"type"` // stable per row of problemTable
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail,omitzero"`
	RequestID string              `json:"request_id"`
	Errors    []screening.Problem `json:"errors,omitempty"`
	// Screening and Gate come with the gate's own refusals.
	Screening string        `json:"screening,omitzero"`
	Gate      review.Status `json:"gate,omitzero"`
	Review    *wireReview   `json:"review,omitzero"`
	Erased    *wireErased   `json:"erased,omitzero"`
	// Recall is the one that the screening falls under, or that ended it.
	Recall *wireRecallRef `json:"recall,omitzero"`
}

var (
	errNotReady     = errors.New("the gate is not ready; nothing was checked")
	errBusy         = errors.New("too many requests at once")
	errTooFast      = errors.New("this person or service sends more requests than the gate allows to one; slow down, or ask whoever runs it for --rate-limit")
	errInternal     = errors.New("internal error")
	errNoKey        = errors.New("the request carries no API key or token; send Authorization: Bearer …")
	errMediaType    = errors.New("send application/json or application/yaml in UTF-8, without a content encoding")
	errTooLarge     = errors.New("the body is larger than 1 MiB")
	errReadBody     = errors.New("the body ended early")
	errBatchMedia   = errors.New("send application/x-ndjson in UTF-8, one spec in JSON a line, without a content encoding")
	errLongLine     = errors.New("the line is larger than 1 MiB")
	errBatchSize    = errors.New("the batch has more than 10,000 lines or 256 MiB; send the rest in another one")
	errBatchTime    = errors.New("the batch took longer than 10 minutes; send what was not answered in another one")
	errSlowBody     = errors.New("the body took too long to arrive")
	errDryGate      = errors.New("dry_run stores nothing, so there is nothing that could open the gate; leave one of the two out")
	errBadParam     = errors.New("a query parameter is not valid")
	errNoSigningKey = errors.New("this gate has no signing key, so nothing can be given out that others could check; start it with --signing-key")
	errNotInLog     = errors.New("the event is not in the signed log yet; ask again in a moment")
	errBadHeader    = errors.New("Idempotency-Key must be 1 to 255 visible ASCII characters")
	retryLater      = map[error]int{errNotReady: 2, errTooFast: 1, errNotInLog: 1, review.ErrUnavailable: 2, review.ErrInFlight: 1,
		review.ErrIssuerAway: 10}
	problemPrefix = "urn:weir:problem:"
)

// problemTable maps errors to answers, first match first. An error that is not
// in it is the server's fault: its text stays here.
var problemTable = []struct {
	err    error
	status int
	name   string
	title  string
}{
	{errNotReady, http.StatusServiceUnavailable, "not-ready", "The gate is not ready"},
	{errBusy, http.StatusServiceUnavailable, "busy", "The gate is busy"},
	{errTooFast, http.StatusTooManyRequests, "too-fast", "Too many requests of one caller"},
	{review.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", "The store is unavailable; nothing is known"},
	{review.ErrIssuerAway, http.StatusServiceUnavailable, "issuer-away", "The keys of the token's issuer cannot be fetched; nothing is known"},
	{errNoKey, http.StatusUnauthorized, "unauthenticated", "An API key or token is needed"},
	{review.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated", "The API key or token is not valid"},
	{review.ErrNotAllowed, http.StatusForbidden, "not-allowed", "Not allowed"},
	{review.ErrNotFound, http.StatusNotFound, "not-found", "Not found"},
	{review.ErrKeyReused, http.StatusUnprocessableEntity, "idempotency-key-reused", "The idempotency key was used with another body"},
	{review.ErrInFlight, http.StatusConflict, "in-flight", "The same submission is in flight"},
	{review.ErrRunRefTaken, http.StatusConflict, "run-ref-taken", "The run_ref is taken"},
	{review.ErrReviewExpired, http.StatusConflict, "review-expired", "The review expired"},
	{review.ErrFloor, http.StatusConflict, "floor", "The safety floor is final"},
	{review.ErrErased, http.StatusGone, "erased", "The bytes were erased"},
	{review.ErrConflict, http.StatusConflict, "conflict", "The review changed"},
	{webhooks.ErrUnderWay, http.StatusConflict, "under-way", "An attempt is under way"},
	{webhooks.ErrDisabled, http.StatusConflict, "endpoint-disabled", "The endpoint is disabled"},
	{errMediaType, http.StatusUnsupportedMediaType, "media-type", "Unsupported media type"},
	{errBatchMedia, http.StatusUnsupportedMediaType, "media-type", "Unsupported media type"},
	{errBatchSize, http.StatusRequestEntityTooLarge, "too-large", "The batch is too large"},
	{errBatchTime, http.StatusRequestTimeout, "slow-body", "The batch took too long"},
	{errLongLine, http.StatusRequestEntityTooLarge, "too-large", "The line is too large"},
	{errTooLarge, http.StatusRequestEntityTooLarge, "too-large", "The body is too large"},
	{errReadBody, http.StatusBadRequest, "body", "The body could not be read"},
	{errSlowBody, http.StatusRequestTimeout, "slow-body", "The body took too long"},
	{errDryGate, http.StatusUnprocessableEntity, "dry-run-gate", "dry_run and gate exclude each other"},
	{errBadParam, http.StatusBadRequest, "parameter", "Invalid parameter"},
	{ledger.ErrNothingToExport, http.StatusNotFound, "nothing-to-export", "Nothing to export"},
	{errNoSigningKey, http.StatusConflict, "no-signing-key", "The gate has no signing key"},
	{errNotInLog, http.StatusServiceUnavailable, "not-in-log", "Not in the signed log yet"},
	{errBadHeader, http.StatusBadRequest, "header", "Invalid header"},
}

// describe turns any error into its problem.
func describe(err error) (p problem, retryAfter int) {
	var invalid *screening.InvalidError
	var http4xx *echo.HTTPError
	var closed *review.ClosedError
	if erased := (*review.ErasedError)(nil); errors.As(err, &erased) {
		defer func() { p.Erased = erasedJSON(&erased.Erased) }()
	}
	switch {
	case errors.As(err, &closed):
		return gateProblem(closed.Answer), gateRetry(closed.Answer)
	case errors.As(err, &invalid):
		p = problem{Type: problemPrefix + "invalid", Title: "The " + invalid.What + " is not valid",
			Status: http.StatusUnprocessableEntity, Errors: invalid.Problems}
		switch {
		case invalid.TooLarge:
			p.Status = http.StatusRequestEntityTooLarge
		case invalid.Syntax:
			p.Status = http.StatusBadRequest
		}
		return p, 0
	}
	for _, row := range problemTable {
		if errors.Is(err, row.err) {
			p = problem{Type: problemPrefix + row.name, Title: row.title, Status: row.status}
			switch {
			case row.status == http.StatusUnauthorized:
				p.Detail = row.err.Error() // what is wrong with a key or token is not told
			case row.status < 500:
				p.Detail = err.Error()
			}
			if row.err == errBusy { //nolint:errorlint // a row of the table
				return p, 1 + rand.IntN(3) // or all that were refused together would come together again
			}
			return p, retryLater[row.err]
		}
	}
	if errors.As(err, &http4xx) && http4xx.Code < 500 {
		return problem{Type: problemPrefix + "http", Title: http.StatusText(http4xx.Code), Status: http4xx.Code}, 0
	}
	return problem{Type: problemPrefix + "internal", Title: "Internal error", Status: http.StatusInternalServerError}, 0
}

// writeError is the only place that turns an error into an answer.
func (s *Server) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p, retryAfter := describe(err)
	p.RequestID = c.Response().Header().Get(requestIDHeader)
	if retryAfter > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
	body, err := json.Marshal(p)
	if err != nil { // cannot be: the struct has no value that does not marshal
		body = []byte(`{"title":"Internal error","status":500}`)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	if err := c.Blob(p.Status, problemMedia, append(body, '\n')); err != nil {
		s.cfg.Log.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}
