package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/screening"
)

// SpecReader reads what was screened, to decide it again.
type SpecReader interface {
	// Now is the database's time.
	Now(ctx context.Context) (time.Time, error)
	// StoredSpecs reads at most q.Limit screenings, oldest first. next is nil when
	// there are no more.
	StoredSpecs(ctx context.Context, project string, q StoredQuery) (list []StoredSpec, next *Cursor, err error)
}

// StoredQuery selects screenings by when they were made.
type StoredQuery struct {
	Since, Until time.Time // from, and before
	After        *Cursor
	Limit        int
}

// StoredSpec is a screening as far as a replay needs it.
type StoredSpec struct {
	At         Cursor // its id and when it was made
	Erased     bool   // the bytes are gone: Raw is nil
	Superseded bool   // a later screening of the same bytes is in the window; nothing below Raw is set
	RunRef     string
	SpecSHA256 screening.Digest256
	AsOf       screening.Day
	Engine     string
	Outcome    screening.Outcome
	Raw        []byte
	Effects    map[string]Effect // by tagged term, of the findings that led to something
}

// Effect is what a finding led to.
type Effect struct {
	Effect  screening.Response `json:"effect"`
	Finding screening.State    `json:"finding"`
}

// ReplayQuery says which specs are decided again, and how.
type ReplayQuery struct {
	Candidate *screening.Vocabulary
	Since     time.Time
	Until     time.Time     // see SetWindow
	AsOf      screening.Day // "": each spec as of the day it was decided, so that only the packs differ
	After     *Cursor
	Limit     int         // of specs in a page
	Enough    func() bool // asked after each spec whether to end the page early; nil: never
}

// settled is how long after its time a screening may still come to be seen: the
// time is that of its transaction's beginning, and no transaction takes longer.
const settled = time.Minute

// SetWindow selects the screenings from since to until, or to now if that is zero.
// It ends the window where nothing can come in any more, a minute before now, the
// database's time: all pages of a replay, and replays of one window, see the same
// screenings. The error is a [screening.InvalidError] with the pointer /since or
// /until: such a window holds nothing, and nothing found in it would mean nothing.
func (q *ReplayQuery) SetWindow(since, until, now time.Time) error {
	problem := func(pointer, detail string) error {
		return &screening.InvalidError{What: "replay", Problems: []screening.Problem{{Pointer: pointer, Detail: detail}}}
	}
	if since.After(now) {
		return problem("/since", "is in the future; nothing was screened then")
	}
	if !until.IsZero() && !since.Before(until) {
		return problem("/until", "must be after since")
	}
	last := now.Add(-settled)
	if until.IsZero() || until.After(last) {
		until = last
	}
	if until.Before(since) { // since lies in the last minute
		until = since
	}
	q.Since, q.Until = since, until
	return nil
}

// ParseMoment reads a UTC day, which is its beginning, or a time of RFC 3339, to
// the microsecond as the database has it.
func ParseMoment(text string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	t = t.UTC().Truncate(time.Microsecond)
	return t, err == nil && t.Year() > 0 && t.Year() < 10000
}

// Replayed is a spec that comes out otherwise.
type Replayed struct {
	ScreeningID string              `json:"screening_id"`
	RunRef      string              `json:"run_ref"`
	SpecSHA256  screening.Digest256 `json:"spec_sha256"`
	AsOf        screening.Day       `json:"as_of"`           // day it was decided by now
	Engine      string              `json:"engine,omitzero"` // that decided then, where it is not this one
	Then        screening.Outcome   `json:"then"`            // what the packs said, whatever people said afterwards
	Now         ReplayOutcome       `json:"now"`
	Changes     []EffectChange      `json:"changes"`           // by term
	Refused     []screening.Problem `json:"refused,omitempty"` // why it is no valid spec under the rules of now
}

// Differs reports whether the outcome is another one, not only its causes.
func (r *Replayed) Differs() bool { return string(r.Now) != r.Then.String() }

