package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"weir/store"
	"weir/store/ledger"
)

// Exit codes of weir verify.
const (
	exitVerified   = 0
	exitBroken     = 1
	exitNotAuthent = 3 // intact, but nothing shows whose it is
)

// verification is what a verify command found out.
type verification struct {
	What      string   `json:"what"`
	Result    string   `json:"result"` // verified, intact or broken
	Broken    string   `json:"broken,omitzero"`
	File      string   `json:"file,omitzero"`
	Index     *int64   `json:"index,omitzero"`
	Proved    []string `json:"proved"`
	NotProved []string `json:"not_proved"`

	lacks string // what keeps it from being verified
}

type verifyOptions struct {
	keys        []string
	witnesses   []string
	since       string
	spec        string
	admission   string
	revocations string
	replay      bool
	database    bool
	at          databasePlace
	output      string
}

func newVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify BUNDLE | verify --spec SPEC --admission FILE",
		Short: "Check an export bundle or an admission, offline",
		Long: "Checks an export bundle, a directory or a ZIP file. It needs no database, no\n" +
			"network and no settings: only the public key of the gate, got by another way\n" +
			"than the bundle. With --since it also checks that the log only went on since\n" +
			"an earlier export. With --replay it decides every spec again by the packs in\n" +
			"the bundle and compares, byte for byte. With --database it checks the log in\n" +
			"DATABASE_URL or the private Postgres itself. With --witness it says what the\n" +
			"witness saw of the log, by its cosignatures.\n\n" +
			"With --spec and --admission it is the trainer's check before the first step:\n" +
			"the admission is for exactly these bytes, holds now, and is in the log. Give\n" +
			"--revocations a list from GET /v1/admissions/revoked, which is good for an hour.\n\n" +
			"Exit codes: 0 verified, 1 broken (the first bad place is named), 3 intact but\n" +
			"without --key, so that it was not shown whose it is, or not signed to the end\n" +
			"with a key that was given, or cosigned by none of the witnesses that were named,\n" +
			"2 usage.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output != "text" && o.output != "json" {
				return exitWith(exitUsage, errors.New("--output must be text or json"))
			}
			keys, err := loadPublicKeys(o.keys)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			witnesses := make([]ledger.Witness, len(o.witnesses))
			for i, text := range o.witnesses {
				if witnesses[i], err = ledger.ParseWitness(text); err != nil {
					return exitWith(exitUsage, fmt.Errorf("--witness: %w", err))
				}
			}
			var v *verification
			switch {
			case o.database && len(args) == 0 && o.since == "" && !o.replay:
				v, err = verifyDatabase(cmd, o.at, keys, witnesses)
			case o.spec != "" && o.admission != "" && len(args) == 0 && !o.database && o.since == "" && !o.replay:
				v, err = verifyAdmission(cmd, o, keys, witnesses)
			case o.spec != "" || o.admission != "" || o.revocations != "":
				return exitWith(exitUsage, errors.New("--spec and --admission go together, and --revocations with them"))
			case !o.database && len(args) == 1:
				v, err = verifyBundle(cmd, args[0], o, keys, witnesses)
			default:
				return exitWith(exitUsage, errors.New("give a bundle, or --spec and --admission, or --database alone"))
			}
			if err != nil {
				return err
			}
			return v.show(cmd.OutOrStdout(), o.output)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.keys, "key", nil, "public key of the gate, in PEM; several while keys are rotated")
	f.StringSliceVar(&o.witnesses, "witness", nil, "key of a witness of the log, NAME+HASH+KEY, as it gives it out; several")
	f.StringVar(&o.since, "since", "", "checkpoint.txt of an earlier export, that the log must go on from")
	f.StringVar(&o.spec, "spec", "", "spec that is about to train")
	f.StringVar(&o.admission, "admission", "", "its admission, from weir check --admission-out")
	f.StringVar(&o.revocations, "revocations", "", "list of revoked admissions")
	f.BoolVar(&o.replay, "replay", false, "decide every spec again by the packs in the bundle")
	f.BoolVar(&o.database, "database", false, "check the log in the database instead of a bundle")
	o.at.flags(f, "with --database: ")
	f.StringVar(&o.output, "output", "text", "text or json")
	return cmd
}

