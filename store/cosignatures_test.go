package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	cosig "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"weir/review"
	"weir/store"
	"weir/store/ledger"
)

// newWitness is a witness that another library signs for.
func newWitness(t *testing.T, name string) (ledger.Witness, note.Signer) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cosig.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.ParseWitness(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return w, signer
}

// cosign keeps what a witness adds to the latest checkpoint, and gives its size.
func (w *world) cosign(by ledger.Witness, signer note.Signer) int64 {
	w.Helper()
	checkpoint, err := w.store.SignedCheckpoint(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	c, err := ledger.ReadUnsigned(checkpoint)
	if err != nil {
		w.Fatal(err)
	}
	text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
	signed, err := note.Sign(&note.Note{Text: string(text) + "\n"}, signer)
	if err != nil {
		w.Fatal(err)
	}
	_, answer, _ := bytes.Cut(signed, []byte("\n\n"))
	got, err := ledger.ReadCosignature(checkpoint, answer, by)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.store.KeepCosignatures(w.Context(), c.Size, []ledger.Cosignature{got}); err != nil {
		w.Fatal(err)
	}
	return c.Size
}

// What witnesses saw goes with the state that they saw, wherever that goes out, and
// is there for every project.
func TestCosignaturesGoWithTheirCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	alpha, alphaSigns := newWitness(t, "one.example")
	beta, betaSigns := newWitness(t, "two.example")
	if note, err := w.store.SignedCheckpoint(t.Context()); note != nil || err != nil {
		t.Errorf("before there is anything: %s, %v", note, err)
	}
	for i := range 3 {
		w.submit("bo", spec(fmt.Sprint("early/", i), ""))
	}
	w.sequenceAll(2, key)
	if _, err := w.store.Checkpoint(t.Context(), true); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("before anybody cosigned: %v, want ErrNotFound", err)
	}
	early := w.cosign(alpha, alphaSigns)
	w.cosign(alpha, alphaSigns) // as by another replica; the first stays
	w.submit("bo", spec("late", ""))
	w.sequenceAll(100, key)

	by := func(note []byte) (size int64, names string) {
		t.Helper()
		c, _, err := ledger.ReadCheckpoint(note, key.Public())
		if err != nil {
			t.Fatalf("%v\n%s", err, note)
		}
		list, err := ledger.Cosignatures(note, alpha, beta)
		if err != nil {
			t.Fatalf("%v\n%s", err, note)
		}
		for _, c := range list {
			names += c.Witness.Name() + " "
		}
		return c.Size, names
	}
	check := func(what string, note []byte, err error, size int64, names string) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		if gotSize, got := by(note); gotSize != size || got != names {
			t.Errorf("%s: %d entries, cosigned by %q; want %d, %q", what, gotSize, got, size, names)
		}
	}
	latest, err := w.store.Checkpoint(t.Context(), false)
	check("the latest", latest, err, early+1, "")
	cosigned, err := w.store.Checkpoint(t.Context(), true)
	check("the latest that is cosigned", cosigned, err, early, "one.example ")
	place := func(index int64) string {
		return one[string](w, `select screening_id::text from audit_event where log_index = $1`, index)
	}
	proved, _, proof, err := w.store.ProveEvent(t.Context(), "default", place(1), 1)
	check("the proof of what was there", proved, err, early, "one.example ")
	state, _, _ := ledger.ReadCheckpoint(proved, key.Public())
	entries, err := w.store.LogEntries(t.Context(), "default", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.CheckInclusion(1, entries[0].Hash, proof); err != nil {
		t.Error(err)
	}
	proved, _, _, err = w.store.ProveEvent(t.Context(), "default", place(early), 1)
	check("the proof of what came after", proved, err, early+1, "")
	sizes, err := w.store.CosignedSizes(t.Context(), []string{alpha.ID(), beta.ID()})
	if err != nil || len(sizes) != 1 || sizes[alpha.ID()] != early {
		t.Errorf("sizes %v, %v", sizes, err)
	}

	opt := ledger.VerifyOptions{Keys: []ledger.PublicKey{key.Public()}, Witnesses: []ledger.Witness{alpha, beta}}
	bundle, _ := w.export(ledger.Selection{}, key)
	got, err := ledger.VerifyBundle(t.Context(), bundle, opt)
	if err != nil || got.Cosigned == nil || got.Cosigned.Checkpoint.Size != early || len(got.Cosigned.By) != 1 {
		t.Fatalf("export: %+v, %v", got, err)
	}
	w.cosign(alpha, alphaSigns)
	w.cosign(beta, betaSigns)
	cosigned, err = w.store.Checkpoint(t.Context(), false)
	check("cosigned by both", cosigned, err, early+1, "one.example two.example ")
	bundle, _ = w.export(ledger.Selection{Since: early}, key)
	if got, err = ledger.VerifyBundle(t.Context(), bundle, opt); err != nil || got.Cosigned == nil || got.Cosigned.Checkpoint.Size != early+1 || len(got.Cosigned.By) != 2 {
		t.Errorf("export of the rest: %+v, %v", got, err)
	}
	bundle, _ = w.export(ledger.Selection{Size: 2}, key)
	if got, err = ledger.VerifyBundle(t.Context(), bundle, opt); err != nil || got.Cosigned != nil {
		t.Errorf("export of what nobody cosigned: %+v, %v", got, err)
	}

	var seen int
	if err := store.Of(w.store, "other").QueryRow(t.Context(), `select count(*) from log_cosignature`).Scan(&seen); err != nil || seen != 3 {
		t.Errorf("another project sees %d of 3, %v", seen, err)
	}
	for _, change := range []string{`update log_cosignature set at = now()`, `delete from log_cosignature`, `truncate log_cosignature`} {
		if _, err := w.pool.Exec(t.Context(), change); !code(err, "23001") {
			t.Errorf("%s: %v, want it refused", change, err)
		}
	}
}

