package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/api"
	"weir/cmd/weir/certificate"
	"weir/cmd/weir/console"
	"weir/cmd/weir/kubernetes"
	"weir/cmd/weir/openapi"
	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/store/ledger"
	"weir/webhooks"
)

// serveOptions are the flags of weir serve.
type serveOptions struct {
	listen       string
	tls          certificate.Files // none: plain HTTP
	configDir    string
	at           databasePlace
	packs        []string
	baseURL      string
	signingKeys  []string
	auditOnly    bool
	unratified   bool
	rate         int
	databaseWait time.Duration
	verbose      bool
	webhooks     webhooks.Config
	breaker      webhooks.Breaker
	resolver     string
	hooks        hookOptions
	witnesses    witnessOptions
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gate",
		Long: "Runs the gate. Without DATABASE_URL it starts a private Postgres from the\n" +
			"binaries on this machine, keeps its data in the state directory, and stops it\n" +
			"with the gate. Set DATABASE_URL in production.\n\n" +
			"Every flag but --config can also be given in the environment (--base-url is\n" +
			"WEIR_BASE_URL) and in weir.yaml (base_url). The first of flag, environment and\n" +
			"file that says something decides; weir config show tells which did.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if o.verbose {
				level = slog.LevelDebug
			}
			log := slog.New(api.LogHandler(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})))
			return serve(cmd.Context(), o, log)
		},
	}
	o.flags(cmd)
	return cmd
}

// flags adds the flags. All are settings.
func (o *serveOptions) flags(cmd *cobra.Command) {
	configFlag(cmd, &o.configDir)
	f := cmd.Flags()
	o.at.flags(f, "")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to listen on")
	f.StringVar(&o.tls.Cert, "tls-cert", "", "certificate of the gate, in PEM, with those that signed it; read again when it is\nrenewed (default: plain HTTP)")
	f.StringVar(&o.tls.Key, "tls-key", "", "key of that certificate")
	f.StringVar(&o.tls.MinVersion, "tls-min-version", "1.2", "oldest TLS that the gate and the Kubernetes hook speak: 1.2 or 1.3")
	f.StringSliceVar(&o.packs, "packs", defaultPacks, "packs beside the safety floor: ids of shipped packs or paths of files")
	f.StringVar(&o.baseURL, "base-url", "", "where people reach this gate; webhook messages link to it")
	f.StringSliceVar(&o.signingKeys, "signing-key", nil, "ed25519 key in PEM that signs the log, exports and admissions; two while it is\nrotated (default with a private Postgres: signing.key in the state directory)")
	f.BoolVar(&o.auditOnly, "audit-only", false, "admit although no ethics term that decides could be checked; needs packs that only observe")
	f.BoolVar(&o.unratified, "allow-unratified", false, "for development: use packs that are not in force, and mark every decision")
	f.IntVar(&o.rate, "rate-limit", 100, "requests a second that one person or service may send on average; ten seconds'\nworth may come at once (0 = no limit)")
	f.DurationVar(&o.databaseWait, "database-wait", 0, "give up when the database does not answer for this long (0 = keep trying)")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
	o.hooks.flags(cmd)
	o.witnesses.flags(f)
	f.Var((*durationList)(&o.webhooks.Schedule), "webhook-schedule", "waits before each webhook attempt, comma-separated (default 0s,5s,30s,2m,… up to 72h in all)")
	f.DurationVar(&o.webhooks.Lease, "webhook-lease", 0, "how long a claimed delivery stays with a process that died (default 30s)")
	f.DurationVar(&o.breaker.Cooldown, "webhook-cooldown", 0, "first pause after 10 failures of an endpoint in a row; each next is twice as long (default 5m)")
	f.StringVar(&o.resolver, "webhook-resolver", "", "HOST:PORT of a name server for receivers (default: the system's)")
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "config" { // says where the file is
			useSettings(f, flag.Name)
		}
	})
}

// resolver asks one name server, or whoever the system asks when it is empty.
func resolver(server string) *net.Resolver {
	if server == "" {
		return nil
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}}
}

