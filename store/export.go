package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"weir/screening"
	"weir/store/ledger"
)

// lateCommit is longer than any transaction may take: what began before a time is
// sequenced by the checkpoint that is this much later.
const lateCommit = time.Minute

// ExportExtent tells which part of the log a query covers.
// ledger.ErrNothingToExport.
func (s *Store) ExportExtent(ctx context.Context, q ledger.Selection) (e ledger.Extent, err error) {
	return s.extent(ctx, q, true)
}

// extent is ExportExtent; of a log that nobody signs now too, unless signed.
func (s *Store) extent(ctx context.Context, q ledger.Selection, signed bool) (e ledger.Extent, err error) {
	db := s.of(q.Project)
	if !signed {
		err = db.QueryRow(ctx, `select note is not null from log_checkpoint order by size desc limit 1`).Scan(&signed)
	}
	which := `note is not null` // as the index by time has it
	if !signed {
		which = `true`
	}
	args := pgx.StrictNamedArgs{"from": q.From, "to": q.To, "any_to": q.To.IsZero(), "late": lateCommit.Seconds(), "size": q.Size, "since": q.Since}
	if err == nil {
		// Safety: which is one of the two above.
		err = db.QueryRow(ctx, `with latest as (
				select size, at from log_checkpoint where size = @size::bigint and `+which+`
				union all
				(select size, at from log_checkpoint where @size = 0 and not @any_to::boolean and `+which+`
					and at >= @to::timestamptz + make_interval(secs => @late::double precision) order by at, size limit 1)
				union all
				(select size, at from log_checkpoint where @size = 0 and `+which+` order by size desc limit 1)
				limit 1
			), first as (
				select case when @since::bigint > 0 then @since else coalesce((select size from log_checkpoint
					where `+which+` and at <= @from::timestamptz order by at desc, size desc limit 1), 0) end as size
			)
			select f.size, l.size, l.at from first f, latest l where f.size < l.size`, args).Scan(&e.First, &e.Size, &e.MadeAt)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return e, ledger.ErrNothingToExport
	}
	e.MadeAt = e.MadeAt.UTC()
	return e, translate(err)
}

// Export writes a bundle through create, one file at a time, and reports after
// each page how many entries are written. It reads in pages: no transaction is
// open for long, and memory does not grow with the log. The same query with the
// same size writes the same bytes, unless something was erased in between.
func (s *Store) Export(ctx context.Context, q ledger.Selection, e ledger.Extent, create func(name string) (io.WriteCloser, error), progress func(done int64), keys ...ledger.Signer) error {
	m := ledger.Manifest{Project: q.Project, Filter: q.Words(), MadeAt: e.MadeAt, Engine: screening.EngineVersion, First: e.First, Size: e.Size,
		Outcomes: map[string]int{}, Payloads: "included", Packs: []ledger.PackFile{}}
	for _, bound := range []struct {
		text *string
		at   time.Time
	}{{&m.From, q.From}, {&m.To, q.To}} {
		if !bound.at.IsZero() {
			*bound.text = bound.at.UTC().Format(time.RFC3339Nano)
		}
	}
	x := &export{db: s.of(q.Project), q: q, e: e, m: &m, packs: map[screening.Digest256]bool{}, progress: progress}
	if q.DigestsOnly {
		m.Payloads = "digests"
	}
	w := ledger.NewBundleWriter(create, keys...)
	files := []struct {
		name  string
		write func(context.Context, io.Writer) error
	}{
		{ledger.CheckpointFile, x.checkpoint},
		{ledger.ProofFile, x.proof},
		{ledger.EntriesFile, x.entries},
		{ledger.PayloadsFile, x.payloads},
	}
	for _, f := range files {
		if f.name == ledger.PayloadsFile && q.DigestsOnly {
			continue
		}
		if err := w.Write(f.name, func(out io.Writer) error { return f.write(ctx, out) }); err != nil {
			return err
		}
	}
	if err := x.writePacks(ctx, w); err != nil {
		return err
	}
	public := make([]ledger.PublicKey, len(keys))
	for i, k := range keys {
		public[i] = k.Public()
	}
	if err := ledger.WriteGuides(w, &m, public); err != nil {
		return err
	}
	if err := x.writeCosigned(ctx, w); err != nil {
		return err
	}
	return w.Finish(ctx, m)
}

// export is an export under way.
type export struct {
	db       tenant
	q        ledger.Selection
	e        ledger.Extent
	m        *ledger.Manifest
	packs    map[screening.Digest256]bool
	progress func(int64)
}

func (x *export) checkpoint(ctx context.Context, w io.Writer) error {
	var note []byte
	if err := x.db.QueryRow(ctx, `select note from log_checkpoint where size = $1`, x.e.Size).Scan(&note); err != nil {
		return translate(err)
	}
	c, err := ledger.ReadUnsigned(note)
	if err != nil {
		return err
	}
	x.m.Origin = c.Origin
	_, err = w.Write(note)
	return err
}

