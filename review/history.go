package review

import (
	"context"
	"time"
)

// HistoryEvent is one line of a screening's record.
type HistoryEvent struct {
	Seq   int
	Type  string
	Actor string
	At    time.Time
	Body  []byte // JSON
}

// History gives the events of a screening from the one after seq on, in order.
func (d *Desk) History(ctx context.Context, p Principal, screeningID string, after, limit int) ([]HistoryEvent, error) {
	if _, err := d.Screening(ctx, p, screeningID); err != nil {
		return nil, err
	}
	return d.store.History(ctx, p.Project, screeningID, after, limit)
}

// Superseded gives the screening whose place a screening took, the latest if
// there were several. ErrNotFound when there was none.
func (d *Desk) Superseded(ctx context.Context, p Principal, by *Screening) (*Screening, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.SupersededBy(ctx, p.Project, by.RunRef, by.ID)
}
