package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"weir/screening"
	"weir/store"
	"weir/store/localpg"
)

func newDoctor() *cobra.Command {
	var config string
	var at databasePlace
	var packs []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with a set-up and what to do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := doctor{w: &lines{w: cmd.OutOrStdout()}, p: paintFor(cmd.OutOrStdout())}
			d.packs(packs)
			d.declarations(cmd.Context(), config)
			d.database(cmd.Context(), at)
			return d.verdict()
		},
	}
	configFlag(cmd, &config)
	at.flags(cmd.Flags(), "")
	cmd.Flags().StringSliceVar(&packs, "packs", defaultPacks, "packs beside the safety floor")
	useSettings(cmd.Flags(), "packs")
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
	dep, err := loadDeployment(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		d.fault("declarations: %v", err)
		return
	}
	d.ok("people and policies in %s are well-formed", dir)
	if err := dep.policies.CheckDays("policies.yaml", screening.Day(time.Now().UTC().Format(time.DateOnly))); err != nil {
		d.fault("declarations: %v", err)
	}
	dep.access.Check(ctx, func(issuer string, err error) {
		if err != nil {
			d.fault("issuer %s: its keys cannot be had: %v", issuer, err)
			return
		}
		d.ok("issuer %s gives its keys", issuer)
	})
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

func (d *doctor) database(ctx context.Context, at databasePlace) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	db, err := lookDatabase(ctx, at, log)
	var none *noDatabaseError
	if errors.As(err, &none) {
		if err := localpg.Available(ctx); err != nil {
			d.fault("private Postgres: %v", err)
			return
		}
		d.note("there is no database yet; weir serve makes one in %s", none.dir)
		return
	}
	if err != nil {
		if dsn, _ := at.url(); errors.Is(err, localpg.ErrNoBinaries) || dsn == "" {
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
	status, err := st.Schema(ctx)
	switch {
	case err != nil:
		d.fault("the database does not answer; check DATABASE_URL and that the server runs")
		return
	case status.Dirty:
		d.fault("a migration died half-way; weir migrate up heals it")
	case status.Version > status.Head:
		d.fault("the database is at schema version %d, this weir knows %d: use a newer weir", status.Version, status.Head)
	case status.Version < status.Head:
		d.note("the schema is at version %d of %d; weir serve or weir migrate up brings it up to date", status.Version, status.Head)
	default:
		if err := st.Ping(ctx); err != nil {
			d.fault("database: %v", err)
			return
		}
		d.ok("database answers and keeps projects apart, schema version %d", status.Version)
	}
	if list, err := st.Outbox().Endpoints(ctx); err == nil { // else the schema is older, which was said
		for _, e := range list {
			if e.State() == "disabled" {
				d.note("endpoint %s is disabled since %s by %s: %s; weir endpoint enable releases what is held", e.ID, e.DisabledAt.UTC().Format(time.DateOnly), e.DisabledBy, e.DisabledWhy)
			}
		}
	}
	if keys, err := st.Keys(ctx); err == nil && len(keys) == 0 {
		d.note("there is no API key; make one with weir key create")
	}
}
