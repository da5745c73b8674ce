package review

import (
	"context"
	"errors"
	"time"

	"weir/screening"
)

// Bypass is a run that started although the gate could not be asked, because its
// pipeline had said --on-unavailable=allow. It opens nothing: it is reported
// later, so that what trained unscreened is on record.
type Bypass struct {
	ID          string // a UUID that the pipeline made
	Project     string
	Submitter   string    // who reported it
	At          time.Time // when it was bypassed, by the pipeline's clock
	Reason      string    // why there was no answer
	SpecSHA256  screening.Digest256
	Spec        []byte            // what trained; not read back by Bypasses
	RunRef      string            // "" when the spec is not valid
	Outcome     screening.Outcome // what the packs in force say at the report; zero when the spec is not valid
	ScreeningID string            // the latest screening of these bytes at the report, "" when there was none
	ReportedAt  time.Time
}

// maxBypassReason bounds a reason, in bytes.
const maxBypassReason = 2000

// ReportBypass keeps a bypass once; existing tells that it was reported before.
// A spec that is not valid is kept as well: it may have trained all the same.
// Errors: *screening.InvalidError, ErrNotAllowed, ErrConflict for the id of
// another report, and the Store's.
func (d *Desk) ReportBypass(ctx context.Context, p Principal, b Bypass) (kept *Bypass, existing bool, err error) {
	setup := d.Setup()
	if p, err = setup.declared(p, ScopeSubmit); err != nil {
		return nil, false, err
	}
	if err := b.check(); err != nil {
		return nil, false, err
	}
	b.Project, b.Submitter, b.SpecSHA256 = p.Project, p.Subject, screening.Sum(b.Spec)
	if err := d.foresee(ctx, setup, &b); err != nil {
		return nil, false, err
	}
	if existing, err = d.store.KeepBypass(ctx, &b); err != nil {
		return nil, false, err
	}
	kept, err = d.store.Bypass(ctx, p.Project, b.ID)
	if errors.Is(err, ErrNotFound) || err == nil && existing && (kept.SpecSHA256 != b.SpecSHA256 || !kept.At.Equal(b.At.Truncate(time.Microsecond))) {
		return nil, false, ErrConflict
	}
	return kept, existing, err
}

func (b *Bypass) check() error {
	invalid := &screening.InvalidError{What: "bypass"}
	say := func(pointer, detail string) {
		invalid.Problems = append(invalid.Problems, screening.Problem{Pointer: pointer, Detail: detail})
	}
	if screening.IsBlank(b.Reason) {
		say("/reason", "must say why there was no answer")
	} else if len(b.Reason) > maxBypassReason || !isText(b.Reason) {
		say("/reason", "must be text of at most 2000 bytes")
	}
	if b.At.IsZero() {
		say("/at", "must be given")
	}
	if len(b.Spec) == 0 || len(b.Spec) > screening.MaxDocumentBytes {
		say("/spec", "must be the text of the spec that trained")
	}
	if len(invalid.Problems) > 0 {
		return invalid
	}
	return nil
}

// foresee says what the packs in force would have decided. It is for who reads
// the report; nobody is asked and no people of the spec are resolved.
func (d *Desk) foresee(ctx context.Context, setup Setup, b *Bypass) error {
	spec, err := screening.ParseSpec(b.Spec)
	if err != nil {
		return nil //nolint:nilerr // kept as a spec that is not valid
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return err
	}
	decision, err := screening.Classify(spec, setup.Vocabulary, day)
	if err != nil {
		return nil //nolint:nilerr // a hedge without a statement: not valid either
	}
	b.RunRef, b.Outcome = spec.RunRef, decision.Outcome
	return nil
}

// Bypasses lists the latest reports first, without the specs.
func (d *Desk) Bypasses(ctx context.Context, p Principal, limit int, after *Cursor) ([]*Bypass, error) {
	if !p.mayReadAll() {
		return nil, ErrNotAllowed
	}
	return d.store.Bypasses(ctx, p.Project, limit, after)
}
