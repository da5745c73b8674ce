package api

import (
	"context"
	"log/slog"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

type requestIDKey struct{}

// follow puts the id of a request into its context, where logs find it, and begins
// its span, as part of the caller's trace if it is in one. Nil: it is not traced.
func (s *Server) follow(c echo.Context, id string) trace.Span {
	r := c.Request()
	ctx := context.WithValue(r.Context(), requestIDKey{}, id)
	var span trace.Span
	if s.tracer != nil && !isProbe(c.Path()) {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		// The route and no path or query: those are the caller's words.
		method, route := knownMethod(r.Method), routeOf(c)
		ctx, span = s.tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route), attribute.String("weir.request_id", id)))
	}
	c.SetRequest(r.WithContext(ctx))
	return span
}

// endSpan tells what was answered, by its number alone.
func endSpan(span trace.Span, c echo.Context) {
	if span == nil {
		return
	}
	status := c.Response().Status
	span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	if status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// LogHandler adds to each event the request and the trace that its context is of.
func LogHandler(next slog.Handler) slog.Handler {
	if _, ok := next.(logHandler); ok {
		return next
	}
	return logHandler{next}
}

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone() // whoever else has the record keeps it as it was
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		r.AddAttrs(slog.String("request_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
