package review

import "context"

// Exposure is how often somebody asked to see excerpts that are held back.
type Exposure struct {
	Today int // since 24 hours
	Week  int // since 7 days
}

// Exposure tells how often the caller opened excerpts lately.
func (d *Desk) Exposure(ctx context.Context, p Principal) (Exposure, error) {
	if !p.mayReadAll() {
		return Exposure{}, ErrNotAllowed
	}
	return d.store.Exposure(ctx, p.Project, d.subject(p))
}

// OpenExcerpts counts that the caller is shown that many excerpts of a
// screening. Whoever shows them calls it first: what is not counted is not shown.
func (d *Desk) OpenExcerpts(ctx context.Context, p Principal, s *Screening, excerpts int) (Exposure, error) {
	if !p.mayReadAll() {
		return Exposure{}, ErrNotAllowed
	}
	return d.store.NoteExposure(ctx, p.Project, d.subject(p), s.ID, excerpts)
}