func verifyBundle(cmd *cobra.Command, path string, o verifyOptions, keys []ledger.PublicKey, witnesses []ledger.Witness) (*verification, error) {
	files, done, err := openBundle(path)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	defer done()
	lean()
	opt := ledger.VerifyOptions{Keys: keys, Witnesses: witnesses}
	if o.since != "" {
		if opt.Since, err = os.ReadFile(o.since); err != nil {
			return nil, exitWith(exitUsage, err)
		}
	}
	v := &verification{What: path, Proved: []string{}, NotProved: []string{}}
	got, err := ledger.VerifyBundle(cmd.Context(), files, opt)
	if err != nil {
		return v, v.broke(err)
	}
	m := got.Manifest
	v.proved("%s of project %s, %d to %d of log %s, are as they were exported", count(int(m.Shown), "entry", "entries"), m.Project, m.First, m.Size-1, m.Origin)
	v.proved("nothing between them was left out, added, changed or put in another order")
	if m.Payloads == "included" {
		v.proved("specs and decisions are the ones that the entries name%s", map[bool]string{true: fmt.Sprintf("; of %s they were erased and are marked so", count(int(m.Erased), "entry", "entries"))}[m.Erased > 0])
		for _, e := range got.Erasures {
			v.notProved("what %s said: erased at %s by %s, %s", count(e.Payloads, "decision", "decisions"), e.At.UTC().Format(time.RFC3339), e.Actor, e.Reason)
		}
	} else {
		v.notProved("what the specs and decisions say: the bundle has only their digests")
	}
	if m.Hidden > 0 {
		v.notProved("what %s given by hash only say: their places are proved", count(int(m.Hidden), "entry", "entries"))
	}
	switch {
	case got.Since != nil:
		v.proved("the log only went on since the earlier checkpoint of %d entries", got.Since.Size)
	case m.First > 0:
		v.notProved("what stands before entry %d", m.First)
	}
	if o.replay {
		n, err := replayBundle(files, m)
		if err != nil {
			return v, v.broke(err)
		}
		v.proved("decided again by the packs in the bundle, %s came out the same, byte for byte", count(n, "decision", "decisions"))
	}
	v.signedBy(got.SignedBy)
	seen := map[string]int64{}
	if c := got.Cosigned; c != nil {
		for _, by := range c.By {
			seen[by.Witness.ID()] = c.Checkpoint.Size
		}
		if len(witnesses) == 0 {
			v.notProved("who cosigned the log up to entry %d: the keys of witnesses were not given (--witness)", c.Checkpoint.Size-1)
		}
	}
	v.cosigned(witnesses, seen, m.Size)
	if len(seen) == 0 {
		v.notProved("that nobody was shown another history: keep checkpoint.txt and give it to the next check with --since")
	}
	return v, nil
}

// verifyAdmission is the trainer's check: may exactly these bytes train now?
func verifyAdmission(cmd *cobra.Command, o verifyOptions, keys []ledger.PublicKey, witnesses []ledger.Witness) (*verification, error) {
	c := ledger.AdmissionCheck{Now: time.Now(), Keys: keys, Witnesses: witnesses}
	for _, f := range []struct {
		path string
		data *[]byte
	}{{o.spec, &c.Spec}, {o.admission, &c.Admission}, {o.revocations, &c.Revocations}} {
		if f.path == "" {
			continue
		}
		var err error
		if *f.data, err = os.ReadFile(f.path); err != nil {
			return nil, exitWith(exitUsage, err)
		}
	}
	v := &verification{What: o.spec, Proved: []string{}, NotProved: []string{}}
	a, err := ledger.CheckAdmission(cmd.Context(), c)
	if err != nil {
		v.Result, v.Broken, v.File = "broken", err.Error(), o.admission
		return v, nil
	}
	v.proved("exactly these bytes were admitted for run %s by %s, until %s", a.RunRef, a.DecidedBy, a.ExpiresAt.UTC().Format(time.RFC3339))
	v.proved("the decision is entry %d of the gate's log", a.Log.Index)
	if len(a.Marks) > 0 {
		v.notProved("a full check: the gate ran %s", strings.Join(a.Marks, " and "))
	}
	if a.Revocations != nil {
		v.proved("it was not revoked until %s", a.Revocations.IssuedAt.UTC().Format(time.RFC3339))
	} else {
		v.notProved("that it was not revoked since: no list was given (--revocations)")
	}
	v.signedBy(a.SignedBy)
	seen := map[string]int64{}
	for _, by := range a.Cosigned {
		seen[by.Witness.ID()] = a.Log.Index + 1
	}
	v.cosigned(witnesses, seen, a.Log.Index+1)
	return v, nil
}

// lean has memory tidied earlier than usual: what is kept for each subject of a long
// log would else be there twice.
func lean() { debug.SetGCPercent(30) }

// openBundle opens a directory or a ZIP file.
func openBundle(path string) (fs.FS, func(), error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return os.DirFS(path), func() {}, nil
	}
	r, err := zip.OpenReader(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is neither a directory nor a ZIP file", path)
	}
	return r, func() { r.Close() }, nil
}

func verifyDatabase(cmd *cobra.Command, at databasePlace, keys []ledger.PublicKey, witnesses []ledger.Witness) (*verification, error) {
	ctx := cmd.Context()
	log := slog.New(slog.DiscardHandler)
	db, err := lookDatabase(ctx, at, log)
	if err != nil {
		return nil, exitWith(exitUsage, err) // 1 is for a log that is broken
	}
	defer db.close(context.WithoutCancel(ctx))
	st, err := store.Open(ctx, db.dsn, store.Config{Log: log}) // not migrated: who only looks changes nothing
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	defer st.Close()
	v := &verification{What: "the log in the database", Proved: []string{}, NotProved: []string{}}
	lean()
	c, err := st.CheckLog(ctx, func(int64) {}, keys...)
	if err != nil {
		return v, v.broke(err)
	}
	v.proved("%s are chained, and every node and checkpoint follows from them", count(int(c.Size), "entry", "entries"))
	seen, err := st.CheckCosignatures(ctx, witnesses...)
	if err != nil {
		return v, v.broke(err)
	}
	v.signedUpTo(c, len(keys) > 0)
	v.cosigned(witnesses, seen, c.Size)
	v.notProved("that it is the log that it always was: compare with a checkpoint that was kept elsewhere")
	return v, nil
}

