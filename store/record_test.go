package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// checkRecord recomputes every chain as an outsider would and checks what must
// hold between the tables at any time.
func (w *world) checkRecord() {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), `select coalesce(screening_id::text, subject), seq, type, actor,
		to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), body, prev_hash, hash
		from audit_event order by coalesce(screening_id::text, subject), seq`)
	if err != nil {
		w.Fatal(err)
	}
	var last string
	var prev []byte
	n := 0
	for rows.Next() {
		var id, kind, actor, at string
		var seq int
		var body, prevHash, hash []byte
		if err := rows.Scan(&id, &seq, &kind, &actor, &at, &body, &prevHash, &hash); err != nil {
			w.Fatal(err)
		}
		if id != last {
			last, prev, n = id, nil, 0
		}
		n++
		sum := sha256.New()
		sum.Write(prev)
		fmt.Fprintf(sum, "%s\n%d\n%s\n%s\n%s\n", id, seq, kind, actor, at)
		sum.Write(body)
		if want := sum.Sum(nil); seq != n || !bytes.Equal(prevHash, prev) || !bytes.Equal(hash, want) {
			w.Errorf("screening %s, event %d: the chain is broken", id, seq)
		}
		prev = hash
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
	for what, sql := range map[string]string{
		"screenings without a decided event": `select count(*) from screening s where not exists
			(select from audit_event a where a.screening_id = s.id and a.seq = 1 and a.type = 'screening.decided')`,
		"escalations without a review": `select count(*) from screening s where outcome = 'escalate' and decided_by not in ('waiver', 'recall')
			and not exists (select from review r where r.screening_id = s.id)`,
		"reviews without a panel": `select count(*) from review r where not exists (select from review_panel p where p.review_id = r.id)`,
		"panel endpoints without a message": `select count(*) from review_panel p, unnest(p.endpoints) e
			where p.due_at is not null and not exists (select from delivery d where d.review_id = p.review_id and d.endpoint = e
				and d.type in ('review.opened', 'review.overdue'))`,
		"closed reviews without a closing event": `select count(*) from review r where r.closed_at is not null and not exists
			(select from audit_event a where a.screening_id = r.screening_id and a.type in ('review.decided', 'review.expired',
				'review.withdrawn', 'screening.superseded', 'review.superseded', 'screening.recalled'))`,
		"open reviews of a screening that is not pending": `select count(*) from review r join screening s on s.id = r.screening_id
			where r.closed_at is null and s.status <> case when r.kind = 'appeal' then 'blocked' else 'pending' end`,
		"pending screenings without an open review": `select count(*) from screening s where s.status = 'pending'
			and not exists (select from review r where r.screening_id = s.id and r.closed_at is null)`,
	} {
		if n := one[int](w, sql); n != 0 {
			w.Errorf("%d %s", n, what)
		}
	}
}

func TestAuditEventsCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("r", ""))
	for _, sql := range []string{`update audit_event set actor = 'x'`, `delete from audit_event`, `truncate audit_event`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	w.checkRecord()
}
