package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// wireScreening is a screening as clients see it.
type wireScreening struct {
	ID              string              `json:"id"`
	Status          review.Status       `json:"status"`
	Outcome         screening.Outcome   `json:"outcome"`
	DecidedBy       review.Decider      `json:"decided_by"`
	RunRef          string              `json:"run_ref"`
	Team            string              `json:"team,omitzero"`
	Submitter       string              `json:"submitter"`
	Owner           string              `json:"owner"`
	OnBehalfOf      string              `json:"on_behalf_of,omitzero"`
	SpecSHA256      screening.Digest256 `json:"spec_sha256"`
	CanonicalSHA256 screening.Digest256 `json:"canonical_sha256"`
	AsOf            screening.Day       `json:"as_of"`
	Engine          string              `json:"engine"`
	CreatedAt       time.Time           `json:"created_at"`
	AdmittedUntil   *time.Time          `json:"admitted_until,omitzero"`
	SupersededBy    string              `json:"superseded_by,omitzero"`
	WaivedUntil     *time.Time          `json:"waived_until,omitzero"`   // waivers admit it until then
	FloorViolated   bool                `json:"floor_violated,omitzero"` // final for these bytes
	ReportUntil     screening.Day       `json:"report_until,omitzero"`   // the project only reported when this was decided
	Would           screening.Outcome   `json:"would,omitzero"`          // it only reports now: the gate passes what it would stop
	Review          *wireReviewRef      `json:"review,omitzero"`
	Decision        jsontext.Value      `json:"decision,omitzero"`
	Erased          *wireErased         `json:"erased,omitzero"` // the bytes of spec and decision are gone
	Recall          *wireRecallRef      `json:"recall,omitzero"` // that it falls under, or that ended it
	Explanation     *wireExplanation    `json:"explanation,omitzero"`
}

// wireErased says when, by whom and why.
type wireErased struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

func erasedJSON(e *review.Erased) *wireErased {
	if e == nil {
		return nil
	}
	return &wireErased{e.At, e.Actor, e.Reason}
}

// wireExplanation stands beside a decision when it is asked for.
type wireExplanation struct {
	*screening.Explanation
	Unavailable string `json:"unavailable,omitzero"`
}

func explanationJSON(x *screening.Explanation) *wireExplanation {
	if x == nil {
		return &wireExplanation{Unavailable: "the packs or the engine in use are not those that decided"}
	}
	return &wireExplanation{Explanation: x}
}

type wireReviewRef struct {
	ID    string       `json:"id"`
	State review.State `json:"state"`
	DueAt time.Time    `json:"due_at"`
}

func screeningJSON(s *review.Screening, withDecision bool) wireScreening {
	w := wireScreening{ID: s.ID, Status: s.Status, Outcome: s.Outcome, DecidedBy: s.DecidedBy, RunRef: s.RunRef, Team: s.Team,
		Submitter: s.Submitter, Owner: s.Owner, OnBehalfOf: s.OnBehalfOf, SpecSHA256: s.SpecSHA256, CanonicalSHA256: s.CanonicalSHA256,
		AsOf: s.AsOf, Engine: s.Engine, CreatedAt: s.CreatedAt, AdmittedUntil: s.AdmittedUntil, SupersededBy: s.SupersededBy,
		WaivedUntil: s.WaivedUntil, FloorViolated: s.FloorViolated, ReportUntil: s.ReportUntil, Erased: erasedJSON(s.Erased),
		Recall: recallRefJSON(s.Recall)}
	if s.Review != nil {
		w.Review = &wireReviewRef{s.Review.ID, s.Review.State, s.Review.DueAt}
	}
	if withDecision {
		w.Decision = jsontext.Value(s.Decision)
	}
	return w
}

// standingJSON is a screening with what report mode makes of it now.
func standingJSON(desk *review.Desk, s *review.Screening) wireScreening {
	w := screeningJSON(s, true)
	if a := desk.Standing(s); a.Would != 0 {
		w.Would, w.ReportUntil = a.Would, a.Until
	}
	return w
}

