package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/store"
	"weir/store/localpg"
)

func newDoctor() *cobra.Command {
	var config, dir string
	var packs []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with a set-up and what to do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := doctor{w: &lines{w: cmd.OutOrStdout()}, p: paintFor(cmd.OutOrStdout())}
			d.packs(packs)
			d.declarations(cmd.Context(), configDir(config))
			d.database(cmd.Context(), dir)
			return d.verdict()
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "directory with people.yaml and policies.yaml (default $WEIR_CONFIG, else /etc/weir)")
	cmd.Flags().StringVar(&dir, "state-dir", "", "directory of the private Postgres")
	cmd.Flags().StringSliceVar(&packs, "packs", defaultPacks, "packs beside the safety floor")
	return cmd
}

// doctor looks at one thing after the other and goes on after a fault, so that
// one run shows everything.
type doctor struct {
	w      *lines
	p      paint
	faults int
}

func (d *doctor) ok(format string, args ...any) {
	d.w.wrap("  "+d.p.bold(green, "ok")+"     ", "         ", fmt.Sprintf(format, args...))
}

func (d *doctor) fault(format string, args ...any) {
	d.faults++
	d.w.wrap("  "+d.p.bold(red, "fault")+"  ", "         ", fmt.Sprintf(format, args...))
}

func (d *doctor) note(format string, args ...any) {
	d.w.wrap("  "+d.p.bold(yellow, "note")+"   ", "         ", fmt.Sprintf(format, args...))
}

func (d *doctor) verdict() error {
	if d.faults > 0 {
		d.w.put("%s", count(d.faults, "fault", "faults"))
		return exitWith(exitFailed, d.w.err)
	}
	d.w.put("nothing is wrong")
	return d.w.err
}

func (d *doctor) packs(refs []string) {
	v, err := loadVocabulary(refs, false, false)
	if err != nil {
		d.fault("packs: %v", err)
		return
	}
	for _, p := range v.Packs() {
		d.ok("pack %s %s is in force", p.ID, p.Version)
	}
}

func (d *doctor) declarations(ctx context.Context, dir string) {
	dep, err := loadDeployment(dir)
	if err != nil {
		d.fault("declarations: %v", err)
		return
	}
	d.ok("people and policies in %s are well-formed", dir)
	if len(dep.endpoints) == 0 {
		d.note("no endpoint is declared: nobody is told of an escalation")
	}
	for _, e := range dep.endpoints {
		u, err := url.Parse(e.URL)
		if err != nil {
			d.fault("endpoint %s: %v", e.ID, err)
			continue
		}
		if _, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
			d.fault("endpoint %s: the name %s does not resolve", e.ID, u.Hostname())
			continue
		}
		d.ok("endpoint %s resolves", e.ID)
	}
}

func (d *doctor) database(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	db, err := openDatabase(ctx, dir, log)
	if err != nil {
		if errors.Is(err, localpg.ErrNoBinaries) || os.Getenv("DATABASE_URL") == "" {
			d.fault("private Postgres: %v", err)
		} else {
			d.fault("database: %v", err)
		}
		return
	}
	defer func() {
		if err := db.close(ctx); err != nil {
			d.fault("private Postgres: %v", err)
		}
	}()
	st, err := store.Open(ctx, db.dsn, store.Config{Log: log})
	if err != nil {
		d.fault("database: %v", err)
		return
	}
	defer st.Close()
	if err := st.Ping(ctx); err != nil {
		d.fault("the database does not answer; check DATABASE_URL and that the server runs")
		return
	}
	status, err := st.Schema(ctx)
	switch {
	case err != nil:
		d.fault("schema: %v", err)
	case status.Dirty:
		d.fault("a migration died half-way; weir migrate up heals it")
	case status.Version > status.Head:
		d.fault("the database is at schema version %d, this weir knows %d: use a newer weir", status.Version, status.Head)
	case status.Version < status.Head:
		d.note("the schema is at version %d of %d; weir serve or weir migrate up brings it up to date", status.Version, status.Head)
	default:
		d.ok("database answers, schema version %d", status.Version)
	}
	if keys, err := st.Keys(ctx); err == nil && len(keys) == 0 {
		d.note("there is no API key; make one with weir key create")
	}
}
