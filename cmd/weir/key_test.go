package main

import (
	"regexp"
	"strings"
	"testing"

	"weir/review"
)

func TestKeyCommands(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	key := func(args ...string) result {
		t.Helper()
		return weirEnv(t, []string{db.env()}, append([]string{"key"}, args...)...)
	}
	r := key("create", "--for", "ana", "--scopes", "submit,review", "--expires-in", "24h")
	token := strings.TrimSpace(r.stdout)
	parsed, err := review.ParseAPIKey(token)
	if r.code != 0 || err != nil {
		t.Fatalf("create: exit %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if p, err := db.store.Authenticate(t.Context(), parsed.ID, parsed.SecretSHA256); err != nil || p.Subject != "ana" || len(p.Scopes) != 2 {
		t.Errorf("the key is %+v, %v", p, err)
	}
	r = key("list")
	if r.code != 0 || !regexp.MustCompile(parsed.ID+` +default +ana +submit,review .* until `).MatchString(r.stdout) || strings.Contains(r.stdout, token) ||
		strings.Contains(r.stdout, parsed.SecretSHA256.String()) {
		t.Errorf("list: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r = key("revoke", parsed.ID); r.code != 0 {
		t.Errorf("revoke: exit %d\n%s", r.code, r.stderr)
	}
	if _, err := db.store.Authenticate(t.Context(), parsed.ID, parsed.SecretSHA256); err == nil {
		t.Error("a revoked key works")
	}
	if r = key("list"); !regexp.MustCompile(parsed.ID + ` .* revoked`).MatchString(r.stdout) {
		t.Errorf("list after revoking:\n%s", r.stdout)
	}
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"revoke", parsed.ID}, exitFailed}, {[]string{"revoke", "nothing"}, exitFailed}, {[]string{"revoke"}, exitUsage},
		{[]string{"create"}, exitUsage}, {[]string{"create", "--for", "ana"}, exitUsage}, {[]string{"create", "--for", "ana", "--scopes", "everything"}, exitUsage},
		{[]string{"create", "--for", "a b", "--scopes", "submit"}, exitUsage}, {[]string{"create", "--for", "ana", "--scopes", "submit", "--expires-in", "-1h"}, exitUsage},
		{[]string{"create", "--for", "ana", "--scopes", "submit", "--project", ""}, exitUsage},
	} {
		if r := key(tt.args...); r.code != tt.want || r.stderr == "" || r.stdout != "" {
			t.Errorf("key %q: exit %d, want %d\n%s%s", tt.args, r.code, tt.want, r.stdout, r.stderr)
		}
	}
}

// A pipeline's key is changed without an hour in which none works: the new one
// works beside the old, and the list tells when the old is used no more.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	create := func() (token, id string) {
		t.Helper()
		r := weirEnv(t, []string{db.env()}, "key", "create", "--for", "bo", "--scopes", "submit")
		token = strings.TrimSpace(r.stdout)
		parsed, err := review.ParseAPIKey(token)
		if r.code != 0 || err != nil {
			t.Fatalf("create: exit %d, %v: %s", r.code, err, r.stderr)
		}
		return token, parsed.ID
	}
	check := func(token string) int {
		t.Helper()
		path := writeFile(t, spec("rotation"), t.TempDir(), "spec.yaml")
		return weirEnv(t, []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + token}, "check", path).code
	}
	old, oldID := create()
	if code := check(old); code != exitAdmit {
		t.Fatalf("the first key: exit %d", code)
	}
	next, nextID := create()
	list := weirEnv(t, []string{db.env()}, "key", "list").stdout
	if !regexp.MustCompile(oldID+` .* [0-9-]{10} +live`).MatchString(list) || !regexp.MustCompile(nextID+` .* never +live`).MatchString(list) {
		t.Errorf("two live keys:\n%s", list)
	}
	for name, token := range map[string]string{"the new": next, "the old": old} {
		if code := check(token); code != exitAdmit {
			t.Errorf("%s of two: exit %d", name, code)
		}
	}
	if r := weirEnv(t, []string{db.env()}, "key", "revoke", oldID); r.code != 0 {
		t.Fatalf("revoke: exit %d: %s", r.code, r.stderr)
	}
	if code := check(old); code != exitUsage {
		t.Errorf("the old key, revoked: exit %d", code)
	}
	if code := check(next); code != exitAdmit {
		t.Errorf("the new key: exit %d", code)
	}
}
