package review

import (
	"context"
	"time"
)

// QueueView is a way to look at the reviews of a project.
type QueueView string

const (
	QueueMine    QueueView = "mine"    // open, and the caller can still vote on it; the most urgent first
	QueueOpen    QueueView = "open"    // open; the most urgent first
	QueueOverdue QueueView = "overdue" // not answered in time; the latest opened first
	QueueClosed  QueueView = "closed"  // ended in whatever way; the latest opened first
)

// QueueViews lists every view.
var QueueViews = []QueueView{QueueMine, QueueOpen, QueueOverdue, QueueClosed}

// Newest reports whether the view is ordered by the time of opening, the latest
// first; the others are ordered by due time.
func (v QueueView) Newest() bool { return v == QueueOverdue || v == QueueClosed }

// QueueQuery selects rows of the queue. Zero fields do not restrict.
type QueueQuery struct {
	View     QueueView
	Groups   []string // some panel belongs to one of them
	Term     string   // a causing finding is of it, by tagged id
	Severity string   // a causing finding is of it
	Team     string
	Person   string // with QueueMine: has no part in the run and has not voted. Set by Desk.Queue.
	After    *Cursor
	Limit    int
}

// QueueItem is what a list shows of a review: no decision, no spec.
type QueueItem struct {
	ID          string
	ScreeningID string
	RunRef      string
	Team        string
	Submitter   string
	Owner       string
	State       State // as of Now
	Outcome     Choice
	OpenedAt    time.Time
	DueAt       time.Time
	ClosedAt    *time.Time
	Now         time.Time // the database's time when it was read
	Severity    string    // the worst of the causing findings, "" without any
	Terms       []string  // of the causing findings, the worst first; at most MostQueueTerms
	TermCount   int       // of all of them
	Groups      []string  // of the panels
	Voted       int       // persons who voted
}

// MostQueueTerms bounds the terms that a row of the queue names.
const MostQueueTerms = 3

// Age is how long the review was open, or is so far.
func (q *QueueItem) Age() time.Duration {
	if q.ClosedAt != nil {
		return q.ClosedAt.Sub(q.OpenedAt)
	}
	return q.Now.Sub(q.OpenedAt)
}

// Queue lists reviews for somebody who looks for work. Errors: ErrNotAllowed and the Store's.
func (d *Desk) Queue(ctx context.Context, p Principal, q QueueQuery) ([]*QueueItem, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	if q.View == QueueMine {
		q.Person = d.subject(p)
		mine := d.Setup().People.GroupsOf(q.Person)
		if len(mine) == 0 {
			return nil, nil // in no group: nothing waits for them
		}
		if len(q.Groups) == 0 {
			q.Groups = mine
		}
	}
	return d.store.Queue(ctx, p.Project, q)
}
