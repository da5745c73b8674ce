package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"weir/screening"
)

// tracing sends spans to a collector. Its zero value is off and costs nothing.
type tracing struct {
	provider trace.TracerProvider // nil when off
	sdk      *sdktrace.TracerProvider
}

// tracingWanted reads the standard variables of OpenTelemetry: traces are on
// where an endpoint is named. What this program cannot do is an error, as the
// library would fall back to something else without a word.
func tracingWanted(getenv func(string) string) (bool, error) {
	of := func(name string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	if getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none" || of("ENDPOINT") == "" {
		return false, nil
	}
	if e := getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return false, errors.New("OTEL_TRACES_EXPORTER: weir has otlp and none")
	}
	if p := of("PROTOCOL"); p != "" && p != "http/protobuf" {
		return false, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL: weir speaks http/protobuf; collectors take it on port 4318")
	}
	u, err := url.Parse(of("ENDPOINT"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: must be an address like http://collector:4318")
	}
	// The library takes an unknown sampler for its default, which samples everything.
	samplers := []string{"", "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
	if !slices.Contains(samplers, getenv("OTEL_TRACES_SAMPLER")) {
		return false, errors.New("OTEL_TRACES_SAMPLER: is not one that weir has, such as parentbased_traceidratio")
	}
	return true, nil
}

// startTracing begins to send spans if the environment asks for it. The collector
// need not be there: what it does not take is dropped, and no request waits.
func startTracing(ctx context.Context, log *slog.Logger) (*tracing, error) {
	wanted, err := tracingWanted(os.Getenv)
	if err != nil || !wanted {
		return &tracing{}, err
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("weir"), semconv.ServiceVersion(screening.EngineVersion)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return newTracing(exporter, about), nil
}

func newTracing(exporter sdktrace.SpanExporter, about *resource.Resource) *tracing {
	sdk := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &tracing{provider: sdk, sdk: sdk}
}

// flushWithin bounds the stop: a collector that hangs must not hold the process.
const flushWithin = 5 * time.Second

// stop sends what is left.
func (t *tracing) stop(ctx context.Context, log *slog.Logger) {
	if t.sdk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := t.sdk.Shutdown(ctx); err != nil {
		log.Warn("some spans were not sent", "error", err)
	}
}

// handler makes a span of each request to a handler that has one route.
func (t *tracing) handler(name string, next http.Handler) http.Handler {
	if t.provider == nil {
		return next
	}
	tracer := t.provider.Tracer("weir/hook")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
