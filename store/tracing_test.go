package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"weir/store/storetest"
)

// A shared transaction is in the trace of one request, and the others lead to it.
func TestSharedCommitIsLinked(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	c := &committer{tracer: tracer}
	group := []*pending{{ctx: t.Context()}}
	var requests []trace.Span
	for range 3 {
		ctx, span := tracer.Start(t.Context(), "request")
		requests, group = append(requests, span), append(group, &pending{ctx: ctx})
	}
	_, commit := c.trace(t.Context(), group)
	commit.End()
	for _, r := range requests {
		r.End()
	}
	got := spans.GetSpans()
	if got[0].Name != "commit" || got[0].Parent.SpanID() != requests[0].SpanContext().SpanID() || len(got[0].Links) != 2 {
		t.Errorf("commit below %s with %d links", got[0].Parent.SpanID(), len(got[0].Links))
	}
	for i, s := range got[2:] {
		if got[0].Links[i].SpanContext.SpanID() != s.SpanContext.SpanID() || len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != commit.SpanContext().SpanID() {
			t.Errorf("request %d and the commit do not name each other", i+1)
		}
	}
	if len(got[1].Links) != 0 {
		t.Error("the first request is linked with what is below it")
	}
	// Without anybody who is traced there is no span.
	if _, none := c.trace(t.Context(), group[:1]); none.IsRecording() {
		t.Error("a commit that nobody traces has a span")
	}
}

func TestErrorsInSpansHaveNoWords(t *testing.T) {
	t.Parallel()
	const hidden = "kanarienvogel"
	for _, tc := range []struct {
		err, want error
	}{
		{nil, nil},
		{pgx.ErrNoRows, pgx.ErrNoRows},
		{fmt.Errorf("%s: %w", hidden, context.Canceled), context.Canceled},
		{fmt.Errorf("%s: %w", hidden, context.DeadlineExceeded), context.DeadlineExceeded},
		{errors.New("connect to " + hidden), errNoDatabase},
	} {
		if got := withoutWords(tc.err); got != tc.want { //nolint:errorlint // exactly this one
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
	got := withoutWords(fmt.Errorf("x: %w", &pgconn.PgError{Severity: "ERROR", Code: "22P02", Message: hidden, Detail: hidden, Where: hidden}))
	if text := fmt.Sprintf("%v %+v", got, got); !strings.Contains(text, "22P02") || strings.Contains(text, hidden) {
		t.Error(text)
	}
}

// The database quotes values in its errors; spans do not.
func TestSpansOfFailedStatements(t *testing.T) {
	t.Parallel()
	const hidden = "kanarienvogel"
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	s, err := Open(t.Context(), storetest.DSN(t), Config{Tracing: provider})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ctx, span := provider.Tracer("test").Start(t.Context(), "request")
	batch := &pgx.Batch{}
	batch.Queue(`select 1/($1::text || '')::int`, hidden)
	for what, err := range map[string]error{
		"query": s.every.QueryRow(ctx, `select ($1::text || '')::uuid`, hidden).Scan(new(string)),
		"exec":  func() error { _, err := s.every.Exec(ctx, `select ($1::text || '')::int`, hidden); return err }(),
		"batch": s.every.SendBatch(ctx, batch).Close(),
	} {
		if err == nil || !strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v; this was to be an error that quotes a value", what, err)
		}
	}
	span.End()
	got := spans.GetSpans()
	failed := 0
	for _, s := range got {
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, hidden) {
			t.Errorf("%s holds the value: %s", s.Name, text)
		}
		if s.Status.Code == codes.Error {
			failed++
		}
	}
	if failed < 3 {
		t.Errorf("%d of %d spans are failed", failed, len(got))
	}
}
