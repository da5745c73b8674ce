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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/store"
	"weir/webhooks"
)

// serveOptions are the flags of weir serve.
type serveOptions struct {
	listen       string
	configDir    string
	dir          string
	packs        []string
	baseURL      string
	auditOnly    bool
	unratified   bool
	databaseWait time.Duration
	verbose      bool
	webhooks     webhooks.Config
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gate",
		Long: "Runs the gate. Without DATABASE_URL it starts a private Postgres from the\n" +
			"binaries on this machine, keeps its data in the state directory, and stops it\n" +
			"with the gate. Set DATABASE_URL in production.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if o.verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			return serve(cmd.Context(), o, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to listen on")
	f.StringVar(&o.configDir, "config", "", "directory with people.yaml and policies.yaml (default $WEIR_CONFIG, else /etc/weir)")
	f.StringVar(&o.dir, "state-dir", "", "directory of the private Postgres (default /var/lib/weir for root, else ~/.local/state/weir)")
	f.StringSliceVar(&o.packs, "packs", defaultPacks, "packs beside the safety floor: ids of shipped packs or paths of files")
	f.StringVar(&o.baseURL, "base-url", "", "where people reach this gate; webhook messages link to it")
	f.BoolVar(&o.auditOnly, "audit-only", false, "admit although no ethics term that decides could be checked; needs packs that only observe")
	f.BoolVar(&o.unratified, "allow-unratified", false, "for development: use packs that are not in force, and mark every decision")
	f.DurationVar(&o.databaseWait, "database-wait", 0, "give up when the database does not answer for this long (0 = keep trying)")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
	durations := (*durationList)(&o.webhooks.Schedule)
	f.Var(durations, "webhook-schedule", "waits before each webhook attempt, comma-separated (default 0s,5s,30s,2m,… up to 72h in all)")
	f.DurationVar(&o.webhooks.Lease, "webhook-lease", 0, "how long a claimed delivery stays with a process that died (default 30s)")
	return cmd
}

// durationList is a flag of several durations.
type durationList []time.Duration

func (l *durationList) String() string { return "" }
func (l *durationList) Type() string   { return "durations" }
func (l *durationList) Set(text string) error {
	*l = nil
	for _, part := range splitList(text) {
		d, err := time.ParseDuration(part)
		if err != nil {
			return err
		}
		*l = append(*l, d)
	}
	return nil
}

// serve runs until ctx ends, and then stops in order: no new work, answer what
// is under way, give deliveries back, close the database.
func serve(ctx context.Context, o serveOptions, log *slog.Logger) error {
	vocabulary, err := loadVocabulary(o.packs, o.auditOnly, o.unratified)
	if err != nil {
		return err
	}
	d, err := loadDeployment(configDir(o.configDir))
	if err != nil {
		return exitWith(exitUsage, err)
	}
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
	server := api.New(api.Config{Log: log, Metrics: metrics})
	web := server.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	defer web.Close()
	log.Info("listening, not ready yet", "address", listener.Addr().String())

	db, err := openDatabase(ctx, o.dir, log)
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
	st, err := openPatiently(ctx, db, store.Config{BaseURL: o.baseURL, Log: log, Enqueued: enqueued}, o.databaseWait, log)
	if err != nil {
		return startError(ctx, err)
	}
	defer st.Close()
	if db.private != nil {
		if err := ensureAdminKey(ctx, st, filepath.Join(db.dir, "admin.key"), log); err != nil {
			return exitWith(exitFailed, err)
		}
	}
	desk, err := review.NewDesk(st, review.Setup{Vocabulary: vocabulary, People: d.people, Policies: d.policies}, review.Config{})
	if err != nil {
		return exitWith(exitFailed, err)
	}
	o.webhooks.Logger = log
	o.webhooks.Observe = func(a webhooks.Attempt) { metrics.Attempt(a.EndpointID, string(a.Class)) }
	dispatcher, err := webhooks.New(st.Outbox(), d.endpoints, o.webhooks)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	dispatching.Store(dispatcher)

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
	watch := &exampleWatch{vocabulary: vocabulary, store: st, metrics: metrics, log: log}
	work.Go(func() { watch.run(workCtx) })
	server.Open(api.Gate{Desk: desk, Keys: st, Ready: func(ctx context.Context) []string { return notReady(ctx, st) }, Warnings: watch.warnings})
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
	stopWork() // what requests still enqueue is sent after the next start
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := web.Shutdown(stopCtx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("some requests were cut off", "error", err)
	}
	work.Wait()
	return failed
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
	if err := st.Ping(ctx); err != nil {
		return []string{"the database does not answer"}
	}
	status, err := st.Schema(ctx)
	if err != nil {
		return []string{"the database's schema version cannot be read"}
	}
	if !status.Ready() {
		return []string{fmt.Sprintf("the database is at schema version %d of %d", status.Version, status.Head)}
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
