package store

import (
	"context"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// tracerName is the scope of the spans that the store makes itself.
const tracerName = "weir/store"

// statementTracer makes a span of each statement that is part of a traced request.
// It is otelpgx without what could hold something submitted or secret: arguments,
// the account, and what the database says of an error, which may quote a value.
type statementTracer struct{ *otelpgx.Tracer }

func newStatementTracer(p trace.TracerProvider) *statementTracer {
	return &statementTracer{otelpgx.NewTracer(otelpgx.WithTracerProvider(p), otelpgx.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelpgx.WithDisableConnectionDetailsInAttributes())}
}

func (t *statementTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceQueryEnd(ctx, conn, data)
}

func (t *statementTracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceBatchQuery(ctx, conn, data)
}

func (t *statementTracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceBatchEnd(ctx, conn, data)
}

func (t *statementTracer) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceCopyFromEnd(ctx, conn, data)
}

func (t *statementTracer) TracePrepareEnd(ctx context.Context, conn *pgx.Conn, data pgx.TracePrepareEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TracePrepareEnd(ctx, conn, data)
}

func (t *statementTracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceConnectEnd(ctx, data)
}

func (t *statementTracer) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	data.Err = withoutWords(data.Err)
	t.Tracer.TraceAcquireEnd(ctx, pool, data)
}

var errNoDatabase = errors.New("the database gave no answer")

// withoutWords keeps the kind of an error and none of its text.
func withoutWords(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows): // an answer like any other
		return err
	case errors.As(err, &pg):
		return &pgconn.PgError{Severity: pg.Severity, Code: pg.Code, Message: "refused"}
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return errNoDatabase
}

// trace makes the span of a shared transaction. It is part of the first request
// that is traced; the others' traces are linked with it both ways, as a span has
// one parent.
func (c *committer) trace(ctx context.Context, group []*pending) (context.Context, trace.Span) {
	var links []trace.Link
	var parent trace.Span
	for _, p := range group {
		switch span := trace.SpanFromContext(p.ctx); {
		case !span.IsRecording():
		case parent == nil:
			parent = span
		default:
			links = append(links, trace.Link{SpanContext: span.SpanContext()})
		}
	}
	if parent == nil {
		return ctx, tracenoop.Span{}
	}
	ctx, span := c.tracer.Start(trace.ContextWithSpan(ctx, parent), "commit", trace.WithLinks(links...))
	for _, p := range group {
		if other := trace.SpanFromContext(p.ctx); other != parent && other.IsRecording() {
			other.AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return ctx, span
}
