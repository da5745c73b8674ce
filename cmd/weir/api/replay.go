package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// replayTime bounds the work on a page. What is left is told by next.
const replayTime = time.Second

type replayBody struct {
	Packs  []jsontext.Value `json:"packs" validate:"min=1,max=50"` // a pack, or the id of one in force
	Since  string           `json:"since"`
	Until  string           `json:"until"`
	AsOf   string           `json:"as_of"`
	Limit  int              `json:"limit" validate:"min=0,max=500"`
	Cursor string           `json:"cursor"`
}

// replayAnswer is a page of a replay.
type replayAnswer struct {
	Packs      []screening.PackRef `json:"packs"`
	Unratified bool                `json:"unratified"` // some pack is not in force here
	AuditOnly  bool                `json:"audit_only"` // decided as this gate does, which only audits
	Project    string              `json:"project"`    // of the key
	Engine     string              `json:"engine"`
	Since      time.Time           `json:"since"`
	Until      time.Time           `json:"until"`
	AsOf       string              `json:"as_of"` // stored, or a day
	review.ReplayPage
	Reached time.Time `json:"reached,omitzero"` // everything before is done; absent at the end
	Next    string    `json:"next,omitzero"`
}

// asOfStored: every spec as of the day it was decided.
const asOfStored = "stored"

// replayCursor is the place in a replay together with what it replays, so that
// the pages of one replay cannot be mixed with those of another.
type replayCursor struct {
	At        time.Time           `json:"at"`
	ID        string              `json:"id"`
	Since     time.Time           `json:"since"`
	Until     time.Time           `json:"until"`
	AsOf      screening.Day       `json:"as_of,omitzero"`
	Candidate screening.Digest256 `json:"candidate"`
	Project   string              `json:"project"`
}

