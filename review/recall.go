package review

import (
	"context"
	"fmt"
	"time"

	"weir/screening"
)

// Recall takes data out of use in a project: nothing that names it or comes from
// it is admitted until the recall is lifted.
type Recall struct {
	ID         string
	Project    string
	Data       RecalledData
	Reason     string
	Actor      string
	MadeAt     time.Time
	LiftedAt   *time.Time // nil: in force
	LiftedBy   string
	LiftReason string

	Settled bool // everything that fell under it so far is ended and told
	Revoked int  // admissions that it ended
	Blocked int  // screenings that it blocked
}

// RecalledData is what a recall is about: the digest of an input, or its URI.
type RecalledData struct {
	SHA256 screening.Digest256 // zero: by URI
	URI    string              // as compared, see NormalURI
}

// compared gives the data as it is kept. A name that is or ends with a digest stands
// for that digest: whoever has the bytes under another name is meant too.
func (d RecalledData) compared() RecalledData {
	if d.URI == "" {
		return d
	}
	uri := NormalURI(d.URI)
	p, words, _, ok := digestIn(uri)
	switch {
	case ok && p.Kind() == PointSHA256:
		return RecalledData{SHA256: screening.Digest256(p[1:])}
	case ok:
		return RecalledData{URI: words}
	}
	return RecalledData{URI: uri}
}

// Point is the place of the data in the lineage.
func (d RecalledData) Point() Point {
	if d.URI == "" {
		return SHA256Point(d.SHA256)
	}
	return URIPoint(d.URI)
}

func (d RecalledData) String() string {
	if d.URI == "" {
		return "sha256:" + d.SHA256.String()
	}
	return d.URI
}

// RecallRef is what a screening says of the recall that it falls under.
type RecallRef struct {
	ID       string
	Data     RecalledData
	Reason   string
	MadeAt   time.Time
	LiftedAt *time.Time // nil: in force
}

// recalled is why nothing can be done about a screening; nil without a recall in force.
func (s *Screening) recalled() error {
	if s.Recall == nil || s.Recall.LiftedAt != nil {
		return nil
	}
	return &VoteError{ErrConflict, fmt.Sprintf("data that this comes from was recalled (recall %s); nothing admits it before the recall is lifted", s.Recall.ID)}
}

// Recalls are what a Store does for recalls. Like all of a Store: one project, this
// package's errors.
type Recalls interface {
	// MakeRecall keeps a recall and gives it its id. From then on every status is
	// computed with it. A *VoteError when the data is recalled already.
	MakeRecall(ctx context.Context, r *Recall) error
	// LiftRecall lifts a recall that is settled. ErrNotFound, or a *VoteError.
	LiftRecall(ctx context.Context, project, id, actor, reason string) error
	// Recall reads one. ErrNotFound.
	Recall(ctx context.Context, project, id string) (*Recall, error)
	// Recalls lists the newest first.
	Recalls(ctx context.Context, project string, q RecallQuery) ([]*Recall, error)
	// LiveRecall gives the recall in force that one of the points comes from; nil without one.
	LiveRecall(ctx context.Context, project string, points []Point) (*RecallRef, error)
	// SettleRecalls ends what falls under recalls, in steps, in every project, and
	// returns the screenings that it changed. What is busy is left to the next call.
	SettleRecalls(ctx context.Context) (changed []string, err error)
	// RecallHits lists the screenings that data leads to, the newest first.
	RecallHits(ctx context.Context, r *Recall, after *Cursor, limit int) (*RecallHits, error)
	// Witnesses gives, for names of the lineage, a few kept specs that are likely to write each.
	Witnesses(ctx context.Context, project string, names []Point) (map[Point][][]byte, error)
}

// RecallQuery selects recalls. Zero fields do not restrict.
type RecallQuery struct {
	Live  bool // in force
	After *Cursor
	Limit int
}

// RecallHits is a page of what falls under a recall, or would, if it was lifted.
type RecallHits struct {
	Hits    []RecallHit
	Total   int // of all pages
	Unknown int // specs whose bytes were erased before their lineage was kept
}

// RecallHit is a screening that uses recalled data or comes from it.
type RecallHit struct {
	Screening string
	RunRef    string
	Team      string
	Submitter string
	Owner     string
	CreatedAt time.Time
	Spec      screening.Digest256
	Outcome   screening.Outcome
	Status    Status // now
	ByRecall  bool   // this recall ended it
	// Path leads from the recalled data to what the spec names; one step: the spec
	// names the data itself.
	Path []RecallStep
	// Uses tells that an input of the spec is the data; else it comes from it.
	Uses bool
}

// RecallStep is a name on the way.
type RecallStep struct {
	Point Point
	Words string // as specs write it; "" when every spec that does was erased
}

const recallWhat = "recall"

// settleFor is how long whoever recalls waits for its effects; the rest goes on without them.
const settleFor = 3 * time.Second

