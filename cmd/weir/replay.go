package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
	"weir/store"
)

// exitDiffers: with --fail-on-difference, some spec comes to another outcome.
const exitDiffers = 13

// exitNothing: with --fail-on-difference, no spec was there to come to another.
const exitNothing = 14

// replayOptions is a replay as it was asked for.
type replayOptions struct {
	since, until, asOf string
	packs              []string
	resume             string
	database           bool
	auditOnly          bool
	project            string
	at                 databasePlace
	conn               gateFlags
}

// replaySource gives the page after a cursor, "" for the first. first is the
// first page of a replay that goes on; with it and no cursor, only who answers and
// by which packs is asked.
type replaySource func(ctx context.Context, cursor string, first *client.ReplayPage) (*client.ReplayPage, error)

func newPackReplay() *cobra.Command {
	var o replayOptions
	var output string
	var failOnDifference bool
	cmd := &cobra.Command{
		Use:   "replay --since DAY|30d",
		Short: "Show what packs would have decided differently",
		Long: "Decides the stored specs of a project again by candidate packs and shows which\n" +
			"come out otherwise. Of every spec the latest screening counts, each as of the\n" +
			"day it was decided, so that only the packs differ. Nothing is kept or sent.\n\n" +
			"The specs are read through the gate, with a key of scope policy or audit; with\n" +
			"--database straight from DATABASE_URL or the private Postgres. A pack named with\n" +
			"a . or / is a file or a directory of packs; a bare word is a pack in force at\n" +
			"the gate, or with --database a shipped one. They need not be ratified.\n\n" +
			"With --resume FILE the results are kept in FILE; the same command goes on where\n" +
			"it was interrupted.\n\n" +
			"Exit codes: 0 done; with --fail-on-difference 13 if an outcome differs, and 14 if\n" +
			"there was no spec to decide; 4 a pack is invalid; 2 usage, a window that ends\n" +
			"before it begins or begins in the future, or a FILE of another replay; 20 the\n" +
			"gate or the database did not answer.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			results, err := replay(cmd, &o)
			if err != nil {
				return err
			}
			defer results.close()
			differ, err := showReplay(cmd.OutOrStdout(), results, output)
			if err != nil {
				return exitWith(exitFailed, err)
			}
			switch {
			case failOnDifference && results.replayed == 0:
				return exitWith(exitNothing, errors.New("no spec was decided again, so that nothing differs shows nothing"))
			case failOnDifference && differ:
				return exitWith(exitDiffers, nil)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "screenings from then on: a day (UTC), a time, or an age like 30d")
	f.StringVar(&o.until, "until", "", "screenings before then: a day, a time or an age (default a minute ago)")
	f.StringVar(&o.asOf, "as-of", "stored", "decide as of this day: stored (each spec's own), today, or a day")
	f.StringSliceVar(&o.packs, "packs", defaultPacks, "candidate packs beside the safety floor: ids, files or directories")
	f.StringVar(&o.resume, "resume", "", "keep the results in this file, and go on from what is in it")
	f.BoolVar(&failOnDifference, "fail-on-difference", false, "exit 13 if any spec comes to another outcome, 14 if there is none")
	f.StringVar(&output, "output", "text", "text or json")
	f.BoolVar(&o.database, "database", false, "read the database itself instead of asking the gate")
	f.StringVar(&o.project, "project", "default", "with --database: the project")
	o.at.flags(f, "with --database: ")
	f.BoolVar(&o.auditOnly, "audit-only", false, "with --database: decide as a gate that only audits")
	o.conn.add(cmd)
	if err := cmd.MarkFlagRequired("since"); err != nil {
		panic(err) // the flag is declared above
	}
	return cmd
}

// replay reads pages until the last, keeping each before it asks for the next.
func replay(cmd *cobra.Command, o *replayOptions) (_ *replayFile, err error) {
	ctx := cmd.Context()
	if !o.database && (cmd.Flags().Changed("project") || o.at.given(cmd.Flags()) || o.auditOnly) {
		return nil, exitWith(exitUsage, errors.New("--project, --audit-only, --state-dir and --database-url-file go with --database; a key belongs to one project, and a gate knows its mode"))
	}
	since, err := parseMoment(o.since)
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("--since %w", err))
	}
	until := time.Time{}
	if o.until != "" {
		if until, err = parseMoment(o.until); err != nil {
			return nil, exitWith(exitUsage, fmt.Errorf("--until %w", err))
		}
	}
	if !until.IsZero() && !since.Before(until) {
		return nil, exitWith(exitUsage, errors.New("--until must be after --since"))
	}
	if _, err := screening.ParseDay(o.asOf); err != nil && o.asOf != "stored" && o.asOf != "today" {
		return nil, exitWith(exitUsage, errors.New("--as-of must be stored, today, or a day, written YYYY-MM-DD"))
	}
	if o.packs, err = expandPacks(o.packs); err != nil {
		return nil, exitWith(exitUsage, err)
	}
	open := openGateReplay
	if o.database {
		open = openDatabaseReplay
	}
	source, head, done, err := open(ctx, o, since, until)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	results, err := openReplayFile(o.resume, *head)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			results.close()
		}
	}()
	return results, results.fill(ctx, cmd.ErrOrStderr(), source)
}

