package review_test

import (
	"errors"
	"strings"
	"testing"

	"weir/review"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		token, key, err := review.NewAPIKey()
		if err != nil {
			t.Fatal(err)
		}
		got, err := review.ParseAPIKey(token)
		if err != nil || got != key {
			t.Errorf("%s reads as %v (%v), want %v", token, got, err, key)
		}
		if !strings.HasPrefix(token, "weir_"+key.ID+"_") || len(token) != 67 || seen[token] || strings.Contains(token, key.SecretSHA256.String()) {
			t.Errorf("token %s", token)
		}
		seen[token] = true
	}
}

// Every single changed character is noticed without asking the database.
func TestMistypedAPIKeys(t *testing.T) {
	t.Parallel()
	token, _, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for i := range token {
		for _, c := range []byte("0aZ_ \x00\xff") {
			if token[i] != c {
				bad = append(bad, token[:i]+string([]byte{c})+token[i+1:])
			}
		}
		bad = append(bad, token[:i], token[:i]+token[i+1:], token[:i]+" "+token[i:])
	}
	for i := range len(token) - 1 { // two characters swapped
		if token[i] != token[i+1] {
			bad = append(bad, token[:i]+string([]byte{token[i+1], token[i]})+token[i+2:])
		}
	}
	bad = append(bad, "", "weir_", strings.ToLower(token)+"x", token+token, token+"\n", "WEIR"+token[4:])
	for _, b := range bad {
		if _, err := review.ParseAPIKey(b); !errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("%q: %v, want ErrUnauthenticated", b, err)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {""}, {"Submit"}, {"submit", "everything"}, {"*"}} {
		if got, err := review.ParseScopes(names); err == nil {
			t.Errorf("%q gives %v", names, got)
		}
	}
	got, err := review.ParseScopes([]string{"submit", "audit"})
	p := review.Principal{Scopes: got}
	if err != nil || !p.May(review.ScopeSubmit) || !p.May(review.ScopeAudit) || p.May(review.ScopeAdmin) || p.May("") {
		t.Errorf("%v, %v", got, err)
	}
	if (review.Principal{}).May(review.ScopeSubmit) {
		t.Error("nobody may submit")
	}
}
