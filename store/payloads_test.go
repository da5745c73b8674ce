package store_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/store/ledger"
)

func admin(subject string) review.Principal {
	p := principal(subject)
	p.Scopes = append(p.Scopes, review.ScopeAdmin)
	return p
}

func (w *world) erase(id string) (*review.Erasure, error) {
	w.Helper()
	return w.desk.Erase(w.Context(), admin("chi"), review.ErasureRequest{ScreeningID: id, Reason: "asked by the data subject"})
}

// ended makes the admission of a screening run out.
func (w *world) ended(id string) {
	w.Helper()
	w.exec(`update screening set admitted_until = now() - interval '1 second' where id = $1`, id)
}

func TestErase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	if err := w.store.KeepPacks(t.Context(), w.packs()); err != nil {
		t.Fatal(err)
	}
	raw := spec("r", "", "minors=present", "sexual_content=present") // blocked by the floor
	s := w.submit("bo", raw)
	kept := w.submit("bo", spec("other", ""))
	e, err := w.erase(s.ID)
	if err != nil || e.Screenings != 1 || e.SpecSHA256 != s.SpecSHA256 || e.Actor != "chi" {
		t.Fatalf("%+v, %v", e, err)
	}
	got, err := w.desk.Screening(t.Context(), principal("bo"), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := &review.Erased{At: e.At, Actor: "chi", Reason: "asked by the data subject"}
	if diff := cmp.Diff(want, got.Erased); diff != "" || got.Decision != nil || got.Status != review.StatusBlocked {
		t.Errorf("status %s, decision %q, erased (-want +got):\n%s", got.Status, got.Decision, diff)
	}
	for what, do := range map[string]func() error{
		"spec bytes": func() error { _, err := w.desk.SpecBytes(t.Context(), principal("bo"), s.ID); return err },
		"explain":    func() error { _, err := w.desk.Explain(t.Context(), principal("bo"), got); return err },
		"appeal":     func() error { _, err := w.desk.Appeal(t.Context(), principal("bo"), s.ID, "why"); return err },
		"reopen":     func() error { _, err := w.desk.Reopen(t.Context(), principal("bo"), s.ID, "why"); return err },
		"correct": func() error {
			_, _, err := w.desk.Correct(t.Context(), principal("bo"), review.CorrectionRequest{ScreeningID: s.ID, Text: "It was no such thing."})
			return err
		},
		"waive": func() error {
			_, err := w.desk.Waive(t.Context(), principal("dee"), review.WaiverRequest{ScreeningID: s.ID, Term: "ethics:personal_data_inside", Reason: "r", Ticket: "t", Days: 1})
			return err
		},
	} {
		if err := do(); !errors.Is(err, review.ErrErased) {
			t.Errorf("%s: %v, want ErrErased", what, err)
		}
	}
	if w.gate(raw) != review.StatusBlocked {
		t.Error("the gate forgot the block")
	}
	page, err := w.desk.Replay(t.Context(), review.Principal{Project: "default", Scopes: []review.Scope{review.ScopeAudit}},
		review.ReplayQuery{Candidate: w.desk.Setup().Vocabulary, Until: time.Now().Add(time.Hour), Limit: 10})
	if err != nil || page.Replayed != 1 || page.Erased != 1 {
		t.Errorf("replay: %+v, %v", page, err)
	}
	if _, err := w.erase(s.ID); !errors.Is(err, review.ErrConflict) {
		t.Errorf("again: %v, want a conflict", err)
	}
	if n := one[int](w, `select count(*) from payload`); n != 1 {
		t.Errorf("%d payloads left, want the other's", n)
	}

	// The log goes on, and the bundle says what is gone, by whom and why.
	w.sequenceAll(100, key)
	w.checkRecord()
	w.checkLog(key.Public())
	files, _ := w.export(ledger.Selection{}, key)
	v, err := ledger.VerifyBundle(t.Context(), files, ledger.VerifyOptions{Keys: []ledger.PublicKey{key.Public()}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ledger.Erasures{{Erased: ledger.Erased(*want), Payloads: 1}}, v.Erasures); diff != "" || v.Manifest.Erased != 1 {
		t.Errorf("%d erased (-want +got):\n%s", v.Manifest.Erased, diff)
	}

	// The same bytes again are a new screening with bytes of its own; what was erased stays so.
	again := w.submit("bo", raw)
	if again.ID == s.ID || again.Erased != nil || again.Decision == nil {
		t.Fatalf("submitted again: %+v", again)
	}
	if bytes, err := w.desk.SpecBytes(t.Context(), principal("bo"), again.ID); err != nil || string(bytes) != string(raw) {
		t.Errorf("%q, %v", bytes, err)
	}
	if got, err = w.desk.Screening(t.Context(), principal("bo"), s.ID); err != nil || got.Erased == nil || got.Decision != nil {
		t.Errorf("the old one: %+v, %v", got, err)
	}
	if e, err := w.erase(again.ID); err != nil || e.Screenings != 1 {
		t.Errorf("erased again: %+v, %v", e, err)
	}
	if kept, err = w.desk.Screening(t.Context(), principal("bo"), kept.ID); err != nil || kept.Erased != nil || kept.Decision == nil {
		t.Errorf("another spec: %+v, %v", kept, err)
	}
}

func TestEraseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pending := w.submit("bo", spec("pending", "", "violent=present"))
	admitted := w.submit("bo", spec("admitted", ""))
	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	for _, s := range []*review.Screening{pending, admitted} {
		_, err := w.erase(s.ID)
		refused(s.RunRef, err, review.ErrConflict)
	}
	r := review.ErasureRequest{SpecSHA256: admitted.SpecSHA256, Reason: "why"}
	_, err := w.desk.Erase(t.Context(), principal("chi"), r)
	refused("without scope admin", err, review.ErrNotAllowed)
	_, err = w.desk.Erase(t.Context(), admin("nobody"), r)
	refused("by nobody who is declared", err, review.ErrNotAllowed)
	other := admin("chi")
	other.Project = "other"
	_, err = w.desk.Erase(t.Context(), other, r)
	refused("from another project", err, review.ErrNotFound)
	_, err = w.erase("00000000-0000-0000-0000-000000000000")
	refused("of nothing", err, review.ErrNotFound)
	var invalid *screening.InvalidError
	if _, err := w.desk.Erase(t.Context(), admin("chi"), review.ErasureRequest{ScreeningID: admitted.ID, Reason: " \u200b"}); !errors.As(err, &invalid) {
		t.Errorf("blank reason: %v", err)
	}
	if n := one[int](w, `select count(*) from payload`); n != 2 {
		t.Errorf("%d payloads, want 2", n)
	}
	w.ended(admitted.ID)
	if e, err := w.desk.Erase(t.Context(), admin("chi"), r); err != nil || e.Screenings != 1 {
		t.Errorf("after the admission: %+v, %v", e, err)
	}
}

