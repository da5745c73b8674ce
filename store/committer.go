package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"weir/review"
)

// committer gathers what waits to be written into shared transactions. It adds
// no delay: a submission alone goes alone, and under load a commit carries many.
type committer struct {
	store  *Store
	tracer trace.Tracer
	queue  chan *pending // unbuffered: what is in it has somebody who writes it
	group  sync.WaitGroup
	stop   chan struct{}
	once   sync.Once
}

type pending struct {
	ctx  context.Context //nolint:containedctx // of the caller who waits for done: tells whether anybody still does
	sub  *review.Submission
	id   uuid.UUID
	done chan outcome
}

type outcome struct {
	kept review.Kept
	err  error
}

const (
	committers   = 2   // one prepares while the other waits for the disk
	largestGroup = 256 // rows of one transaction are locked together; keep it short
	commitWithin = 5 * time.Second
)

func newCommitter(s *Store) *committer {
	c := &committer{store: s, tracer: tracenoop.Tracer{}, queue: make(chan *pending), stop: make(chan struct{})}
	if s.cfg.Tracing != nil {
		c.tracer = s.cfg.Tracing.Tracer(tracerName)
	}
	for range committers {
		c.group.Go(c.run)
	}
	return c
}

func (c *committer) close() {
	c.once.Do(func() { close(c.stop) })
	c.group.Wait()
}

func (c *committer) submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return review.Kept{}, fmt.Errorf("%w: %w", review.ErrUnavailable, err)
	}
	p := &pending{ctx: ctx, sub: sub, id: id, done: make(chan outcome, 1)}
	select {
	case c.queue <- p:
	case <-c.stop:
		return review.Kept{}, fmt.Errorf("%w: stopping", review.ErrUnavailable)
	case <-ctx.Done():
		return review.Kept{}, fmt.Errorf("%w: %w", review.ErrUnavailable, ctx.Err())
	}
	select {
	case out := <-p.done:
		return out.kept, out.err
	case <-ctx.Done(): // it may still commit; the caller learns nothing and must ask again
		return review.Kept{}, fmt.Errorf("%w: %w", review.ErrUnavailable, ctx.Err())
	}
}

func (c *committer) run() {
	for {
		select {
		case p := <-c.queue:
			c.commit(c.gather(p))
		case <-c.stop:
			return
		}
	}
}

func (c *committer) gather(first *pending) []*pending {
	group := []*pending{first}
	for len(group) < largestGroup {
		select {
		case p := <-c.queue:
			group = append(group, p)
		default:
			return group
		}
	}
	return group
}

// commit writes a group. If the group fails as a whole its members are tried one
// by one, so that one bad row fails alone. Whom nobody waits for any more is left
// out, so that a database that hangs does not leave work behind for later.
func (c *committer) commit(group []*pending) {
	group = slices.DeleteFunc(group, func(p *pending) bool { return p.ctx.Err() != nil })
	if len(group) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	ctx, span := c.trace(ctx, group)
	defer span.End()
	outcomes, err := c.store.writeGroup(ctx, group)
	if noPart(err) { // the first of a month, and no sweep came by
		if err = c.store.PrepareMonths(ctx); err == nil {
			outcomes, err = c.store.writeGroup(ctx, group)
		}
	}
	if err != nil && len(group) > 1 {
		var pg *pgconn.PgError
		if errors.As(err, &pg) || retryable(err) { // certainly rolled back
			for _, p := range group {
				c.commit([]*pending{p})
			}
			return
		}
	}
	for tries := 0; err != nil && retryable(err) && tries < 3; tries++ {
		outcomes, err = c.store.writeGroup(ctx, group)
	}
	span.End() // before those who wait go on, and their spans end
	enqueued := false
	for i, p := range group {
		if err != nil {
			p.done <- outcome{err: submitError(err)}
			continue
		}
		enqueued = enqueued || outcomes[i].err == nil && !outcomes[i].kept.Existing
		p.done <- outcomes[i]
	}
	if enqueued && c.store.cfg.Enqueued != nil {
		c.store.cfg.Enqueued()
	}
}
