package webhooks

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Defaults of a Config.
const (
	DefaultMaxTotal     = 16
	DefaultPoll         = time.Second
	DefaultStopTimeout  = 10 * time.Second
	DefaultWriteTimeout = 5 * time.Second
	DefaultMinLease     = 30 * time.Second
	DefaultUserAgent    = "weir-webhooks/1"
)

// DeclareEvery is how often a process says which endpoints it has.
const DeclareEvery = time.Minute

// Config tunes a Dispatcher. The zero value is usable.
type Config struct {
	// Schedule of attempts. Empty means DefaultSchedule.
	Schedule Schedule

	// Lease is how long a claim lasts, and so how long the deliveries of a
	// process that died stay with it. At least twice the longest timeout of an
	// endpoint, or a slow receiver would be sent the message by two processes
	// at once. Zero means that, but no less than DefaultMinLease.
	Lease time.Duration

	// Poll is the pause between looks into the outbox when nobody wakes the
	// dispatcher, spread by ±20 %. Zero means DefaultPoll.
	Poll time.Duration

	// MaxTotal is how many requests may be open at once, over all endpoints.
	// Zero means DefaultMaxTotal.
	MaxTotal int

	// StopTimeout is how long a stop waits for open requests before it cuts
	// them off and releases their deliveries. Zero means DefaultStopTimeout.
	StopTimeout time.Duration

	// WriteTimeout limits each call to the outbox. Zero means
	// DefaultWriteTimeout.
	WriteTimeout time.Duration

	// Refuse lists further address ranges that no declaration may reach.
	Refuse []netip.Prefix

	// Own gives the addresses of the database, asked at each dial. Its machine is
	// refused whatever is declared; on a loopback address, its port. May be nil.
	Own func() []netip.AddrPort

	// UserAgent of the requests. Empty means DefaultUserAgent.
	UserAgent string

	// Resolver looks up the receivers' names. Nil means the system's.
	Resolver *net.Resolver

	// RootCAs verify the receivers' certificates. Nil means the system's.
	RootCAs *x509.CertPool

	// Checkpoint gives the latest signed state of the log, which goes along with
	// every attempt: who keeps messages keeps what the log cannot go behind. Its time
	// is the attempt's. Nil, or nothing, means that none goes along.
	Checkpoint func(ctx context.Context) []byte

	// Logger gets one event per attempt. Nil discards.
	Logger *slog.Logger

	// Tracing makes a span of each attempt, and tells receivers its id. Nil: none.
	Tracing trace.TracerProvider

	// Now stamps attempts. Nil means time.Now.
	Now func() time.Time

	// Jitter returns a value in [0,1) and is safe for concurrent use. Nil
	// means math/rand.
	Jitter func() float64

	// Observe is told of every attempt, for counters. It is called by several
	// goroutines at once and must be quick. Nil means nobody is.
	Observe func(Attempt)
}

func (c Config) withDefaults(longest time.Duration) Config {
	if len(c.Schedule) == 0 {
		c.Schedule = DefaultSchedule()
	}
	setDefault(&c.Lease, max(2*longest, DefaultMinLease))
	setDefault(&c.Poll, DefaultPoll)
	setDefault(&c.MaxTotal, DefaultMaxTotal)
	setDefault(&c.StopTimeout, DefaultStopTimeout)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.UserAgent, DefaultUserAgent)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracing == nil {
		c.Tracing = noop.NewTracerProvider()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Checkpoint == nil {
		c.Checkpoint = func(context.Context) []byte { return nil }
	}
	if c.Observe == nil {
		c.Observe = func(Attempt) {}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate takes a config with its defaults filled in.
func (c Config) validate(longest time.Duration) error {
	errs := []error{c.Schedule.validate()}
	if c.Lease < 2*longest {
		errs = append(errs, fmt.Errorf("lease is %v; it must be at least %v, twice the longest endpoint timeout", c.Lease, 2*longest))
	}
	if c.MaxTotal < 0 {
		errs = append(errs, errors.New("max total is negative"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"poll", c.Poll}, {"stop timeout", c.StopTimeout}, {"write timeout", c.WriteTimeout}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", d.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("webhooks config: %w", err)
	}
	return nil
}