// A review that expired over bytes that were erased begins anew when they come again.
func TestErasedReviewBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "violent=present")
	s := w.submit("bo", raw)
	w.overdue(s)
	if _, err := w.desk.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.erase(s.ID); err != nil {
		t.Fatal(err)
	}
	again := w.submit("bo", raw)
	if again.ID == s.ID || again.Status != review.StatusPending || again.Decision == nil {
		t.Errorf("%+v", again)
	}
	w.checkRecord()
}

// Whoever comes first, submissions and erasures of the same bytes leave either
// bytes or an erasure, and never an admission without bytes.
func TestEraseRacesWithSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "minors=present", "sexual_content=present")
	first := w.submit("bo", raw)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 10 {
				if _, _, err := w.desk.Submit(t.Context(), principal("bo"), raw, nil); err != nil {
					t.Errorf("submit: %v", err)
				}
				if _, err := w.erase(first.ID); err != nil && !errors.Is(err, review.ErrConflict) {
					t.Errorf("erase: %v", err)
				}
			}
		})
	}
	work.Wait()
	if n := one[int](w, `select count(*) from screening s where (decision_of(s) is null) <> exists (select from erased(s))`); n != 0 {
		t.Errorf("%d screenings have bytes and an erasure, or neither", n)
	}
	w.checkRecord()
}