// checkListener reads what there is to be read before anybody can ask.
func (o *serveOptions) checkListener() error {
	if o.rate < 0 {
		return errors.New("--rate-limit must not be negative; 0 sets no limit")
	}
	if err := console.CheckBaseURL(o.baseURL); err != nil {
		return err
	}
	if o.tls.Cert == "" && o.tls.Key == "" {
		if o.tls.MinVersion != "1.2" && o.tls.MinVersion != "1.3" {
			return errors.New("--tls-min-version must be 1.2 or 1.3")
		}
		return nil
	}
	if err := o.tls.Check(); err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return nil
}

func (o *serveOptions) describeListener() string {
	if o.tls.Cert == "" {
		return "plain HTTP at " + o.listen
	}
	return "TLS at " + o.listen + "; certificate and key can be read"
}

// durationList is a flag of several durations.
type durationList []time.Duration

func (l *durationList) String() string {
	texts := make([]string, len(*l))
	for i, d := range *l {
		texts[i] = d.String()
	}
	return strings.Join(texts, ",")
}

func (l *durationList) Type() string { return "durations" }

func (l *durationList) Set(text string) error { return l.Replace(splitList(text)) }

func (l *durationList) Append(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil {
		*l = append(*l, d)
	}
	return err
}

func (l *durationList) Replace(texts []string) error {
	*l = nil
	for _, text := range texts {
		if err := l.Append(text); err != nil {
			return err
		}
	}
	return nil
}

func (l *durationList) GetSlice() []string { return splitList(l.String()) }

