package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/review"
)

// floorWatch ends the admissions that the safety floor in force blocks. The floor
// changes with the program, so the start is when it counts; again and again it is
// looked for what a replica with an older floor has admitted meanwhile.
type floorWatch struct {
	desk *review.Desk
	log  *slog.Logger
}

const enforceEvery = 15 * time.Minute

// first looks until it has looked at everything: before that nobody may be told
// that an admission holds.
func (w *floorWatch) first(ctx context.Context) error {
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := w.enforce(ctx)
		if err == nil || !errors.Is(err, review.ErrUnavailable) {
			return err
		}
		w.log.Warn("live admissions not looked at yet, trying again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *floorWatch) look(ctx context.Context) {
	if err := w.enforce(ctx); err != nil && ctx.Err() == nil {
		w.log.Warn("live admissions not looked at", "error", err)
	}
}

func (w *floorWatch) enforce(ctx context.Context) error {
	done, err := w.desk.EnforceFloor(ctx)
	for _, id := range done.Ended {
		w.log.Warn("the safety floor ended an admission", "screening", id)
	}
	for _, id := range done.Undecided {
		w.log.Warn("an admission of other packs cannot be decided again", "screening", id)
	}
	if done.Looked > 0 {
		w.log.Info("looked at admissions of other packs", "admissions", done.Looked, "ended", len(done.Ended))
	}
	return err
}
