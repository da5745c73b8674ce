package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// ErrRunning is returned by a second Run of the same Dispatcher.
var ErrRunning = errors.New("webhook dispatcher is already running")

// errStopping is the cause that cuts off requests when a stop has waited enough.
var errStopping = errors.New("webhook dispatcher is stopping")

// maxBackoff is the longest pause after the outbox failed repeatedly.
const maxBackoff = 30 * time.Second

// Dispatcher sends what an Outbox holds. Several may share one outbox.
type Dispatcher struct {
	outbox  Outbox
	lanes   map[string]*lane
	has     []Declared
	cfg     Config
	wake    chan struct{}
	running atomic.Bool
}

// lane is what the dispatcher knows of one endpoint.
type lane struct {
	send func(context.Context, Delivery) Attempt
	max  int
}

// New checks the endpoints and the config. A dispatcher without endpoints is
// legal: it leaves everything to others.
func New(outbox Outbox, endpoints []Endpoint, cfg Config) (*Dispatcher, error) {
	var errs []error
	var longest time.Duration
	declared := make([]Endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		e, err := e.Normalise()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		longest = max(longest, e.Timeout)
		declared = append(declared, e)
	}
	cfg = cfg.withDefaults(longest)
	errs = append(errs, cfg.validate(longest))

	d := &Dispatcher{
		outbox: outbox,
		lanes:  make(map[string]*lane, len(declared)),
		cfg:    cfg,
		wake:   make(chan struct{}, 1),
	}
	for _, e := range declared {
		if d.lanes[e.ID] != nil {
			errs = append(errs, fmt.Errorf("%w %q: declared twice", ErrInvalidEndpoint, e.ID))
			continue
		}
		s, err := newSender(e, cfg)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w %q: %w", ErrInvalidEndpoint, e.ID, err))
			continue
		}
		d.lanes[e.ID] = &lane{send: s.send, max: e.MaxInFlight}
		d.has = append(d.has, Declared{ID: e.ID, Host: s.url.Host, Format: e.Format, Types: e.Types})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return d, nil
}

// Wake makes Run look into the outbox now. It never blocks, and is meant to be
// called after a commit that wrote deliveries.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default: // a wake is pending already and will see this commit too
	}
}

// Declare tells the outbox which endpoints there are. It is to be called before
// anything is written for them; Run repeats it.
func (d *Dispatcher) Declare(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, d.cfg.WriteTimeout)
	defer cancel()
	return d.outbox.Declare(call, d.has)
}

// keepDeclared is the sign of life of the endpoints that this process has.
func (d *Dispatcher) keepDeclared(ctx context.Context) {
	tick := time.NewTicker(DeclareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := d.Declare(ctx); err != nil && ctx.Err() == nil {
				d.cfg.Logger.ErrorContext(ctx, "webhook endpoints not declared", slog.Any("error", err))
			}
		}
	}
}

// Run dispatches until ctx ends. Then it claims no more, waits for open
// requests, at most StopTimeout, releases what it cut off, and returns nil.
// Failures of the outbox are logged and waited out; they never end Run.
func (d *Dispatcher) Run(ctx context.Context) error {
	if !d.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer d.running.Store(false)

	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	r := &run{Dispatcher: d, tracer: d.cfg.Tracing.Tracer("weir/webhooks"), work: work, inFlight: map[string]int{}, done: make(chan result)}

	var alive sync.WaitGroup
	defer alive.Wait()
	alive.Go(func() { d.keepDeclared(ctx) })

	failures := 0
	for ctx.Err() == nil {
		err := r.fill(ctx)
		pause, wake := spread(d.cfg.Poll, d.cfg.Jitter), d.wake
		if err != nil {
			failures++
			// A wake does not shorten the pause: it would turn every commit
			// into a knock at a door that is known to be shut.
			pause, wake = d.backoff(failures), nil
			d.cfg.Logger.ErrorContext(ctx, "webhook claim failed",
				slog.Any("error", err), slog.Int("failures", failures), slog.Duration("pause", pause))
		} else {
			failures = 0
		}
		r.wait(ctx, pause, wake)
	}
	r.drain(ctx, abort)
	return nil
}

// backoff doubles from the poll interval, so that a brief failure costs little.
func (d *Dispatcher) backoff(failures int) time.Duration {
	pause := min(d.cfg.Poll<<min(failures-1, 16), maxBackoff)
	return spread(pause, d.cfg.Jitter)
}

