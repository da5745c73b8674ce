package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"weir/review"
	"weir/screening"
	"weir/store"
)

func key(id string) store.NewKey {
	return store.NewKey{ID: id, SecretSHA256: screening.Sum([]byte(id)), Project: "default", Subject: "bo",
		Scopes: []review.Scope{review.ScopeSubmit, review.ScopeAudit}}
}

func (w *world) newKey(k store.NewKey) {
	w.Helper()
	if err := w.store.CreateKey(w.Context(), k); err != nil {
		w.Fatal(err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.newKey(key("a"))
	limited := key("b")
	limited.ExpiresIn = time.Hour
	w.newKey(limited)
	w.newKey(key("c"))

	authenticate := func(id, secret string) error {
		t.Helper()
		p, err := w.store.Authenticate(t.Context(), id, screening.Sum([]byte(secret)))
		if err == nil {
			want := review.Principal{Subject: "bo", Project: "default", Scopes: []review.Scope{review.ScopeSubmit, review.ScopeAudit}}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("principal (-want +got)\n%s", diff)
			}
		}
		return err
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := authenticate(id, id); err != nil {
			t.Errorf("key %s: %v", id, err)
		}
	}
	if err := w.store.RevokeKey(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"c", "nothing", ""} {
		if err := w.store.RevokeKey(t.Context(), id); !errors.Is(err, review.ErrNotFound) {
			t.Errorf("revoke %q again: %v, want ErrNotFound", id, err)
		}
	}
	w.exec(`update api_key set expires_at = now() where id = 'b'`)
	for _, bad := range [][2]string{{"a", "b"}, {"a", ""}, {"b", "b"}, {"c", "c"}, {"nothing", "nothing"}, {"", ""}, {"A", "a"}} {
		if err := authenticate(bad[0], bad[1]); !errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("id %q, secret %q: %v, want ErrUnauthenticated", bad[0], bad[1], err)
		}
	}

	list, err := w.store.Keys(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d keys, %v", len(list), err)
	}
	for _, k := range list {
		if k.Subject != "bo" || k.LastUsedAt == nil || (k.RevokedAt != nil) != (k.ID == "c") || (k.ExpiresAt != nil) != (k.ID == "b") {
			t.Errorf("listed %+v", k)
		}
	}
}

func TestNoTwoKeysOfOneID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.newKey(key("a"))
	again := key("a")
	again.Subject = "mallory"
	if err := w.store.CreateKey(t.Context(), again); err == nil {
		t.Error("a second key of one id is kept")
	}
	bare := key("b")
	bare.Scopes = nil
	if err := w.store.CreateKey(t.Context(), bare); err == nil {
		t.Error("a key without scopes is kept")
	}
}

// What is wrong with a key cannot be told from what it costs to refuse it
// (fault 48): the statements, and how many, are the same.
func TestRefusedKeysCostTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"live", "revoked", "expired"} {
		w.newKey(key(id))
	}
	w.exec(`update api_key set revoked_at = now() where id = 'revoked'`)
	w.exec(`update api_key set expires_at = now() where id = 'expired'`)
	spans := tracetest.NewInMemoryExporter()
	st, err := store.Open(t.Context(), w.dsn, store.Config{Tracing: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	refuse := func(id, secret string) (statements []string) {
		t.Helper()
		spans.Reset()
		ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
		defer span.End()
		if _, err := st.Authenticate(ctx, id, screening.Sum([]byte(secret))); !errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("%s with the secret %s: %v", id, secret, err)
		}
		for _, s := range spans.GetSpans() {
			statements = append(statements, s.Name)
		}
		return statements
	}
	refuse("unknown", "x") // the connection is there from now on
	want := refuse("unknown", "x")
	if len(want) == 0 {
		t.Fatal("no statements seen")
	}
	for _, c := range [][2]string{{"live", "x"}, {"revoked", "revoked"}, {"revoked", "x"}, {"expired", "expired"}} {
		if diff := cmp.Diff(want, refuse(c[0], c[1])); diff != "" {
			t.Errorf("%s with the secret %s (-unknown +this)\n%s", c[0], c[1], diff)
		}
	}
}

// That a key is used is written at most once a minute, by one of those who use
// it at the same moment, and never waited for.
func TestUseOfAKeyIsNotedCheaply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.newKey(key("a"))
	st, err := store.Open(t.Context(), withParam(t, w.dsn, "lock_timeout", "30s"), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	use := func() {
		t.Helper()
		if _, err := st.Authenticate(within(t, 10*time.Second), "a", screening.Sum([]byte("a"))); err != nil {
			t.Error(err)
		}
	}
	version := func() string {
		t.Helper()
		return one[string](w, `select xmin::text || ' ' || last_used_at from api_key`)
	}
	use()
	first := version()
	var users sync.WaitGroup
	for range 30 {
		users.Go(use)
	}
	users.Wait()
	if got := version(); got != first {
		t.Errorf("written again within the minute: %s, then %s", first, got)
	}
	w.exec(`update api_key set last_used_at = now() - interval '2 minutes'`)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from api_key for update`); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	use() // somebody else is writing the row: not waited for, which would take 5 s
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("waited %s", took)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	use()
	if !one[bool](w, `select last_used_at > now() - interval '1 minute' from api_key`) {
		t.Error("use after two minutes is not noted")
	}
}