// fill asks for what is not there yet.
func (f *replayFile) fill(ctx context.Context, stderr io.Writer, source replaySource) error {
	at, done := func(int64, string) {}, func() {}
	defer func() { done() }()
	if f.complete() { // what is kept is shown to who may ask for it now
		page, err := source(ctx, "", f.first)
		if err == nil {
			err = sameReplay(f.first, page)
		}
		if err != nil {
			return err
		}
	}
	for n := 0; !f.complete(); n++ {
		page, err := source(ctx, f.next, f.first)
		switch {
		case ctx.Err() != nil && f.named:
			return exitWith(exitFailed, errors.New("interrupted; the same command goes on from what is kept"))
		case ctx.Err() != nil:
			return exitWith(exitFailed, errors.New("interrupted, and nothing was kept; with --resume FILE it could go on"))
		case err != nil:
			return err
		}
		if f.first != nil {
			if err := sameReplay(f.first, page); err != nil {
				return err
			}
		}
		if err := f.keep(page); err != nil {
			return exitWith(exitFailed, fmt.Errorf("keep the results: %w", err))
		}
		if n == 0 {
			at, done = progressTo(stderr, page.Until.Unix()-page.Since.Unix())
		}
		at(page.Reached.Unix()-page.Since.Unix(), fmt.Sprintf("replayed %s", count(f.replayed, "spec", "specs")))
	}
	return nil
}

// sameReplay refuses a page that does not belong to the replay of the first one.
func sameReplay(p, page *client.ReplayPage) error {
	what := ""
	switch {
	case p.Project != page.Project:
		what = "the key is for another project than"
	case !slices.Equal(p.Packs, page.Packs) || p.Unratified != page.Unratified:
		what = "the packs changed since"
	case p.Engine != page.Engine:
		what = "the gate has another decision engine than in"
	case p.AuditOnly != page.AuditOnly:
		what = "whether the gate only audits changed since"
	default:
		return nil
	}
	return exitWith(exitUsage, fmt.Errorf("%s the replay that is kept; start anew with another --resume file", what))
}

const replayLimit = 200 // specs in a page

// openGateReplay replays through a gate.
func openGateReplay(_ context.Context, o *replayOptions, since, until time.Time) (replaySource, *replayHead, func() error, error) {
	c, err := o.conn.client()
	if err != nil {
		return nil, nil, nil, err
	}
	reg := screening.NewRegistry()
	packs, head := []any{}, newReplayHead(o, c.Server())
	for _, ref := range o.packs {
		if !strings.ContainsAny(ref, "/.") {
			packs, head.Packs = append(packs, ref), append(head.Packs, ref)
			continue
		}
		data, err := os.ReadFile(ref)
		if err != nil {
			return nil, nil, nil, packError(err)
		}
		p, err := screening.LoadPack(ref, data, reg)
		if err != nil {
			return nil, nil, nil, packError(err)
		}
		packs, head.Packs = append(packs, p.JSON()), append(head.Packs, p.ID+" "+p.SHA256.String())
	}
	ask := func(ctx context.Context, cursor string, first *client.ReplayPage) (*client.ReplayPage, error) {
		r := client.ReplayRequest{Packs: packs, Limit: replayLimit, Cursor: cursor}
		if cursor == "" { // else it says the rest
			r.Since, r.Until, r.AsOf = since, until, o.asOf
			if first != nil {
				r.Limit = 1
			}
		}
		ctx, cancel := context.WithTimeout(ctx, o.conn.timeout)
		defer cancel()
		page, err := c.Replay(ctx, r)
		switch {
		case errors.Is(err, client.ErrTooLarge):
			return nil, exitWith(exitUsage, errors.New("the packs are larger than 1 MiB together, which a gate does not take; use --database"))
		case err != nil:
			return nil, replayRefusal(err)
		case page.Next != "" && page.Next == cursor:
			return nil, noAnswer(errors.New("the replay does not go on"))
		}
		return page, nil
	}
	return ask, head, func() error { return nil }, nil
}