// A cosignature in the database that does not hold is named.
func TestCheckCosignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	one, signs := newWitness(t, "one.example")
	two, _ := newWitness(t, "two.example")
	w.submit("bo", spec("a", ""))
	w.sequenceAll(100, key)
	first := w.cosign(one, signs)
	w.submit("bo", spec("b", ""))
	w.sequenceAll(100, key)
	last := w.cosign(one, signs)
	sizes, err := w.store.CheckCosignatures(t.Context(), one, two)
	if err != nil || len(sizes) != 1 || sizes[one.ID()] != last {
		t.Fatalf("%v, %v", sizes, err)
	}
	w.exec(`alter table log_cosignature disable trigger all;
		update log_cosignature set line = (select line from log_cosignature order by size desc limit 1) where size = (select min(size) from log_cosignature)`)
	var broken *ledger.BrokenError
	if _, err := w.store.CheckCosignatures(t.Context(), one, two); !errors.As(err, &broken) || broken.Index != first {
		t.Errorf("a cosignature of another state: %v", err)
	}
}

// Those of a long time are checked page by page, each and to the last.
func TestCheckManyCosignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	by, signs := newWitness(t, "one.example")
	const all = 2500
	var sizes []int64
	var notes [][]byte
	var lines []string
	for size := int64(1); size <= all; size++ {
		checkpoint, err := ledger.Checkpoint{Origin: "weir/test", Size: size}.Sign(key)
		w.ok("sign", err)
		text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
		signed, err := note.Sign(&note.Note{Text: string(text) + "\n"}, signs)
		w.ok("cosign", err)
		_, line, _ := bytes.Cut(signed, []byte("\n\n"))
		sizes, notes, lines = append(sizes, size), append(notes, checkpoint), append(lines, string(line))
	}
	w.exec(`insert into log_checkpoint (size, previous, root, note) select size, size - 1, sha256('x'), note from unnest($1::bigint[], $2::bytea[]) u(size, note)`, sizes, notes)
	w.exec(`insert into log_cosignature (size, witness, line) select size, $1, line from unnest($2::bigint[], $3::text[]) u(size, line)`, by.ID(), sizes, lines)
	w.exec(`analyze`)
	seen := &statements{}
	st, err := store.Open(t.Context(), w.dsn, store.Traced(seen))
	w.ok("open", err)
	t.Cleanup(st.Close)
	newest, err := st.CheckCosignatures(t.Context(), by)
	if err != nil || newest[by.ID()] != all {
		t.Errorf("%v, %v", newest, err)
	}
	for _, s := range seen.take() {
		if !strings.Contains(s.sql, "log_cosignature") {
			continue
		}
		var plan []byte
		w.ok("explain", store.Every(w.store).QueryRow(t.Context(), `explain (analyze, format json) `+s.sql, s.args...).Scan(&plan))
		for node, rows := range rowsRead(t, plan) {
			if strings.Contains(node, "log_cosignature") && rows > 1000 {
				t.Errorf("%s reads %d rows at once", node, rows)
			}
		}
	}
	w.exec(`alter table log_cosignature disable trigger all`)
	w.exec(`update log_cosignature set line = (select line from log_cosignature where size = 1) where size = 2400`)
	var broken *ledger.BrokenError
	if _, err := st.CheckCosignatures(t.Context(), by); !errors.As(err, &broken) || broken.Index != 2400 {
		t.Errorf("one of the last page is of another state: %v", err)
	}
}