// Recall takes data out of use. It holds from the moment it is kept; admissions
// are ended and told right after, and what is not done when this returns goes on in
// the background. Errors: *screening.InvalidError, *VoteError.
func (d *Desk) Recall(ctx context.Context, p Principal, data RecalledData, reason string) (*Recall, error) {
	p, err := d.Setup().declared(p, ScopePolicy)
	if err == nil {
		err = words(recallWhat, "/reason", reason)
	}
	if err == nil {
		err = data.check()
	}
	if err != nil {
		return nil, err
	}
	r := &Recall{Project: p.Project, Data: data.compared(), Reason: reason, Actor: p.Subject}
	if err := d.store.MakeRecall(ctx, r); err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	_ = d.settleRecalls(soon) // kept, and so in force: what is left is told by Settled, and RunExpiry goes on
	return d.store.Recall(ctx, p.Project, r.ID)
}

func (d *RecalledData) check() error {
	switch {
	case d.SHA256.IsZero() == (d.URI == ""):
		return invalid(recallWhat, "/sha256", "give either the sha256 of an input or its uri")
	case d.URI == "":
		return nil
	case screening.IsBlank(d.URI):
		return invalid(recallWhat, "/uri", "must name data, in words that can be read")
	case len(d.URI) > maxText:
		return invalid(recallWhat, "/uri", "is longer than 10,000 bytes")
	case !isText(d.URI):
		return invalid(recallWhat, "/uri", "must be text without a NUL in it")
	}
	return nil
}

// LiftRecall lets data be used again: a person does. What the recall ended stays
// ended; the same bytes can be submitted again. Errors: *screening.InvalidError,
// *VoteError, ErrNotFound.
func (d *Desk) LiftRecall(ctx context.Context, p Principal, id, reason string) (*Recall, error) {
	p, err := d.Setup().person(p, ScopePolicy)
	if err == nil {
		err = words(recallWhat, "/reason", reason)
	}
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	// Whatever is left would come back to life. LiftRecall looks whether something is.
	if err := d.settleRecalls(soon); err != nil && soon.Err() == nil {
		return nil, err
	}
	if err := d.store.LiftRecall(ctx, p.Project, id, p.Subject, reason); err != nil {
		return nil, err
	}
	return d.store.Recall(ctx, p.Project, id)
}

func (p Principal) mayReadRecalls() bool { return p.mayReadAll() || p.May(ScopePolicy) }

// RecallByID reads one.
func (d *Desk) RecallByID(ctx context.Context, p Principal, id string) (*Recall, error) {
	if !p.mayReadRecalls() {
		return nil, ErrNotAllowed
	}
	return d.store.Recall(ctx, p.Project, id)
}

// Recalls lists the newest first.
func (d *Desk) Recalls(ctx context.Context, p Principal, q RecallQuery) ([]*Recall, error) {
	if !p.mayReadRecalls() {
		return nil, ErrNotAllowed
	}
	return d.store.Recalls(ctx, p.Project, q)
}

// RecallReport lists what falls under a recall, and how.
func (d *Desk) RecallReport(ctx context.Context, p Principal, id string, after *Cursor, limit int) (*Recall, *RecallHits, error) {
	r, err := d.RecallByID(ctx, p, id)
	if err != nil {
		return nil, nil, err
	}
	hits, err := d.store.RecallHits(ctx, r, after, limit)
	if err != nil {
		return nil, nil, err
	}
	return r, hits, d.sayPaths(ctx, r, hits)
}

// mostWitnesses bounds the names whose words are looked for in other specs, for one page.
const mostWitnesses = 50

// sayPaths fills in the words of paths, from the specs that write them.
func (d *Desk) sayPaths(ctx context.Context, r *Recall, hits *RecallHits) error {
	said := map[Point]string{r.Data.Point(): r.Data.String()}
	var ask []Point
	for _, h := range hits.Hits {
		for _, step := range h.Path {
			p := step.Point
			if _, known := said[p]; known {
				continue
			}
			said[p] = ""
			if p.Kind() == PointSHA256 {
				said[p] = "sha256:" + screening.Digest256(p[1:]).String()
			} else if len(ask) < mostWitnesses {
				ask = append(ask, p)
			}
		}
	}
	if len(ask) > 0 {
		specs, err := d.store.Witnesses(ctx, r.Project, ask)
		if err != nil {
			return err
		}
		for p, likely := range specs {
			for _, raw := range likely {
				if spec, err := screening.ParseSpec(raw); err == nil && said[p] == "" { // one that is read no more says nothing
					said[p] = NamesOf(spec)[p]
				}
			}
		}
	}
	for i := range hits.Hits {
		for j := range hits.Hits[i].Path {
			step := &hits.Hits[i].Path[j]
			step.Words = said[step.Point]
		}
	}
	return nil
}