func (c replayCursor) text() (string, error) {
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func parseReplayCursor(text string) (*replayCursor, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	var c replayCursor
	if err := screening.Decode("cursor", "", raw, &c); err != nil || !isUUID(c.ID) {
		return nil, false
	}
	return &c, true
}

func replayProblem(pointer, format string, args ...any) error {
	return &screening.InvalidError{What: "replay", Problems: []screening.Problem{{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}}}
}

// replayPacks decides stored specs of the project again by candidate packs and
// keeps nothing. One page is worked on at a time, by one goroutine, for a second
// at most, and it ends early when the gate has more to do: replaying must not
// take from those who wait for a decision.
func (s *Server) replayPacks(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	var b replayBody
	if err := s.check("replay", body, &b); err != nil {
		return err
	}
	place := &slot{from: s.replays, gauge: s.cfg.Metrics.inFlight.WithLabelValues("replaying")}
	if !place.take(c.Request().Context()) {
		return errBusy
	}
	defer place.free()
	start := time.Now()
	desk := gateOf(c).Desk
	v, unratified, err := candidate(body, desk.Setup().Vocabulary)
	if err != nil {
		return err
	}
	q, err := s.replayQuery(c, desk, &b, v)
	if err != nil {
		return err
	}
	q.Enough = func() bool { return time.Since(start) > replayTime || len(s.slots)-1 > cap(s.slots)/2 }
	page, err := desk.Replay(c.Request().Context(), principalOf(c), *q)
	if err != nil {
		return err
	}
	out := replayAnswer{Packs: v.Packs(), Unratified: unratified, AuditOnly: v.Config().AuditOnly, Project: principalOf(c).Project, Engine: screening.EngineVersion, Since: q.Since, Until: q.Until,
		AsOf: asOfStored, ReplayPage: *page}
	if q.AsOf != "" {
		out.AsOf = string(q.AsOf)
	}
	if page.Next != nil {
		digest, err := candidateDigest(v)
		if err != nil {
			return err
		}
		out.Reached = page.Next.At.UTC()
		next := replayCursor{out.Reached, page.Next.ID, q.Since, q.Until, q.AsOf, digest, out.Project}
		if out.Next, err = next.text(); err != nil {
			return err
		}
	}
	return reply(c, http.StatusOK, out)
}

// replayQuery reads window, day and place; what a cursor says need not be repeated.
func (s *Server) replayQuery(c echo.Context, desk *review.Desk, b *replayBody, v *screening.Vocabulary) (*review.ReplayQuery, error) {
	ctx := c.Request().Context()
	now, err := desk.Now(ctx)
	if err != nil {
		return nil, err
	}
	q := &review.ReplayQuery{Candidate: v, Limit: b.Limit}
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	var from *replayCursor
	if b.Cursor != "" {
		ok := false
		if from, ok = parseReplayCursor(b.Cursor); !ok {
			return nil, replayProblem("/cursor", "must be the next of an earlier page")
		}
		if digest, err := candidateDigest(v); err != nil || digest != from.Candidate {
			return nil, replayProblem("/cursor", "belongs to a replay of other packs, or of another engine; start anew without it")
		}
		if from.Project != principalOf(c).Project {
			return nil, replayProblem("/cursor", "belongs to a replay of another project; start anew without it")
		}
		q.Since, q.Until, q.AsOf, q.After = from.Since, from.Until, from.AsOf, &review.Cursor{At: from.At, ID: from.ID}
	}
	var since, until time.Time
	for _, m := range []struct {
		name, text string
		to         *time.Time
		is         time.Time // the cursor's
	}{{"since", b.Since, &since, q.Since}, {"until", b.Until, &until, q.Until}} {
		if m.text == "" {
			continue
		}
		t, ok := review.ParseMoment(m.text)
		if !ok {
			return nil, replayProblem("/"+m.name, "must be a day, written YYYY-MM-DD, or a time, written as in RFC 3339")
		}
		if from != nil && !t.Equal(m.is) {
			return nil, replayProblem("/"+m.name, "is another than the cursor's; leave it out or start anew")
		}
		*m.to = t
	}
	if from == nil && b.Since == "" {
		return nil, replayProblem("/since", "must be given")
	}
	if from == nil {
		if err := q.SetWindow(since, until, now); err != nil {
			return nil, err
		}
	}
	day := q.AsOf
	switch b.AsOf {
	case "":
		return q, nil
	case asOfStored:
		day = ""
	case "today":
		if from == nil { // a replay goes on by the day it began with
			day = screening.Day(now.Format(time.DateOnly))
		}
	default:
		if day, err = screening.ParseDay(b.AsOf); err != nil {
			return nil, replayProblem("/as_of", "must be stored, today, or a day, written YYYY-MM-DD")
		}
	}
	if from != nil && day != q.AsOf {
		return nil, replayProblem("/as_of", "is another than the cursor's; leave it out or start anew")
	}
	q.AsOf = day
	return q, nil
}

// candidate compiles the packs of a request with the floor in force. A pack that
// is not in force here makes it unratified.
func candidate(body []byte, inForce *screening.Vocabulary) (v *screening.Vocabulary, unratified bool, err error) {
	// The packs are taken from the bytes: decoding leaves out notes, which count
	// for a pack's digest.
	var raw struct {
		Packs []jsontext.Value `json:"packs"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, false, replayProblem("", "must be JSON")
	}
	reg := screening.NewRegistry()
	floor, _ := inForce.Pack(screening.FloorID)
	list := []*screening.Pack{floor}
	for i, text := range raw.Packs {
		at := "/packs/" + strconv.Itoa(i)
		var id string
		if json.Unmarshal(text, &id) == nil {
			p, ok := inForce.Pack(id)
			if !ok {
				return nil, false, replayProblem(at, "is not the id of a pack in force here; see GET /v1/packs, or send the pack itself")
			}
			if p != floor { // always there
				list = append(list, p)
			}
			continue
		}
		p, err := screening.LoadPack("", text, reg)
		if err != nil {
			return nil, false, within(at, err)
		}
		if !slices.ContainsFunc(inForce.Packs(), func(r screening.PackRef) bool { return r.ID == p.ID && r.SHA256 == p.SHA256 }) {
			unratified = true
		}
		list = append(list, p)
	}
	cfg := inForce.Config()
	cfg.Unratified = cfg.Unratified || unratified
	if v, err = screening.NewVocabulary(reg, cfg, list...); err != nil {
		return nil, false, replayProblem("/packs", "%v", err)
	}
	return v, cfg.Unratified, nil
}

// within moves the pointers of a refused part to where the part stands.
func within(at string, err error) error {
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	moved := &screening.InvalidError{What: "replay"}
	for _, p := range invalid.Problems {
		moved.Problems = append(moved.Problems, screening.Problem{Pointer: at + p.Pointer, Detail: p.Detail})
	}
	return moved
}

// candidateDigest is the identity of what a replay decides by.
func candidateDigest(v *screening.Vocabulary) (screening.Digest256, error) {
	raw, err := json.Marshal(struct {
		Packs     []screening.PackRef
		AuditOnly bool
		Engine    string
	}{v.Packs(), v.Config().AuditOnly, screening.EngineVersion})
	return screening.Sum(raw), err
}
