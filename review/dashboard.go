package review

import (
	"context"
	"time"

	"weir/screening"
)

// Dashboard is how a project's screening goes. Times are the database's.
type Dashboard struct {
	Now   time.Time
	Days  []DayOutcomes // one per UTC day, oldest first, also for days without any
	Ages  []AgeCount    // of open reviews, youngest first
	Open  int           // reviews
	Soon  int           // of these, due within 24 hours
	Terms []TermCount   // causing findings of the latest TermWindow screenings, most first
	Ended ReviewsEnded  // of those opened in Days
}

// DayOutcomes counts what the packs decided on one day.
type DayOutcomes struct {
	Day                    screening.Day
	Admit, Escalate, Block int
}

// AgeCount counts open reviews younger than Below and not younger than the entry before.
type AgeCount struct {
	Below time.Duration // 0 = no limit
	Count int
}

// TermCount says how often a term decided.
type TermCount struct {
	Term            string // tagged
	Block, Escalate int
}

// ReviewsEnded counts how reviews ended.
type ReviewsEnded struct {
	Admit, Block, Expired, Other int
	Median                       time.Duration // from opening to a decision; 0 without one
}

const (
	// TermWindow is over how many of the latest screenings terms are counted.
	TermWindow = 1000
	// MostTerms is how many terms a dashboard names.
	MostTerms = 10
)

// AgeLimits are the steps in which the age of open reviews is counted.
var AgeLimits = []time.Duration{4 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// Dashboard counts over the last days.
func (d *Desk) Dashboard(ctx context.Context, p Principal, days int) (*Dashboard, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Dashboard(ctx, p.Project, days)
}
