package store

import (
	"context"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"

	"weir/store/ledger"
)

// cosignedNote is the note of a checkpoint c with what witnesses added to it.
const cosignedNote = `c.note || coalesce((select string_agg(convert_to(k.line, 'UTF8'), ''::bytea order by k.witness)
	from log_cosignature k where k.size = c.size), ''::bytea)`

// SignedCheckpoint gives the latest checkpoint as the log signed it, which is what
// witnesses are asked to cosign; nil when there is none.
func (s *Store) SignedCheckpoint(ctx context.Context) ([]byte, error) {
	var note []byte
	err := s.every.QueryRow(ctx, `select note from log_checkpoint where note is not null order by size desc limit 1`).Scan(&note)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return note, translate(err)
}

// Checkpoint gives the latest signed checkpoint with its cosignatures, or, on
// demand, the latest that has any. ErrNotFound when there is none.
func (s *Store) Checkpoint(ctx context.Context, cosigned bool) ([]byte, error) {
	return checkpoint(ctx, s.nobody(), cosigned)
}

func checkpoint(ctx context.Context, db Querier, cosigned bool) (note []byte, err error) {
	which := `where c.note is not null order by c.size desc limit 1`
	if cosigned {
		which = `where c.size = (select max(size) from log_cosignature)`
	}
	err = db.QueryRow(ctx, `select `+cosignedNote+` from log_checkpoint c `+which).Scan(&note)
	return note, translate(err)
}

// CosignedSizes gives the size of the newest checkpoint that each of some
// witnesses cosigned, by ledger.Witness.ID; none for one that never did.
func (s *Store) CosignedSizes(ctx context.Context, witnesses []string) (map[string]int64, error) {
	rows, err := s.every.Query(ctx, `select w, (select max(size) from log_cosignature where witness = w) from unnest($1::text[]) w`, witnesses)
	if err != nil {
		return nil, translate(err)
	}
	sizes := map[string]int64{}
	var witness string
	var size *int64
	_, err = pgx.ForEachRow(rows, []any{&witness, &size}, func() error {
		if size != nil {
			sizes[witness] = *size
		}
		return nil
	})
	return sizes, translate(err)
}

// KeepCosignatures keeps what witnesses added to the checkpoint of a size, all at
// once: who asks for the newest that is cosigned gets them together. Of a witness
// the first stays.
func (s *Store) KeepCosignatures(ctx context.Context, size int64, list []ledger.Cosignature) error {
	ids, lines := make([]string, len(list)), make([]string, len(list))
	for i, c := range list {
		ids[i], lines[i] = c.Witness.ID(), c.Line
	}
	_, err := s.every.Exec(ctx, `insert into log_cosignature (size, witness, line) select $1, * from unnest($2::text[], $3::text[]) on conflict do nothing`, size, ids, lines)
	return translate(err)
}

// cosignaturesAtOnce is how many are read at once: there is one every few seconds, and
// checking all of them takes longer than a statement may.
const cosignaturesAtOnce = 1000

// CheckCosignatures holds every cosignature of the given witnesses to its
// checkpoint, and gives the size of the newest of each, by ledger.Witness.ID. A
// *ledger.BrokenError names the first that does not hold.
func (s *Store) CheckCosignatures(ctx context.Context, witnesses ...ledger.Witness) (map[string]int64, error) {
	newest := map[string]int64{}
	for _, w := range witnesses {
		for n := cosignaturesAtOnce; n == cosignaturesAtOnce; {
			page, err := s.cosignatures(ctx, w, newest[w.ID()])
			if err != nil {
				return nil, err
			}
			for _, c := range page {
				found, err := ledger.Cosignatures(c.Note, w)
				if err != nil || len(found) != 1 {
					return nil, &ledger.BrokenError{File: "log_cosignature", Index: c.Size, Detail: "does not hold for the checkpoint that it is of"}
				}
				newest[w.ID()] = c.Size
			}
			n = len(page)
		}
	}
	return newest, nil
}

// cosignedBy is a checkpoint with what one witness added to it.
type cosignedBy struct {
	Size int64
	Note []byte
}

// cosignatures reads a page of those of a witness, of checkpoints larger than a size.
func (s *Store) cosignatures(ctx context.Context, w ledger.Witness, after int64) ([]cosignedBy, error) {
	rows, err := s.every.Query(ctx, `select c.size, c.note || convert_to(k.line, 'UTF8') from log_cosignature k join log_checkpoint c using (size)
		where k.witness = $1 and k.size > $2 order by k.size limit $3`, w.ID(), after, cosignaturesAtOnce)
	if err != nil {
		return nil, translate(err)
	}
	page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[cosignedBy])
	return page, translate(err)
}

// cosigned gives the newest state in an export that witnesses cosigned, nil when
// there is none.
func (x *export) cosigned(ctx context.Context) (note []byte, err error) {
	err = x.db.QueryRow(ctx, `select `+cosignedNote+` from log_checkpoint c
		where c.size = (select max(size) from log_cosignature where size between $1 and $2)`, max(x.e.First, 1), x.e.Size).Scan(&note)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return note, translate(err)
}

// writeCosigned writes that state. It comes after everything long: it may be
// another when an export that was cut off goes on, and what is there by then must
// not change.
func (x *export) writeCosigned(ctx context.Context, w *ledger.BundleWriter) error {
	note, err := x.cosigned(ctx)
	if err != nil || note == nil {
		return err
	}
	return w.Write(ledger.CosignedFile, func(out io.Writer) error {
		_, err := out.Write(note)
		return err
	})
}