// replayRefusal names what was refused: packs, not a spec.
func replayRefusal(err error) error {
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	code := exitUsage
	if slices.ContainsFunc(invalid.Problems, func(p screening.Problem) bool { return strings.HasPrefix(p.Pointer, "/packs") }) {
		code = exitPackInvalid
	}
	return exitWith(code, &screening.InvalidError{What: "replay", Problems: invalid.Problems})
}

// openDatabaseReplay replays what is in a database. It does not migrate it: who
// only looks changes nothing.
func openDatabaseReplay(ctx context.Context, o *replayOptions, since, until time.Time) (_ replaySource, _ *replayHead, done func() error, err error) {
	v, unratified, err := candidateVocabulary(o.packs, o.auditOnly)
	if err != nil {
		return nil, nil, nil, err
	}
	head := newReplayHead(o, "database, project "+o.project)
	for _, p := range v.Packs() {
		head.Packs = append(head.Packs, p.ID+" "+p.SHA256.String())
	}
	log := slog.New(slog.DiscardHandler)
	start, cancel := context.WithTimeout(ctx, time.Minute) // a private server may have to be started first
	defer cancel()
	db, err := lookDatabase(start, o.at, log)
	var none *noDatabaseError
	switch {
	case errors.As(err, &none):
		return nil, nil, nil, exitWith(exitUsage, err)
	case err != nil:
		return nil, nil, nil, exitWith(exitFailed, err)
	}
	done = func() error { return db.close(context.WithoutCancel(ctx)) }
	st, err := store.Open(start, db.dsn, store.Config{Log: log, MaxConns: 2})
	if err != nil {
		return nil, nil, nil, exitWith(exitFailed, errors.Join(err, done()))
	}
	done = func() error { st.Close(); return db.close(context.WithoutCancel(ctx)) }
	switch schema, err := st.Schema(start); {
	case err != nil:
		return nil, nil, nil, exitWith(exitNoAnswer, errors.Join(err, done()))
	case schema.Version != schema.Head || schema.Dirty:
		return nil, nil, nil, exitWith(exitFailed, errors.Join(fmt.Errorf("the database has schema version %d and this weir needs %d; run weir migrate up, or use the weir that serves it",
			schema.Version, schema.Head), done()))
	}
	read := func(ctx context.Context, cursor string, first *client.ReplayPage) (*client.ReplayPage, error) {
		page := &client.ReplayPage{Packs: v.Packs(), Unratified: unratified, AuditOnly: o.auditOnly, Project: o.project, Engine: screening.EngineVersion, AsOf: o.asOf}
		q := review.ReplayQuery{Candidate: v, Limit: replayLimit}
		if first != nil {
			if cursor == "" {
				return page, nil
			}
			page.AsOf, q.Since, q.Until = first.AsOf, first.Since, first.Until
		} else {
			now, err := st.Now(ctx)
			if err != nil {
				return nil, exitWith(exitNoAnswer, err)
			}
			if err := q.SetWindow(since, until, now); err != nil {
				return nil, replayRefusal(err)
			}
			if o.asOf == "today" {
				page.AsOf = now.Format(time.DateOnly)
			}
		}
		page.Since, page.Until = q.Since, q.Until
		if page.AsOf != "stored" {
			q.AsOf = screening.Day(page.AsOf)
		}
		if cursor != "" {
			at, id, _ := strings.Cut(cursor, " ")
			when, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				return nil, exitWith(exitUsage, fmt.Errorf("the results file has a place that cannot be read: %w", err))
			}
			q.After = &review.Cursor{At: when, ID: id}
		}
		got, err := review.Replay(ctx, st, o.project, q)
		if errors.Is(err, review.ErrUnavailable) {
			return nil, exitWith(exitNoAnswer, err)
		}
		if err != nil {
			return nil, exitWith(exitFailed, err)
		}
		page.ReplayPage = *got
		if n := got.Next; n != nil {
			page.Reached, page.Next = n.At.UTC(), n.At.UTC().Format(time.RFC3339Nano)+" "+n.ID
		}
		return page, nil
	}
	return read, head, done, nil
}