// ReplayOutcome is an outcome, or refused: the spec would not even be screened.
type ReplayOutcome string

// ReplayRefused: the rules of now refuse the spec as invalid. Nothing would be
// admitted, and nobody would be asked.
const ReplayRefused ReplayOutcome = "refused"

// EffectChange is a term whose effect is another one, or no_policy_matched. Then
// or Now is nil where the term had no effect, or only observed.
type EffectChange struct {
	Term string  `json:"term"`
	Then *Effect `json:"then,omitzero"`
	Now  *Effect `json:"now,omitzero"`
}

// NoPolicyMatched stands for a term where an escalation had none.
const NoPolicyMatched = "no_policy_matched"

// ReplayTotal counts specs by what they came to and come to.
type ReplayTotal struct {
	Then  screening.Outcome `json:"then"`
	Now   ReplayOutcome     `json:"now"`
	Specs int               `json:"specs"`
}

// ReplayPage is the answer for a number of specs. Pages add up.
type ReplayPage struct {
	Replayed      int           `json:"replayed"`
	Erased        int           `json:"erased,omitzero"` // specs whose bytes are gone, so that nothing can be decided again
	Totals        []ReplayTotal `json:"totals"`
	OtherFindings int           `json:"other_findings"` // same outcome, for other reasons
	OtherEngine   int           `json:"other_engine"`   // decided then by another engine: a difference may be the engine's
	Differences   []Replayed    `json:"differences"`    // in another outcome or in the findings, oldest first
	Next          *Cursor       `json:"-"`              // nil at the end
}

// Replay decides stored specs of the caller's project again. It keeps nothing.
func (d *Desk) Replay(ctx context.Context, p Principal, q ReplayQuery) (*ReplayPage, error) {
	if !p.May(ScopeAudit) && !p.May(ScopePolicy) {
		return nil, ErrNotAllowed
	}
	return Replay(ctx, d.store, p.Project, q)
}

// Now is the time by which a replay's window is set.
func (d *Desk) Now(ctx context.Context) (time.Time, error) { return d.store.Now(ctx) }