// serve runs until ctx ends, and then stops in order: no new work, answer what
// is under way, give deliveries back, close the database.
func serve(ctx context.Context, o serveOptions, log *slog.Logger) error {
	declared := declarations{options: o, log: log}
	for _, part := range declared.parts() {
		if err := part.load(); err != nil {
			return err
		}
	}
	traces, err := startTracing(ctx, log)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	defer traces.stop(context.WithoutCancel(ctx), log)
	vocabulary, d, keys := declared.vocabulary, declared.deployment, declared.keys
	metrics := api.NewMetrics()
	metrics.SetMode(vocabulary.Config().Unratified, o.auditOnly)
	for _, p := range vocabulary.Packs() {
		log.Info("pack in use", "id", p.ID, "version", p.Version, "sha256", p.SHA256.String())
	}
	if vocabulary.Config().Unratified {
		log.Warn("packs that are not ratified are in use; every decision is marked")
	}

	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return exitWith(exitFailed, err)
	}
	server := api.New(api.Config{Log: log, Metrics: metrics, Rate: o.rate, Tracing: traces.provider, Beside: []openapi.Route{kubernetes.Describe()}})
	web := server.HTTPServer()
	serve, scheme := web.Serve, "http"
	if o.tls.Cert != "" {
		if web.TLSConfig, err = o.tls.Config(log); err != nil {
			return exitWith(exitUsage, err)
		}
		scheme, serve = "https", func(l net.Listener) error { return web.ServeTLS(l, "", "") }
	}
	served := make(chan error, 2)
	go func() { served <- serve(listener) }()
	defer web.Close()
	d.access.Warm(ctx) // tells early of one that is misspelt; a gate starts without them
	log.Info("listening, not ready yet", "scheme", scheme, "address", listener.Addr().String())

	db, err := openDatabase(ctx, o.at, log)
	if err != nil {
		return startError(ctx, err)
	}
	if db.private == nil && db.dir != "" {
		return exitWith(exitFailed, fmt.Errorf("another weir runs on the state directory %s; stop it or choose another --state-dir", db.dir))
	}
	defer func() {
		// The stop must not depend on the context that ended.
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		if err := db.close(stopCtx); err != nil {
			log.Error("private Postgres did not stop cleanly", "error", err)
		}
	}()
	var dispatching atomic.Pointer[webhooks.Dispatcher] // there is none before the store that it works on
	enqueued := func() {
		if d := dispatching.Load(); d != nil {
			d.Wake()
		}
	}
	st, err := openPatiently(ctx, db, store.Config{BaseURL: o.baseURL, Log: log, Enqueued: enqueued, Breaker: o.breaker, Tracing: traces.provider}, o.databaseWait, log)
	if err != nil {
		return startError(ctx, err)
	}
	defer st.Close()
	if err := st.PrepareMonths(ctx); err != nil {
		return startError(ctx, err)
	}
	// Where the day is not known, a report mode that lasts too long is none: it enforces.
	if today, err := st.Today(ctx); err == nil {
		if err := d.policies.CheckDays("policies.yaml", today); err != nil {
			return exitWith(exitUsage, err)
		}
	}
	if db.private != nil {
		if err := ensureAdminKey(ctx, st, filepath.Join(db.dir, "admin.key"), log); err != nil {
			return exitWith(exitFailed, err)
		}
	}
	if keys, err = o.useKeys(ctx, keys, db, st, vocabulary, log); err != nil {
		return exitWith(exitFailed, err)
	}
	desk, err := review.NewDesk(st, review.Setup{Vocabulary: vocabulary, People: d.people, Policies: d.policies}, review.Config{})
	if err != nil {
		return exitWith(exitFailed, err)
	}
	o.webhooks.Logger, o.webhooks.Tracing = log, traces.provider
	o.webhooks.Own = st.Addresses
	o.webhooks.Resolver = resolver(o.resolver)
	o.webhooks.Checkpoint = func(ctx context.Context) []byte {
		note, err := st.Checkpoint(ctx, false)
		if err != nil { // a message does not wait for the log
			return nil
		}
		return note
	}
	o.webhooks.Observe = func(a webhooks.Attempt) { metrics.Attempt(a.EndpointID, string(a.Class)) }
	dispatcher, err := webhooks.New(st.Outbox(), d.endpoints, o.webhooks)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	if err := dispatcher.Declare(ctx); err != nil { // before anything is written for them
		return startError(ctx, err)
	}
	dispatching.Store(dispatcher)
	floor := &floorWatch{desk: desk, log: log}
	if err := floor.first(ctx); err != nil { // before anybody is told that such an admission holds
		return startError(ctx, err)
	}
	witnesses, err := o.witnesses.watch(st, keys, o.webhooks, metrics, log)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	pages, err := console.New(desk, st, st, console.Config{BaseURL: o.baseURL, Issuers: d.access, Log: log})
	if err != nil {
		return exitWith(exitUsage, err)
	}
	o.hooks.tls.MinVersion = o.tls.MinVersion
	o.hooks.config.BaseURL, o.hooks.config.Answered = o.baseURL, func(a kubernetes.Answered) { metrics.Hook(a.Kind, string(a.Result), a.Took) }
	hook, err := startHook(o.hooks, desk, traces, served, log)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	defer hook.close()

	// From here on every return waits for the work, which uses the store.
	workCtx, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var work sync.WaitGroup
	work.Go(func() {
		if err := dispatcher.Run(workCtx); err != nil {
			log.Error("webhook dispatcher", "error", err)
		}
	})
	work.Go(func() {
		desk.RunExpiry(workCtx, time.Second, func(err error) { log.Warn("reviews not expired", "error", err) })
	})
	work.Go(func() {
		st.RunSequencer(workCtx, sequenceEvery, func(err error) { log.Warn("log not sequenced", "error", err) }, keys...)
	})
	work.Go(func() {
		st.RunRetention(workCtx, d.policies.Retention(), retainEvery, func(p store.PayloadPart) {
			log.Info("payloads erased by age", "outcome", p.Outcome.String(), "month", p.Month.Format("2006-01"), "screenings", p.Screenings)
		}, func(err error) { log.Warn("retention", "error", err) })
	})
	watch := &exampleWatch{vocabulary: vocabulary, store: st, metrics: metrics, log: log}
	work.Go(func() { repeat(workCtx, watchEvery, watch.look) })
	work.Go(func() { repeat(workCtx, enforceEvery, floor.look) })
	if witnesses != nil {
		work.Go(func() { repeat(workCtx, witnessEvery, witnesses.look) })
	}
	endpoints := &endpointWatch{store: st, metrics: metrics, log: log}
	work.Go(func() { repeat(workCtx, endpointsEvery, endpoints.look) })
	server.Open(api.Gate{Desk: desk, Keys: st, Tokens: d.access, Record: st, SigningKeys: keys, Deliveries: st, Console: pages,
		Ready: func(ctx context.Context) []string { return notReady(ctx, st) },
		Warnings: func() []string {
			return slices.Concat(watch.warnings(), endpoints.warnings(), witnesses.warnings(), d.access.Warnings())
		}})
	log.Info("ready", "address", listener.Addr().String())

	var failed error
	select {
	case <-ctx.Done():
	case <-db.died():
		failed = exitWith(exitFailed, fmt.Errorf("the private Postgres ended: %w", db.private.Err()))
	case err := <-served:
		failed = exitWith(exitFailed, err)
	}
	log.Info("stopping")
	server.Drain()
	hook.stop(context.WithoutCancel(ctx), log)
	stopWork() // what requests still enqueue is sent after the next start
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := web.Shutdown(stopCtx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("some requests were cut off", "error", err)
	}
	work.Wait()
	return failed
}