// aged moves a screening and its bytes months back.
func (w *world) aged(id string, months int) {
	w.Helper()
	w.exec(`select ensure_payload_part(outcome, (month - make_interval(months => $2))::date) from screening where id = $1`, id, months)
	w.exec(`with moved as (delete from payload where screening_id = $1 returning *)
		insert into payload (screening_id, project, outcome, month, spec, decision)
		select screening_id, project, outcome, (month - make_interval(months => $2))::date, spec, decision from moved`, id, months)
	w.exec(`update screening set month = (month - make_interval(months => $2))::date, created_at = created_at - make_interval(months => $2) where id = $1`, id, months)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	old, older, recent := w.submit("bo", spec("old", "")), w.submit("bo", spec("older", "")), w.submit("bo", spec("recent", ""))
	blocked := w.submit("bo", spec("blocked", "", "minors=present", "sexual_content=present"))
	w.aged(old.ID, 4)
	w.aged(older.ID, 5)
	w.aged(blocked.ID, 6)
	w.ended(old.ID)
	keep := review.Retention{screening.OutcomeAdmit: 31}
	names := func(parts []store.PayloadPart) (out []string) {
		for _, p := range parts {
			out = append(out, fmt.Sprintf("%s %d", p.Outcome, p.Screenings))
		}
		return out
	}
	// The older one is still admitted: its month waits.
	gone, err := w.store.EraseOld(t.Context(), keep)
	if diff := cmp.Diff([]string{"admit 1"}, names(gone)); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	parts, err := w.store.PayloadParts(t.Context(), keep)
	if err != nil || len(parts) < 5 || parts[1].InUse != 1 || !parts[1].Due || parts[0].Due {
		t.Errorf("%+v, %v", parts, err)
	}
	w.ended(older.ID)
	for range 2 { // the second finds nothing to do
		if _, err := w.store.EraseOld(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		s    *review.Screening
		gone bool
	}{{old, true}, {older, true}, {recent, false}, {blocked, false}} {
		s, err := w.desk.Screening(t.Context(), principal("bo"), tt.s.ID)
		if err != nil || (s.Erased != nil) != tt.gone || (s.Decision == nil) != tt.gone {
			t.Errorf("%s: %+v, %v", tt.s.RunRef, s, err)
		} else if tt.gone && (s.Erased.Actor != "weir" || s.Erased.Reason != "retention") {
			t.Errorf("%s: %+v", tt.s.RunRef, s.Erased)
		}
	}
	if got := one[int](w, `select count(*) from audit_event where type = 'payload.erased' and actor = 'weir'`); got != 2 {
		t.Errorf("%d events, want 2", got)
	}
	w.sequenceAll(100, key)
	w.checkRecord()
	w.checkLog(key.Public())
	if _, err := w.store.CheckLog(t.Context(), func(int64) {}, key.Public()); err != nil {
		t.Error(err)
	}
	files, _ := w.export(ledger.Selection{}, key)
	if v, err := ledger.VerifyBundle(t.Context(), files, ledger.VerifyOptions{}); err != nil || v.Manifest.Erased != 2 || len(v.Erasures) != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	// What was blocked can be appealed only as long as somebody could look at it.
	if again := w.submit("bo", spec("old", "")); again.ID == old.ID || again.Decision == nil {
		t.Errorf("submitted again: %+v", again)
	}
}

// Many replicas sweep at once, and while a reader holds a month nobody waits for it.
func TestRetentionOnManyReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.submit("bo", spec("old", ""))
	w.aged(old.ID, 4)
	w.ended(old.ID)
	keep := review.Retention{screening.OutcomeAdmit: 31}
	reader, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `select from payload limit 1`); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.store.EraseOld(t.Context(), keep); err != nil || len(gone) != 0 {
		t.Errorf("under a reader: %v, %v", gone, err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			if _, err := w.store.EraseOld(t.Context(), keep); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if _, err := w.store.EraseOld(t.Context(), keep); err != nil {
		t.Error(err)
	}
	if n := one[int](w, `select count(*) from erasure`); n != 1 {
		t.Errorf("%d erasures, want 1", n)
	}
}

// The first submission of a month makes its tables when nobody did before.
func TestSubmitMakesTheMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("r1", ""))
	for _, outcome := range []string{"admit", "escalate", "block"} {
		w.exec(`drop table payload_` + outcome + `_` + one[string](w, `select to_char(now() at time zone 'utc', 'YYYYMM')`))
	}
	if s := w.submit("bo", spec("r2", "")); s.Decision == nil {
		t.Error("no decision")
	}
	if err := w.store.PrepareMonths(t.Context()); err != nil {
		t.Error(err)
	}
	if n := one[int](w, `select count(*) from pg_class where relname ~ '^payload_(admit|escalate|block)_\d{6}$'`); n != 9 {
		t.Errorf("%d tables, want those of this month and of two ahead", n)
	}
}

func TestPayloadsAndErasuresAreNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "minors=present", "sexual_content=present"))
	refused := func(sql string) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	refused(`update payload set spec = ''`)
	if _, err := w.erase(s.ID); err != nil {
		t.Fatal(err)
	}
	refused(`update erasure set reason = 'x'`)
	refused(`delete from erasure`)
	refused(`truncate erasure`)
}

// What came with the report of a bypass goes too, and the report stays.
func TestEraseBypassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sum := screening.Sum([]byte("bypassed"))
	w.exec(`insert into bypass (project, id, submitter, bypassed_at, reason, spec_sha256, spec, run_ref, outcome)
		values ('default', gen_random_uuid(), 'bo', now(), 'down', $1, 'bypassed', '', '')`, sum[:])
	if _, err := w.pool.Exec(t.Context(), `update bypass set spec = null, reason = 'x'`); err == nil {
		t.Error("more than the spec was taken away")
	}
	e, err := w.desk.Erase(t.Context(), admin("chi"), review.ErasureRequest{SpecSHA256: sum, Reason: "why"})
	if err != nil || e.Screenings != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if n := one[int](w, `select count(*) from bypass where spec is null`); n != 1 {
		t.Errorf("%d reports without a spec, want 1", n)
	}
	if _, err := w.desk.Erase(t.Context(), admin("chi"), review.ErasureRequest{SpecSHA256: sum, Reason: "why"}); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	w.sequenceAll(100)
	w.checkRecord()
}

// A month that goes while an export reads it: who began before sees no bytes any more
// and no erasure yet, and looks again.
func TestExportMeetsRetention(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"bundle", "rows"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := signingKey(t)
			w.ok("packs", w.store.KeepPacks(t.Context(), w.packs()))
			old := w.submit("bo", spec("old", ""))
			w.submit("bo", spec("recent", ""))
			w.aged(old.ID, 4)
			w.ended(old.ID)
			w.sequenceAll(100, key)
			letGo := w.hold("insert on correction") // nobody inserts one: only the lock is of use
			w.exec(`create or replace function spec_of(s screening) returns bytea stable language plpgsql as $$
				begin
					perform pg_advisory_xact_lock_shared(42);
					return (select p.spec from payload p where p.screening_id = s.id and p.outcome = s.outcome and p.month = s.month);
				end $$`)
			done := make(chan error, 1)
			go func() {
				if form == "rows" {
					var erased []*ledger.Erased
					err := store.RecordsBy(t.Context(), w.store, ledger.Selection{Project: "default"}, 500, func(r *ledger.Record) error {
						if r.DecisionID == old.ID && (r.Erasure == nil || len(r.Erased) == 0 || r.Input.Spec != nil) {
							return fmt.Errorf("%+v", r)
						}
						erased = append(erased, r.Erasure)
						return nil
					})
					if err == nil && len(erased) != 2 {
						err = fmt.Errorf("%d rows", len(erased))
					}
					done <- err
					return
				}
				files := fstest.MapFS{}
				e, err := w.store.ExportExtent(t.Context(), ledger.Selection{Project: "default"})
				if err == nil {
					err = w.store.Export(t.Context(), ledger.Selection{Project: "default"}, e,
						func(name string) (io.WriteCloser, error) { return &memFile{files: files, name: name}, nil }, func(int64) {}, key)
				}
				if err == nil {
					var v *ledger.Verified
					if v, err = ledger.VerifyBundle(t.Context(), files, ledger.VerifyOptions{}); err == nil && v.Manifest.Erased != 1 {
						err = fmt.Errorf("%+v", v.Manifest)
					}
				}
				done <- err
			}()
			w.until(somebodyWaits)
			gone, err := w.store.EraseOld(t.Context(), review.Retention{screening.OutcomeAdmit: 31})
			if err != nil || len(gone) != 1 {
				t.Fatalf("%+v, %v", gone, err)
			}
			letGo()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
