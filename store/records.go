package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"weir/screening"
	"weir/store/ledger"
)

// recordsAtOnce is how many decisions are read at once; their bytes are read by size.
const recordsAtOnce = 500

// Records gives the decisions that a selection shows, in the order of the log,
// after the entry at index after (-1: from the beginning). It ends at the newest
// checkpoint of when it began: whatever is written meanwhile comes with the next,
// and each comes once. read is called after each page that has any.
// ledger.ErrNothingToExport.
func (s *Store) Records(ctx context.Context, q ledger.Selection, after int64, each func(*ledger.Record) error, read func() error) error {
	return s.records(ctx, q, after, recordsAtOnce, each, read)
}

func (s *Store) records(ctx context.Context, q ledger.Selection, after int64, page int, each func(*ledger.Record) error, read func() error) error {
	e, err := s.extent(ctx, q, false)
	if err != nil {
		return err
	}
	x := &export{db: s.of(q.Project), q: q, e: e}
	for next := max(e.First, after+1); next < e.Size; {
		end := x.oneLook(next, page)
		list, err := x.records(ctx, next, end, page)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := each(r); err != nil {
				return err
			}
			next = r.LogIndex + 1
		}
		if len(list) < page {
			next = end
		}
		if len(list) == 0 {
			continue
		}
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// records gives the first of the entries from a place to another, at most a page.
func (x *export) records(ctx context.Context, from, end int64, page int) ([]*ledger.Record, error) {
	args := x.args(from, end)
	args["limit"], args["from_at"], args["any_from"] = page, x.q.From, x.q.From.IsZero()
	args["without"] = x.q.DigestsOnly
	args["to_at"], args["any_to"] = x.q.To, x.q.To.IsZero()
	rows, err := x.db.Query(ctx, `select e.log_index, e.at, e.prev_hash, e.hash, s.id::text, s.project, s.run_ref, s.team, s.engine, s.submitter,
			s.on_behalf_of, s.owner, s.spec_sha256, s.canonical_sha256, s.decision_sha256, s.outcome, to_char(s.as_of, 'YYYY-MM-DD'),
			n.status, case when n.status in ('revoked', 'blocked') and n.status <> s.status then 'recall' else s.decided_by end,
			case when n.status not in ('revoked', 'blocked') then s.admitted_until end,
			array(select f.term from finding f where f.screening_id = s.id and f.causing order by f.term),
			g.at, coalesce(g.actor, ''), coalesce(g.reason, ''),
			coalesce((select length(p.spec) + length(p.decision) from payload p where not @without::boolean
				and p.screening_id = s.id and p.outcome = s.outcome and p.month = s.month), 0)`+
		entryFrom+` left join lateral erased(s) g on true
		left join lateral (select screening_status(s, (select r.expires_at from review r where r.screening_id = s.id and r.closed_at is null)) as status offset 0) n on true
		where e.log_index >= @from and e.log_index < @end and e.type = '`+ledger.DecidedEvent+`' and s.id is not null
			and (@any_from::boolean or e.at >= @from_at::timestamptz) and (@any_to::boolean or e.at < @to_at::timestamptz)
			and `+selectedSQL+` order by e.log_index limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	var sizes []int64
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*ledger.Record, error) {
		r := &ledger.Record{Path: ledger.RecordPath, Bundles: map[string]ledger.Bundle{}, Results: []ledger.RecordFinding{}, Erased: []string{}, Masked: []string{}}
		var prev, hash, spec, canonical, decision []byte
		var erasedAt *time.Time
		var erased ledger.Erased
		var size int64
		err := row.Scan(&r.LogIndex, &r.Timestamp, &prev, &hash, &r.DecisionID, &r.Labels.Project, &r.Labels.RunRef, &r.Labels.Team, &r.Labels.Engine,
			&r.RequestedBy, &r.OnBehalfOf, &r.Owner, &spec, &canonical, &decision, &r.Result.Outcome, &r.Result.AsOf, &r.Result.Status,
			&r.Result.DecidedBy, &r.Result.AdmittedUntil, &r.Result.Causes, &erasedAt, &erased.Actor, &erased.Reason, &size)
		if err != nil {
			return nil, err
		}
		for to, sum := range map[*string][]byte{&r.PrevHash: prev, &r.Hash: hash, &r.Input.SpecSHA256: spec, &r.Input.CanonicalSHA256: canonical,
			&r.Result.DecisionSHA256: decision} {
			*to = hex.EncodeToString(sum)
		}
		r.Timestamp = r.Timestamp.UTC()
		if r.Result.AdmittedUntil != nil {
			*r.Result.AdmittedUntil = r.Result.AdmittedUntil.UTC()
		}
		if erasedAt != nil {
			erased.At = erasedAt.UTC()
			r.Erasure = &erased
		}
		sizes = append(sizes, size)
		return r, nil
	})
	if err != nil {
		return nil, translate(err)
	}
	if x.q.DigestsOnly {
		for _, r := range list {
			r.Masked = payloadPointers
			if r.Erasure != nil {
				r.Erased, r.Masked = payloadPointers, []string{}
			}
		}
		return list, nil
	}
	for from := 0; from < len(list); {
		n, size := 1, sizes[from]
		for from+n < len(list) && size+sizes[from+n] <= payloadBatch {
			size += sizes[from+n]
			n++
		}
		if err := x.fillRecords(ctx, list[from:from+n]); err != nil {
			return nil, err
		}
		from += n
	}
	return list, nil
}

// payloadPointers are the parts of a record that come from payloads.
var payloadPointers = []string{"/bundles", "/input/spec", "/results"}

// fillRecords adds what the payloads say.
func (x *export) fillRecords(ctx context.Context, list []*ledger.Record) error {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.DecisionID
	}
	kept, err := x.kept(ctx, ids)
	if err != nil {
		return err
	}
	for i, r := range list {
		k := kept[i]
		if k.erased != nil { // also if that was after the rows were read
			r.Erasure = k.erased
		}
		if k.spec == nil || k.decision == nil || r.Erasure != nil {
			r.Erased = payloadPointers
			continue
		}
		text := string(k.spec)
		r.Input.Spec = &text
		if err := fillDecision(r, k.decision); err != nil {
			return err
		}
	}
	return nil
}

func fillDecision(r *ledger.Record, decision []byte) error {
	var d screening.Decision
	if err := json.Unmarshal(decision, &d); err != nil {
		return fmt.Errorf("decision of screening %s: %w", r.DecisionID, err)
	}
	for _, p := range d.Packs {
		r.Bundles[p.ID] = ledger.Bundle{Revision: p.SHA256.String()}
	}
	add := func(layer screening.Layer, findings []*screening.Finding) error {
		for _, f := range findings {
			evidence, err := json.Marshal(f.Evidence, json.FormatNilSliceAsNull(false))
			if err != nil {
				return err
			}
			r.Results = append(r.Results, ledger.RecordFinding{ID: string(layer) + ":" + f.Term, Upheld: f.State == screening.Upheld,
				RuntimeCheckable: f.State != screening.NotCheckable, Reason: f.Reason, Evidence: evidence})
		}
		return nil
	}
	for _, v := range d.Safety {
		if err := add(screening.Safety, v.Findings); err != nil {
			return err
		}
	}
	for _, v := range d.Ethics {
		if err := add(screening.Ethics, v.Findings); err != nil {
			return err
		}
	}
	return nil
}