// run is the state of one Run, touched by its goroutine only.
type run struct {
	*Dispatcher
	tracer   trace.Tracer
	work     context.Context // of the requests; outlives the context of Run until a stop has waited enough
	total    int
	inFlight map[string]int // by endpoint id
	done     chan result
	rest     []Delivery // claimed but not sent, or cut off: to be released
}

type result struct {
	Delivery
	cutOff bool
}

// room returns how many deliveries may be claimed now, and to which endpoints:
// those that this process has, and that have a slot. One claim can be all for one endpoint, so the limit is the room
// of the fullest endpoint that has any: nothing is ever claimed to wait here
// with its lease running out.
func (r *run) room() (limit int, free []string) {
	limit = r.cfg.MaxTotal - r.total
	for id, l := range r.lanes {
		if slots := l.max - r.inFlight[id]; slots > 0 {
			limit = min(limit, slots)
			free = append(free, id)
		}
	}
	slices.Sort(free)
	return limit, free
}

// fill claims and starts deliveries until the outbox or the room is exhausted.
func (r *run) fill(ctx context.Context) error {
	for ctx.Err() == nil {
		limit, free := r.room()
		if limit == 0 || len(free) == 0 {
			return nil
		}
		leaseEnd := time.Now().Add(r.cfg.Lease) // before the claim, to err on the early side
		ds, err := r.claim(ctx, limit, free)
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // stopped meanwhile
			r.rest = append(r.rest, ds...)
			return nil
		}
		for _, d := range ds {
			r.total++
			r.inFlight[d.EndpointID]++
			go r.deliver(d, leaseEnd)
		}
		if len(ds) < limit {
			return nil
		}
	}
	return nil
}

// claim is not cut short by a stop: the rows of a claim whose answer is lost
// would stay leased to nobody.
func (r *run) claim(ctx context.Context, limit int, endpoints []string) ([]Delivery, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.WriteTimeout)
	defer cancel()
	return r.outbox.Claim(call, limit, r.cfg.Lease, endpoints)
}

// wait returns when it is worth looking into the outbox again.
func (r *run) wait(ctx context.Context, pause time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-wake:
			return
		case res := <-r.done:
			// Room where there was none may have work waiting for it. After a
			// failed claim (no wake) it has to wait for the pause like all.
			l := r.lanes[res.EndpointID]
			wasFull := r.total == r.cfg.MaxTotal || l != nil && r.inFlight[res.EndpointID] >= l.max
			r.settle(res)
			if wasFull && wake != nil {
				return
			}
		}
	}
}

func (r *run) settle(res result) {
	r.total--
	if r.inFlight[res.EndpointID]--; r.inFlight[res.EndpointID] == 0 {
		delete(r.inFlight, res.EndpointID)
	}
	if res.cutOff {
		r.rest = append(r.rest, res.Delivery)
	}
}

// drain is the graceful stop.
func (r *run) drain(ctx context.Context, abort context.CancelCauseFunc) {
	limit := time.NewTimer(r.cfg.StopTimeout)
	defer limit.Stop()
	for r.total > 0 {
		select {
		case res := <-r.done:
			r.settle(res)
		case <-limit.C:
			abort(errStopping)
		}
	}
	if len(r.rest) == 0 {
		return
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.WriteTimeout)
	defer cancel()
	log := r.cfg.Logger.With(slog.Int("deliveries", len(r.rest)))
	if err := r.outbox.Release(call, r.rest); err != nil {
		log.ErrorContext(ctx, "webhook release failed, the leases will run out", slog.Any("error", err))
		return
	}
	log.InfoContext(ctx, "webhook deliveries released unsent")
}

// deliver takes one claim to its end and always reports back.
func (r *run) deliver(d Delivery, leaseEnd time.Time) {
	res := result{Delivery: d}
	defer func() { r.done <- res }()
	defer r.survive("webhook delivery panicked, its lease will run out", d)
	ctx, cancel := context.WithDeadline(r.work, leaseEnd)
	defer cancel()

	l := r.lanes[d.EndpointID]
	if l == nil {
		r.cfg.Logger.WarnContext(ctx, "webhook held, its endpoint is not declared", attrs(d)...)
		r.finish(ctx, d, Attempt{}, Outcome{State: StateHeld})
		return
	}
	ctx, span := r.tracer.Start(ctx, "webhook "+d.Type, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("weir.delivery", d.ID), attribute.String("weir.endpoint", d.EndpointID), attribute.String("weir.message", d.MessageID)))
	defer span.End()
	a := r.attempt(ctx, l, d)
	describe(span, a)
	if a.aborted {
		res.cutOff = errors.Is(context.Cause(ctx), errStopping)
		return
	}
	o := r.outcome(d, a)
	r.report(ctx, d, a, o)
	r.finish(ctx, d, a, o)
}