func (x *export) proof(ctx context.Context, w io.Writer) error {
	read := nodes{ctx, x.db}
	before, err := read.ReadHashes(ledger.Frontier(x.e.First))
	if err != nil {
		return translate(err)
	}
	p := ledger.Proof{Before: make([]string, len(before))}
	for i, h := range before {
		p.Before[i] = hex.EncodeToString(h[:])
	}
	if x.q.Since > 0 {
		old, err := ledger.NewRange(x.e.First, before)
		if err != nil {
			return err
		}
		root := old.Root()
		x.m.Previous = &ledger.State{Size: x.e.First, Root: hex.EncodeToString(root[:])}
		consistency, err := ledger.ProveConsistency(x.e.Size, x.e.First, read)
		if err != nil {
			return translate(err)
		}
		for _, h := range consistency {
			p.Consistency = append(p.Consistency, hex.EncodeToString(h[:]))
		}
	}
	line, err := json.Marshal(p)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// exportPage is how many entries are read at once; their payloads, of up to 1 MiB
// each, are read one at a time.
const exportPage = 500

// selectedSQL is true for entries that a query shows: what is not about a
// screening, and screenings that fit.
const selectedSQL = ` coalesce(e.project, s.project, @project) = @project and (s.id is null or
	(@run_ref = '' or starts_with(s.run_ref, @run_ref)) and (@outcome = '' or s.outcome = @outcome))`

func (x *export) args(from, end int64) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"project": x.q.Project, "run_ref": x.q.RunRef, "outcome": x.q.Outcome, "from": from, "end": end, "limit": exportPage}
}

// oneLook gives where a statement ends that looks for a page of selected entries:
// in a long log hardly any may be of this project or run, and a statement that looked
// for all of a page would run out of time.
func (x *export) oneLook(from int64, page int) (end int64) { return min(from+40*int64(page), x.e.Size) }

func (x *export) entries(ctx context.Context, w io.Writer) error {
	var lines ledger.EntryLines
	for next := x.e.First; next < x.e.Size; {
		page, err := x.page(ctx, next)
		if err != nil {
			return err
		}
		for _, e := range page {
			leaf := e.leaf
			if e.selected {
				x.m.Shown++
				if e.decided {
					x.m.Outcomes[e.outcome]++
				}
			} else {
				leaf, x.m.Hidden = nil, x.m.Hidden+1
			}
			if _, err := w.Write(append(lines.Line(next, e.hash, leaf), '\n')); err != nil {
				return err
			}
			next++
		}
		x.progress(next - x.e.First)
	}
	return nil
}

// exported is an entry as it goes into a bundle. Its hash is the one that the
// tree was built over, whatever the entry says now: the reader shall see which
// entry was changed.
type exported struct {
	leaf     []byte
	hash     tlog.Hash
	selected bool
	decided  bool
	outcome  string
}