// candidateVocabulary loads packs that need not be in force, and tells whether they are.
func candidateVocabulary(refs []string, auditOnly bool) (v *screening.Vocabulary, unratified bool, err error) {
	v, err = loadVocabulary(refs, auditOnly, false)
	var not *screening.NotInForceError
	if errors.As(err, &not) {
		v, err = loadVocabulary(refs, auditOnly, true)
		return v, true, err
	}
	return v, false, err
}

// expandPacks puts the packs of a directory in its place.
func expandPacks(refs []string) (out []string, err error) {
	for _, ref := range refs {
		info, err := os.Stat(ref)
		if !strings.ContainsAny(ref, "/.") || err != nil || !info.IsDir() {
			out = append(out, ref) // a file that is not there is told when it is read
			continue
		}
		entries, err := os.ReadDir(ref)
		if err != nil {
			return nil, err
		}
		found := 0
		for _, e := range entries {
			name := e.Name()
			stem := strings.TrimSuffix(name, filepath.Ext(name))
			if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) || e.IsDir() || strings.Contains(stem, ".cases") || strings.Contains(stem, ".report") {
				continue
			}
			found++
			out = append(out, "./"+filepath.Join(ref, name))
			if filepath.IsAbs(ref) {
				out[len(out)-1] = filepath.Join(ref, name)
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("%s holds no packs (.yaml, .yml or .json)", ref)
		}
	}
	return out, nil
}

var age = regexp.MustCompile(`^([1-9][0-9]{0,4})d$`)

// parseMoment reads what review.ParseMoment reads, or an age in days.
func parseMoment(text string) (time.Time, error) {
	if m := age.FindStringSubmatch(text); m != nil {
		days, err := strconv.Atoi(m[1])
		return time.Now().UTC().AddDate(0, 0, -days).Truncate(time.Second), err
	}
	t, ok := review.ParseMoment(text)
	if !ok {
		return t, errors.New("must be a day, written YYYY-MM-DD, a time, written as in RFC 3339, or an age in days, like 30d")
	}
	return t, nil
}

// replayHead says what a results file is of: a file goes on only with the same.
type replayHead struct {
	Schema    string   `json:"schema"`
	From      string   `json:"from"`
	Since     string   `json:"since"` // as given
	Until     string   `json:"until"`
	AsOf      string   `json:"as_of"`
	AuditOnly bool     `json:"audit_only"`
	Engine    string   `json:"engine"` // of this program
	Packs     []string `json:"packs"`  // id and digest; the id alone where the gate knows which
}

const replaySchema = "weir/replay/v1"

func newReplayHead(o *replayOptions, from string) *replayHead {
	return &replayHead{Schema: replaySchema, From: from, Since: o.since, Until: o.until, AsOf: o.asOf, AuditOnly: o.auditOnly,
		Engine: screening.EngineVersion, Packs: []string{}}
}

// differsFrom names what is not the same, "" if nothing.
func (h replayHead) differsFrom(other replayHead) string {
	switch {
	case h.Schema != other.Schema:
		return "its schema"
	case h.From != other.From:
		return "the gate or database"
	case !slices.Equal(h.Packs, other.Packs):
		return "the packs"
	case h.Since != other.Since || h.Until != other.Until:
		return "--since or --until"
	case h.AsOf != other.AsOf:
		return "--as-of"
	case h.AuditOnly != other.AuditOnly:
		return "--audit-only"
	case h.Engine != other.Engine:
		return "the decision engine"
	}
	return ""
}

// trimmed is a line without its end, and whether it has one.
func trimmed(line []byte) ([]byte, bool) { return bytes.CutSuffix(line, []byte("\n")) }