func (v *verification) proved(format string, args ...any) {
	v.Proved = append(v.Proved, fmt.Sprintf(format, args...))
}

func (v *verification) notProved(format string, args ...any) {
	v.NotProved = append(v.NotProved, fmt.Sprintf(format, args...))
}

func (v *verification) signedBy(keys []ledger.PublicKey) {
	if len(keys) == 0 {
		v.Result, v.lacks = "intact", "not shown whose it is"
		v.notProved("whose it is: no public key was given (--key)")
		return
	}
	v.Result = "verified"
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID()
	}
	v.proved("signed by key %s", strings.Join(ids, ", "))
}

// signedUpTo tells which of the given keys signed the log in the database, and up to
// where. Less than all of it is not enough.
func (v *verification) signedUpTo(c *store.LogCheck, given bool) {
	v.Result = "verified"
	for _, by := range c.SignedBy {
		v.proved("signed by key %s up to entry %d", by.Key.ID(), by.Size-1)
	}
	for _, id := range c.Others {
		v.notProved("whose key %s is, which signed too: it was not given (--key)", id)
	}
	switch signed := c.Signed(); {
	case !given:
		v.Result, v.lacks = "intact", "not shown whose it is"
		v.notProved("whose it is: no public key was given (--key)")
	case signed == c.Size:
	case signed == 0:
		v.Result, v.lacks = "intact", "signed with none of these keys"
		v.notProved("whose it is: none of the keys that were given signed it")
	default:
		v.Result, v.lacks = "intact", fmt.Sprintf("signed up to entry %d only", signed-1)
		v.notProved("whose the last %s are: none of the keys that were given signed them", count(int(c.Size-signed), "entry", "entries"))
	}
}

// cosigned tells which witnesses saw the log of size entries, and up to where: seen
// has a size by ledger.Witness.ID. None of those that were asked for is not enough.
func (v *verification) cosigned(witnesses []ledger.Witness, seen map[string]int64, size int64) {
	most := int64(0)
	for _, w := range witnesses {
		if upTo := seen[w.ID()]; upTo > 0 {
			v.proved("witness %s saw the same history up to entry %d", w.Name(), upTo-1)
			most = max(most, upTo)
		} else {
			v.notProved("that witness %s saw this history: no cosignature by it is there", w.Name())
		}
	}
	switch {
	case len(witnesses) == 0:
	case most == 0:
		v.Result, v.lacks = "intact", cmp.Or(v.lacks, "seen by none of the witnesses")
	case most < size:
		v.notProved("that a witness saw the last %s", count(int(size-most), "entry", "entries"))
	}
}

// broke takes in what was found to be broken; what could not be read at all stays
// an error.
func (v *verification) broke(err error) error {
	var broken *ledger.BrokenError
	if !errors.As(err, &broken) {
		return exitWith(exitUsage, err)
	}
	v.Result, v.Broken, v.File = "broken", broken.Detail, broken.File
	if broken.Index >= 0 {
		v.Index = &broken.Index
	}
	v.Proved = []string{} // nothing of a broken bundle is to be relied on
	return nil
}

// show writes the outcome first and ends with its exit code.
func (v *verification) show(w io.Writer, output string) error {
	var buf bytes.Buffer
	if output == "json" {
		line, err := json.Marshal(v)
		if err != nil {
			return exitWith(exitFailed, err)
		}
		buf.Write(append(line, '\n'))
	} else {
		v.text(&buf)
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return exitWith(exitFailed, err)
	}
	switch v.Result {
	case "verified":
		return nil
	case "intact":
		return exitWith(exitNotAuthent, nil)
	}
	return exitWith(exitBroken, nil)
}

func (v *verification) text(w io.Writer) {
	l := &lines{w: w}
	switch v.Result {
	case "broken":
		l.put("BROKEN  %s", printable(v.What))
		place := v.File
		if v.Index != nil {
			place += fmt.Sprintf(", entry %d", *v.Index)
		}
		l.wrap("  ", "  ", place+": "+v.Broken)
		return
	case "intact":
		l.put("INTACT, but %s  %s", v.lacks, printable(v.What))
	default:
		l.put("VERIFIED  %s", printable(v.What))
	}
	for _, part := range []struct {
		title string
		texts []string
	}{{"Shown:", v.Proved}, {"Not shown:", v.NotProved}} {
		l.put("%s", part.title)
		for _, text := range part.texts {
			l.wrap("  - ", "    ", text)
		}
	}
}