// retainEvery is how often it is looked for what is too old.
const retainEvery = time.Hour

// sequenceEvery is how long an event waits at most to be in the log.
const sequenceEvery = 200 * time.Millisecond

// useKeys records the packs that decide and the keys that sign from now on. A
// private database has a key of its own.
func (o serveOptions) useKeys(ctx context.Context, keys []ledger.Signer, db *database, st *store.Store, v *screening.Vocabulary, log *slog.Logger) ([]ledger.Signer, error) {
	if len(keys) == 0 && db.private != nil {
		path, err := ensureSigningKey(db.dir)
		if err != nil {
			return nil, fmt.Errorf("make the signing key: %w", err)
		}
		if keys, err = loadSigningKeys([]string{path}); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		log.Warn("no signing key: the log is kept but not signed, and nothing can be exported; give --signing-key")
	}
	public, packs := make([]ledger.PublicKey, len(keys)), []*screening.Pack{}
	for i, k := range keys {
		public[i] = k.Public()
	}
	for _, ref := range v.Packs() {
		p, _ := v.Pack(ref.ID)
		packs = append(packs, p)
	}
	if err := st.UseKeys(ctx, public...); err != nil {
		return nil, err
	}
	return keys, st.KeepPacks(ctx, packs)
}

// repeat does something now and again, until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// startError is the end of a start that did not get anywhere: nothing is wrong
// when somebody asked for it.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return exitWith(exitFailed, err)
}

// notReady gives the reasons why the gate must not be asked now.
func notReady(ctx context.Context, st *store.Store) []string {
	status, err := st.Schema(ctx)
	if err != nil {
		return []string{"the database does not answer"}
	}
	if !status.Ready() {
		return []string{fmt.Sprintf("the database is at schema version %d of %d", status.Version, status.Head)}
	}
	switch err := st.Ping(ctx); {
	case errors.Is(err, store.ErrTenants):
		return []string{err.Error()}
	case err != nil:
		return []string{"the database does not answer"}
	}
	return nil
}

// openPatiently keeps trying while the database is away: the process stays up,
// answers 503, and starts working when the database comes.
func openPatiently(ctx context.Context, db *database, cfg store.Config, atMost time.Duration, log *slog.Logger) (*store.Store, error) {
	start := time.Now()
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		st, err := db.openStore(ctx, cfg)
		if err == nil {
			return st, nil
		}
		var tooNew *store.SchemaTooNewError
		if errors.As(err, &tooNew) || ctx.Err() != nil || (atMost > 0 && time.Since(start) > atMost) {
			return nil, err
		}
		log.Warn("the database is not usable yet, trying again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-db.died():
			return nil, fmt.Errorf("the private Postgres ended: %w", db.private.Err())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ensureAdminKey makes the first key of a private database, in a file that only
// its owner can read. Nobody else could make one.
func ensureAdminKey(ctx context.Context, st *store.Store, path string, log *slog.Logger) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	token, key, err := review.NewAPIKey()
	if err != nil {
		return err
	}
	if err := st.CreateKey(ctx, store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: "default", Subject: "admin",
		Scopes: review.Scopes}); err != nil {
		return fmt.Errorf("make the first key: %w", err)
	}
	// By renaming: half a file would look like a key that is there.
	if err := os.WriteFile(path+".new", []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	log.Info("first key written", "file", path)
	return nil
}

// splitList splits a comma-separated list and drops spaces.
func splitList(text string) (parts []string) {
	for _, p := range strings.Split(text, ",") {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}