// wireReview is a review as clients see it.
type wireReview struct {
	ID        string         `json:"id"`
	Kind      review.Kind    `json:"kind"`
	Origin    string         `json:"origin,omitzero"`
	State     review.State   `json:"state"`
	Outcome   review.Choice  `json:"outcome,omitzero"`
	Version   int            `json:"version"`
	OpenedAt  time.Time      `json:"opened_at"`
	DueAt     time.Time      `json:"due_at"`
	ExpiresAt *time.Time     `json:"expires_at,omitzero"`
	ClosedAt  *time.Time     `json:"closed_at,omitzero"`
	Panels    []wirePanel    `json:"panels"`
	Notes     []wireNote     `json:"notes"`
	Waived    []wireWaived   `json:"waived,omitempty"`
	Screening *wireScreening `json:"screening,omitzero"`
}

type wirePanel struct {
	Panel        int        `json:"panel"`
	Policy       string     `json:"policy"`
	Group        string     `json:"group"`
	Quorum       int        `json:"quorum"`
	Terms        []string   `json:"terms"`
	Begun        bool       `json:"begun"` // false: a later tier, whose turn has not come
	DueAt        *time.Time `json:"due_at,omitzero"`
	Then         string     `json:"then,omitzero"` // the policy that takes over when it is due
	PassedAt     *time.Time `json:"passed_at,omitzero"`
	AnsweredAt   *time.Time `json:"answered_at,omitzero"`
	ClaimedBy    string     `json:"claimed_by,omitzero"`
	ClaimedUntil *time.Time `json:"claimed_until,omitzero"`
	Votes        []wireVote `json:"votes"`
}

type wireVote struct {
	Person string        `json:"person"`
	Vote   review.Choice `json:"vote"`
	Reason string        `json:"reason"`
	Terms  []string      `json:"terms"`
	Facts  []review.Fact `json:"facts,omitempty"`
	CastAt time.Time     `json:"cast_at"`
	Origin string        `json:"origin,omitzero"` // the review it was carried over from
}

type wireNote struct {
	Kind   review.NoteKind `json:"kind"`
	Person string          `json:"person"`
	Text   string          `json:"text"`
	At     time.Time       `json:"at"`
}

type wireWaived struct {
	Term  string    `json:"term"`
	Until time.Time `json:"until"`
}

func reviewJSON(r *review.Review, withDecision bool) wireReview {
	w := wireReview{ID: r.ID, Kind: r.Kind, Origin: r.Origin, State: r.State, Outcome: r.Outcome, Version: r.Version, OpenedAt: r.OpenedAt,
		DueAt: r.DueAt, ExpiresAt: r.ExpiresAt, ClosedAt: r.ClosedAt, Panels: make([]wirePanel, len(r.Panels)), Notes: make([]wireNote, len(r.Notes))}
	for i, p := range r.Panels {
		w.Panels[i] = wirePanel{Panel: p.Number, Policy: p.Policy, Group: p.Group, Quorum: p.Quorum, Terms: p.Terms, Begun: p.DueAt != nil,
			DueAt: p.DueAt, PassedAt: p.PassedAt, AnsweredAt: p.AnsweredAt, ClaimedBy: p.ClaimedBy, ClaimedUntil: p.ClaimedUntil,
			Votes: make([]wireVote, len(p.Votes))}
		for _, next := range r.Panels {
			if next.Number == p.Next {
				w.Panels[i].Then = next.Policy
			}
		}
		for j, v := range p.Votes {
			w.Panels[i].Votes[j] = wireVote{v.Person, v.Choice, v.Reason, v.Terms, v.Facts, v.CastAt, v.Origin}
		}
	}
	for i, n := range r.Notes {
		w.Notes[i] = wireNote{n.Kind, n.Person, n.Text, n.At}
	}
	for _, f := range r.Waived {
		w.Waived = append(w.Waived, wireWaived{f.Term, f.Until})
	}
	sc := screeningJSON(r.Screening, withDecision)
	w.Screening = &sc
	return w
}