func (x *export) page(ctx context.Context, from int64) ([]exported, error) {
	places, err := hiddenLeaves(ctx, x.db, from, x.e.Size, exportPage)
	if err != nil {
		return nil, logError(err)
	}
	page := make([]exported, len(places))
	for i, p := range places {
		if want := from + int64(i); p.Index != want {
			return nil, fmt.Errorf("%w: entry %d is missing", ErrLog, want)
		}
		page[i].hash = p.Hash
	}
	if len(page) == 0 {
		return nil, fmt.Errorf("%w: entry %d is missing", ErrLog, from)
	}
	args := x.args(from, from+int64(len(page)))
	rows, err := x.db.Query(ctx, `select `+entryColumns+`, e.log_index, `+selectedSQL+`, coalesce(s.outcome, '')`+entryFrom+
		`where e.log_index >= @from and e.log_index < @end order by e.log_index limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var index int64
		var selected bool
		var outcome string
		e, err := scanEntry(row, &index, &selected, &outcome)
		if err != nil {
			return struct{}{}, err
		}
		out := &page[index-from]
		out.selected, out.outcome, out.decided = selected, outcome, e.Type == ledger.DecidedEvent
		out.leaf, err = e.Leaf()
		return struct{}{}, err
	})
	return page, logError(err)
}

// payloadBatch bounds the bytes of the payloads that are read at once.
const payloadBatch = 4 << 20

func (x *export) payloads(ctx context.Context, w io.Writer) error {
	for next := x.e.First; next < x.e.Size; {
		end := x.oneLook(next, exportPage)
		refs, err := x.payloadRefs(ctx, next, end)
		if err != nil {
			return err
		}
		full := len(refs) == exportPage
		for len(refs) > 0 {
			n, size := 1, refs[0].Bytes
			for n < len(refs) && size+refs[n].Bytes <= payloadBatch {
				size += refs[n].Bytes
				n++
			}
			if err := x.writePayloads(ctx, w, refs[:n]); err != nil {
				return err
			}
			next, refs = refs[n-1].Index+1, refs[n:]
		}
		if !full {
			next = end
		}
	}
	return nil
}

// payloadRef is an entry that names payloads, and how large these are.
type payloadRef struct {
	Index int64
	ID    string
	Bytes int64
}

// payloadRefs gives a page of them, from a place to another. A page's payloads could be half a gigabyte, so
// they are not read yet.
func (x *export) payloadRefs(ctx context.Context, from, end int64) ([]payloadRef, error) {
	rows, err := x.db.Query(ctx, `select e.log_index, s.id::text, coalesce((select length(p.spec) + length(p.decision) from payload p
			where p.screening_id = s.id and p.outcome = s.outcome and p.month = s.month), 0)`+
		entryFrom+`where e.log_index >= @from and e.log_index < @end
		and e.type = '`+ledger.DecidedEvent+`' and `+selectedSQL+` order by e.log_index limit @limit`, x.args(from, end))
	if err != nil {
		return nil, translate(err)
	}
	refs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[payloadRef])
	return refs, translate(err)
}

// writePayloads writes the lines of a few entries.
func (x *export) writePayloads(ctx context.Context, w io.Writer, refs []payloadRef) error {
	ids := make([]string, len(refs))
	for i, r := range refs {
		ids[i] = r.ID
	}
	list, err := x.kept(ctx, ids)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for i, k := range list {
		p := ledger.Payload{Index: refs[i].Index, Spec: k.spec, Decision: k.decision}
		if k.erased != nil {
			p.Spec, p.Decision, p.Erased = nil, nil, k.erased
			x.m.Erased++
		}
		if err := x.note(p.Decision); err != nil {
			return err
		}
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
	}
	_, err = w.Write(lines.Bytes())
	return err
}

// keptBytes are the payloads of a screening, or who erased them.
type keptBytes struct {
	spec, decision []byte
	erased         *ledger.Erased
}

// kept reads the payloads of a few screenings, in their order, all before any is
// written: a reader that is slow must not hold up the database.
func (x *export) kept(ctx context.Context, ids []string) (list []keptBytes, err error) {
	// A month that goes meanwhile is gone for who began before, and its erasure not there yet.
	lost := func(k keptBytes) bool { return k.erased == nil && (k.spec == nil || k.decision == nil) }
	for range 2 {
		if list, err = x.keptNow(ctx, ids); err != nil || !slices.ContainsFunc(list, lost) {
			break
		}
	}
	return list, err
}

func (x *export) keptNow(ctx context.Context, ids []string) ([]keptBytes, error) {
	rows, err := x.db.Query(ctx, `select spec_of(s), decision_of(s), e.at, coalesce(e.actor, ''), coalesce(e.reason, '')
		from unnest($1::uuid[]) with ordinality as u(id, n) join screening s on s.id = u.id left join lateral erased(s) e on true order by u.n`, ids)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k keptBytes, err error) {
		var at *time.Time
		var erased ledger.Erased
		if err := row.Scan(&k.spec, &k.decision, &at, &erased.Actor, &erased.Reason); err != nil {
			return k, err
		}
		if at != nil {
			erased.At = at.UTC()
			k.erased = &erased
		}
		return k, nil
	})
	if err == nil && len(list) != len(ids) {
		err = fmt.Errorf("%w: %d screenings are missing", ErrLog, len(ids)-len(list))
	}
	return list, logError(err)
}

// note remembers the packs of a decision.
func (x *export) note(decision []byte) error {
	if decision == nil {
		return nil
	}
	var d struct {
		Packs []screening.PackRef `json:"packs"`
	}
	if err := json.Unmarshal(decision, &d); err != nil {
		return fmt.Errorf("%w: a decision cannot be read: %w", ErrLog, err)
	}
	for _, p := range d.Packs {
		x.packs[p.SHA256] = true
	}
	return nil
}

func (x *export) writePacks(ctx context.Context, w *ledger.BundleWriter) error {
	digests := make([][]byte, 0, len(x.packs))
	for d := range x.packs {
		digests = append(digests, d[:])
	}
	rows, err := x.db.Query(ctx, `select id, encode(sha256, 'hex'), json from pack where sha256 = any($1) order by id, sha256`, digests)
	if err != nil {
		return translate(err)
	}
	type pack struct {
		ID, SHA256 string
		JSON       []byte
	}
	packs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pack])
	if err != nil {
		return translate(err)
	}
	for _, p := range packs {
		name := "packs/" + p.ID + "-" + p.SHA256[:12] + ".json"
		if err := w.Write(name, func(out io.Writer) error { _, err := out.Write(p.JSON); return err }); err != nil {
			return err
		}
		x.m.Packs = append(x.m.Packs, ledger.PackFile{ID: p.ID, SHA256: p.SHA256, File: name})
	}
	return nil
}

// KeepPacks keeps the packs that decide from now on.
func (s *Store) KeepPacks(ctx context.Context, packs []*screening.Pack) error {
	batch := &pgx.Batch{}
	for _, p := range packs {
		batch.Queue(`insert into pack (sha256, id, version, json) values ($1, $2, $3, $4) on conflict do nothing`, p.SHA256[:], p.ID, p.Version, p.JSON())
	}
	return translate(s.every.SendBatch(ctx, batch).Close())
}