// attempt turns a panic into a failed attempt: one delivery that trips over a
// fault here is then retried and in the end dead, where it can be seen.
func (r *run) attempt(ctx context.Context, l *lane, d Delivery) (a Attempt) {
	started := r.cfg.Now()
	defer func() {
		if p := recover(); p != nil {
			a = newAttempt(d, started)
			a.Duration = r.cfg.Now().Sub(started)
			a.Class, a.Detail = ClassInternal, "panic while sending"
			r.logPanic(ctx, "webhook attempt panicked", d, p)
		}
	}()
	return l.send(ctx, d)
}

// describe tells what came of an attempt. Answer and detail hold text from outside
// and stay out.
func describe(span trace.Span, a Attempt) {
	span.SetAttributes(attribute.Int("weir.attempt", a.Number))
	if a.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", a.Status))
	}
	if a.Class != "" {
		span.SetStatus(codes.Error, string(a.Class))
	}
}

func (r *run) outcome(d Delivery, a Attempt) Outcome {
	switch {
	case a.Delivered():
		return Outcome{State: StateDelivered}
	case a.Status == http.StatusGone:
		o := Outcome{State: StateHeld, Disable: "the receiver answered 410 Gone"}
		if d.Type == TypePing {
			o.State = StateDead
		}
		return o // held, not dead: if the receiver comes back, so does its message
	case d.Type == TypePing:
		return Outcome{State: StateDead} // a question of now
	}
	if delay, ok := r.cfg.Schedule.Next(a.Number-d.RoundStart, a.RetryAfter, r.cfg.Jitter); ok {
		return Outcome{State: StateRetry, RetryIn: delay}
	}
	return Outcome{State: StateDead}
}

// finish writes the result. While the outbox fails it tries again for as long
// as the lease lasts, because a result that is lost is a message sent twice.
func (r *run) finish(ctx context.Context, d Delivery, a Attempt, o Outcome) {
	for n := 1; ; n++ {
		err := r.write(ctx, d, a, o)
		if err == nil {
			return
		}
		if errors.Is(err, ErrClaimLost) {
			r.cfg.Logger.WarnContext(ctx, "webhook result dropped, its lease ran out", attrs(d)...)
			return
		}
		r.cfg.Logger.ErrorContext(ctx, "webhook result not written", append(attrs(d), slog.Any("error", err))...)
		select {
		case <-time.After(r.backoff(n)):
		case <-ctx.Done(): // lease over, or stopping; whoever claims it next sends it again
			return
		}
	}
}

// write is one try. It gets its time even when a stop is just cutting off.
func (r *run) write(ctx context.Context, d Delivery, a Attempt, o Outcome) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.WriteTimeout)
	defer cancel()
	return r.outbox.Finish(call, d, a, o)
}

// report logs and counts an attempt. Neither the answer nor the detail is
// logged: both can hold text from outside.
func (r *run) report(ctx context.Context, d Delivery, a Attempt, o Outcome) {
	defer r.survive("webhook observer panicked", d)
	level := slog.LevelInfo
	switch o.State {
	case StateDelivered:
	case StateDead:
		level = slog.LevelError
	default:
		level = slog.LevelWarn
	}
	r.cfg.Logger.LogAttrs(ctx, level, "webhook attempt",
		slog.String("delivery", d.ID), slog.String("endpoint", d.EndpointID), slog.String("message", d.MessageID),
		slog.String("type", d.Type), slog.Int("attempt", a.Number), slog.String("host", a.Host), slog.Any("ip", a.IP),
		slog.Int("status", a.Status), slog.String("class", string(a.Class)), slog.Duration("duration", a.Duration),
		slog.String("outcome", string(o.State)), slog.Duration("retry_in", o.RetryIn))
	r.cfg.Observe(a)
}

// survive is deferred where a panic must not take the process down.
func (r *run) survive(msg string, d Delivery) {
	if p := recover(); p != nil {
		r.logPanic(r.work, msg, d, p)
	}
}

func (r *run) logPanic(ctx context.Context, msg string, d Delivery, p any) {
	r.cfg.Logger.ErrorContext(ctx, msg, append(attrs(d), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))...)
}

func attrs(d Delivery) []any {
	return []any{slog.String("delivery", d.ID), slog.String("endpoint", d.EndpointID), slog.Int("attempt", d.Attempt)}
}