// Replay decides stored specs of a project again by the candidate vocabulary: of
// every spec its latest screening in the window, which is the one that answers.
// It reads a few specs at a time and holds no transaction while it decides.
func Replay(ctx context.Context, specs SpecReader, project string, q ReplayQuery) (*ReplayPage, error) {
	const slice = 16 // of up to 1 MiB each
	page := &ReplayPage{Differences: []Replayed{}, Totals: []ReplayTotal{}}
	for after := q.After; ; {
		list, next, err := specs.StoredSpecs(ctx, project, StoredQuery{Since: q.Since, Until: q.Until, After: after, Limit: slice})
		if err != nil {
			return nil, err
		}
		for i := range list {
			s := &list[i]
			if s.Superseded {
				continue
			}
			if s.Erased {
				page.Erased++
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if err := page.replay(s, q); err != nil {
				return nil, err
			}
			if page.Replayed >= q.Limit || q.enough() {
				page.Next = &s.At
				return page, nil
			}
		}
		if next == nil {
			return page, nil
		}
		if after = next; q.enough() {
			page.Next = after
			return page, nil
		}
	}
}

func (q *ReplayQuery) enough() bool { return q.Enough != nil && q.Enough() }

// replay decides one spec again and counts it.
func (page *ReplayPage) replay(s *StoredSpec, q ReplayQuery) error {
	r, err := replayOne(s, q.Candidate, q.AsOf)
	if err != nil {
		return err
	}
	page.Replayed++
	page.AddTotal(ReplayTotal{Then: r.Then, Now: r.Now, Specs: 1})
	if r.Engine != "" {
		page.OtherEngine++
	}
	if !r.Differs() && len(r.Changes) > 0 {
		page.OtherFindings++
	}
	if r.Differs() || len(r.Changes) > 0 {
		page.Differences = append(page.Differences, r)
	}
	return nil
}

// AddTotal counts, and keeps the totals in the order of outcomes.
func (page *ReplayPage) AddTotal(t ReplayTotal) {
	i, found := slices.BinarySearchFunc(page.Totals, t, func(a, b ReplayTotal) int {
		return cmp.Or(cmp.Compare(a.Then, b.Then), cmp.Compare(a.Now.rank(), b.Now.rank()))
	})
	if !found {
		page.Totals = slices.Insert(page.Totals, i, ReplayTotal{Then: t.Then, Now: t.Now})
	}
	page.Totals[i].Specs += t.Specs
}

func (o ReplayOutcome) rank() int {
	return slices.Index([]ReplayOutcome{"admit", "escalate", "block", ReplayRefused}, o)
}

// replayOne compares what a spec came to with what it comes to by v.
func replayOne(s *StoredSpec, v *screening.Vocabulary, asOf screening.Day) (Replayed, error) {
	r := Replayed{ScreeningID: s.At.ID, RunRef: s.RunRef, SpecSHA256: s.SpecSHA256, AsOf: cmp.Or(asOf, s.AsOf), Then: s.Outcome,
		Changes: []EffectChange{}}
	if s.Engine != screening.EngineVersion {
		r.Engine = s.Engine
	}
	was := deciding(s.Effects, s.Outcome)
	outcome, d, err := decideAgain(s, was, v, r.AsOf)
	var invalid *screening.InvalidError
	if errors.As(err, &invalid) {
		r.Now, r.Refused = ReplayRefused, invalid.Problems
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("screening %s: %w", s.At.ID, err)
	}
	if r.Now = ReplayOutcome(outcome.String()); d == nil {
		return r, nil
	}
	now := map[string]Effect{}
	for _, e := range d.Effects() {
		f, _ := d.Finding(e.Term)
		now[e.Term] = Effect{e.Effect, f.State}
	}
	r.Changes = changedEffects(was, deciding(now, d.Outcome))
	return r, nil
}

// decideAgain gives the outcome, and the decision unless it is known that no
// effect can be another: an admit then and now without anything to hedge.
func decideAgain(s *StoredSpec, was map[string]Effect, v *screening.Vocabulary, asOf screening.Day) (screening.Outcome, *screening.Decision, error) {
	spec, err := screening.ParseSpec(s.Raw)
	if err != nil {
		return 0, nil, err
	}
	outcome, err := screening.Decide(spec, v, asOf)
	if err != nil {
		return 0, nil, err
	}
	if outcome == screening.OutcomeAdmit && s.Outcome == outcome && len(was) == 0 && !v.HedgesOn(asOf) {
		return outcome, nil, nil
	}
	d, err := screening.Classify(spec, v, asOf)
	return outcome, d, err
}

// deciding leaves out what only observes, and names what an escalation without
// an escalating finding came from.
func deciding(all map[string]Effect, outcome screening.Outcome) map[string]Effect {
	out, worst := map[string]Effect{}, screening.Observe
	for term, e := range all {
		if e.Effect > screening.Observe {
			out[term] = e
		}
		worst = max(worst, e.Effect)
	}
	if outcome == screening.OutcomeEscalate && worst < screening.Escalate {
		out[NoPolicyMatched] = Effect{screening.Escalate, screening.NotCheckable}
	}
	return out
}

// changedEffects lists the terms gained, lost, and with another response, by term.
// The same response for another finding is no change.
func changedEffects(then, now map[string]Effect) []EffectChange {
	changes := []EffectChange{}
	terms := slices.Concat(slices.Collect(maps.Keys(then)), slices.Collect(maps.Keys(now)))
	slices.Sort(terms)
	for _, term := range slices.Compact(terms) {
		was, had := then[term]
		is, has := now[term]
		if was.Effect == is.Effect {
			continue
		}
		c := EffectChange{Term: term}
		if had {
			c.Then = &was
		}
		if has {
			c.Now = &is
		}
		changes = append(changes, c)
	}
	return changes
}