// reply encodes before it writes, so that an error cannot follow a 2xx.
func reply(c echo.Context, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.Blob(status, echo.MIMEApplicationJSON, append(body, '\n'))
}

// bodyMedias are the media types of bodies that are one document.
var bodyMedias = []string{echo.MIMEApplicationJSON, "application/yaml", "application/x-yaml", "text/yaml"}

// readBody takes the raw bytes of a request: they are hashed and kept as they are.
func (s *Server) readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, errMediaType
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, errMediaType
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, errMediaType
	}
	if !slices.Contains(bodyMedias, media) {
		return nil, errMediaType
	}
	// A client that dribbles must not keep its slot until the connection's own limit.
	// The error says that there is no connection, and so no client.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(s.cfg.Timeout))
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, screening.MaxDocumentBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlowBody
	case err != nil:
		return nil, errReadBody
	}
	return body, nil
}

// decodeIfAny is decode for a body that may be left out.
func (s *Server) decodeIfAny(c echo.Context, what string, v any) error {
	if c.Request().ContentLength == 0 {
		return nil
	}
	return s.decode(c, what, v)
}

// decode reads a small JSON body strictly and checks its validate tags.
func (s *Server) decode(c echo.Context, what string, v any) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	return s.check(what, body, v)
}

// check is decode for a body that was read.
func (s *Server) check(what string, body []byte, v any) error {
	if err := screening.Decode(what, "", body, v); err != nil {
		return err
	}
	var found validator.ValidationErrors
	if err := s.validate.Struct(v); errors.As(err, &found) {
		invalid := &screening.InvalidError{What: what}
		for _, f := range found {
			_, path, _ := strings.Cut(f.Namespace(), ".")
			invalid.Problems = append(invalid.Problems, screening.Problem{
				Pointer: "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path), Detail: ruleWords(f)})
		}
		return invalid
	} else if err != nil {
		return err
	}
	return nil
}

func ruleWords(f validator.FieldError) string {
	switch f.Tag() {
	case "required":
		return "must be given"
	case "oneof":
		return "must be one of " + strings.ReplaceAll(f.Param(), " ", ", ")
	case "min":
		return "must be at least " + f.Param()
	case "max":
		return "must be at most " + f.Param()
	}
	return "is not valid"
}

// newValidator names fields as the wire does.
func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	return v
}

const (
	defaultPage = 50
	maxPage     = 500
)

// page reads limit and cursor of a list whose ids are UUIDs.
func page(c echo.Context) (limit int, after *review.Cursor, err error) {
	return pageOf(c, isUUID)
}

// pageOf reads limit and cursor; valid tells an id of the list.
func pageOf(c echo.Context, valid func(id string) bool) (limit int, after *review.Cursor, err error) {
	limit = defaultPage
	if text := c.QueryParam("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return 0, nil, fmt.Errorf("%w: limit must be between 1 and %d", errBadParam, maxPage)
		}
	}
	text := c.QueryParam("cursor")
	if text == "" {
		return limit, nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	if err == nil && ok && valid(id) {
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
			return limit, &review.Cursor{At: t, ID: id}, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: cursor must be the next of an earlier page", errBadParam)
}

func cursor(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + id))
}

// pathID reads the id of the path. What is no id names nothing.
func pathID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !isUUID(id) {
		return "", review.ErrNotFound
	}
	return id, nil
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i] | 0x20; i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
				return false
			}
		}
	}
	return true
}

func boolParam(c echo.Context, name string) (bool, error) {
	if !c.QueryParams().Has(name) {
		return false, nil
	}
	switch c.QueryParam(name) {
	case "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fmt.Errorf("%w: %s must be true or false", errBadParam, name) // also when it is empty: a variable was not set
}
