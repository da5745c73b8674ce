package main

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/screening"
)

// A link of the command signs in once at the built gate, which serves the pages.
func TestConsoleLink(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	r := weirEnv(t, []string{db.env()}, "console", "link", "--for", "bo", "--scopes", "review,audit", "--base-url", g.url+"/")
	link := strings.TrimSpace(r.stdout)
	if r.code != 0 || !strings.HasPrefix(link, g.url+console.LinkPath) {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	token := strings.TrimPrefix(link, g.url+console.LinkPath)
	resp, err := client.PostForm(g.url+"/console/login", url.Values{"link": {token}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/console/reviews" {
		t.Errorf("%d at %s", resp.StatusCode, resp.Request.URL)
	}
	if _, err := db.store.UseLoginLink(t.Context(), screening.Sum([]byte(token))); err == nil {
		t.Error("the link works twice")
	}
	for _, args := range [][]string{{}, {"--for", " "}, {"--for", "bo", "--scopes", "all"}, {"--for", "bo", "--project", "a b"}} {
		if r := weirEnv(t, []string{db.env()}, append([]string{"console", "link"}, args...)...); r.code != exitUsage || r.stdout != "" || r.stderr == "" {
			t.Errorf("%q: exit %d, %s", args, r.code, r.stdout)
		}
	}
}
