package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/review"
)

const subIsBo, subIsService, subIsIdle = "00u1", "system:serviceaccount:airflow:worker", "idle|1"

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

func loadPeople(t testing.TB, issuer string) *review.People {
	t.Helper()
	p, err := review.LoadPeople("people.yaml", []byte(strings.ReplaceAll(`
people: [{id: ana}, {id: bo, subjects: ["ISSUER|00u1"], aliases: [bo@corp.example]}, {id: chi, subjects: ["ISSUER|idle|1"]}]
services: [{id: airflow, subjects: ["ISSUER|system:serviceaccount:airflow:worker"]}]
groups: {legal: [bo, ana]}
`, "ISSUER", issuer)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// load writes access.yaml and loads it; ISSUER in it is the issuer's address.
func load(t testing.TB, i *accesstest.Issuer, c *clock, text string) *access.Access {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, access.FileName), []byte(strings.ReplaceAll(text, "ISSUER", i.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := access.Load(dir, loadPeople(t, i.URL), access.Config{Now: c.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const working = `
issuers: [{id: corp, issuer: "ISSUER", audience: weir}]
grants:
  - {groups: [legal], scopes: [review], project: nlp}
  - {people: [bo@corp.example], scopes: [audit, review], project: nlp}
  - {services: [airflow], scopes: [submit]}
`

func newIssuer(t testing.TB, c *clock) *accesstest.Issuer {
	t.Helper()
	i := accesstest.NewIssuer(t)
	i.Now = c.now
	return i
}

func TestWhomTokensSpeakFor(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a := load(t, i, c, working)
	for name, want := range map[string]struct {
		token string
		review.Principal
	}{
		"a person":                 {i.Token(), review.Principal{Subject: "bo", Project: "nlp", Scopes: []review.Scope{review.ScopeReview, review.ScopeAudit}}},
		"a service":                {i.Token(accesstest.Sub(subIsService)), review.Principal{Subject: "airflow", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}},
		"somebody without a grant": {i.Token(accesstest.Sub(subIsIdle)), review.Principal{Subject: "chi"}},
		"one of our audiences":     {i.Token(accesstest.Claim("aud", []string{"other", "weir"})), review.Principal{Subject: "bo", Project: "nlp", Scopes: []review.Scope{review.ScopeReview, review.ScopeAudit}}},
		"an access token":          {i.Token(func(t *accesstest.Token) { t.Header[jose.HeaderType] = "at+jwt" }), review.Principal{Subject: "bo", Project: "nlp", Scopes: []review.Scope{review.ScopeReview, review.ScopeAudit}}},
	} {
		p, err := a.Authenticate(t.Context(), want.token)
		if err != nil || p.Subject != want.Subject || p.Project != want.Project || !slices.Equal(p.Scopes, want.Scopes) {
			t.Errorf("%s: %+v, %v, want %+v", name, p, err, want.Principal)
		}
	}
	for _, sub := range []string{"00u2", "bo", "bo@corp.example", "ana", "airflow", "00u1 ", "00U1"} {
		if p, err := a.Authenticate(t.Context(), i.Token(accesstest.Sub(sub))); !errors.Is(err, review.ErrNotAllowed) || errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("subject %q: %+v, %v, want not allowed", sub, p, err)
		}
	}
	if n := i.Fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// Fault 48: whatever is wrong with a token, it is nobody's.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	c := newClock()
	i, other := newIssuer(t, c), newIssuer(t, c)
	ec, ed := accesstest.NewECDSA(t, "ec"), accesstest.NewEd25519(t, "ed")
	i.SetKeys(jose.JSONWebKey{Key: accesstest.RSA(), KeyID: "rsa", Algorithm: "RS256", Use: "sig"}, ec, ed)
	a := load(t, i, c, working)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(accesstest.RSA().Public())
	if err != nil {
		t.Fatal(err)
	}
	hmac := func(secret []byte) func(*accesstest.Token) {
		return func(t *accesstest.Token) { t.Alg, t.Key = jose.HS256, secret }
	}
	with := func(alg jose.SignatureAlgorithm, key any, kid string) func(*accesstest.Token) {
		return func(t *accesstest.Token) { t.Alg, t.Key, t.KeyID = alg, key, kid }
	}
	now := c.now()
	good := i.Token()
	parts := strings.Split(good, ".")
	seg := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	admin := seg(fmt.Sprintf(`{"iss":%q,"sub":%q,"aud":"weir","exp":%d}`, i.URL, subIsService, now.Add(time.Hour).Unix()))
	for name, token := range map[string]string{
		"empty":                               "",
		"no JWT":                              "eyJ",
		"expired":                             i.Token(accesstest.Claim("exp", now.Add(-time.Second).Unix())),
		"never expires":                       i.Token(accesstest.Claim("exp", nil)),
		"not yet":                             i.Token(accesstest.Claim("nbf", now.Add(time.Hour).Unix())),
		"wrong audience":                      i.Token(accesstest.Claim("aud", "other")),
		"no audience":                         i.Token(accesstest.Claim("aud", nil)),
		"audience of the API server":          i.Token(accesstest.Sub(subIsService), accesstest.Claim("aud", []string{"https://kubernetes.default.svc.cluster.local", "k3s"})),
		"audience in part":                    i.Token(accesstest.Claim("aud", "weir2")),
		"audience in capitals":                i.Token(accesstest.Claim("aud", "WEIR")),
		"another issuer's":                    other.Token(),
		"another issuer's, saying it is ours": other.Token(accesstest.Claim("iss", i.URL), with(jose.RS256, stranger, "rsa")),
		"ours, saying another issuer":         i.Token(accesstest.Claim("iss", "https://elsewhere.example")),
		"issuer with a slash":                 i.Token(accesstest.Claim("iss", i.URL+"/")),
		"no issuer":                           i.Token(accesstest.Claim("iss", nil)),
		"no subject":                          i.Token(accesstest.Claim("sub", nil)),
		"empty subject":                       i.Token(accesstest.Sub("")),
		"alg none":                            seg(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None with the signature":         seg(`{"alg":"None"}`) + "." + parts[1] + "." + parts[2],
		"HS256 with the public key in PEM":    i.Token(hmac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}))),
		"HS256 with the public key in DER":    i.Token(hmac(spki)),
		"HS256 with the modulus":              i.Token(hmac(accesstest.RSA().N.Bytes())),
		"HS256 with the key set":              i.Token(hmac(i.JWKS())),
		"a stranger's key":                    i.Token(with(jose.RS256, stranger, "rsa")),
		"a stranger's key, no id":             i.Token(with(jose.RS256, stranger, "")),
		"an unknown key":                      i.Token(with(jose.RS256, stranger, "other")),
		"RS512":                               i.Token(with(jose.RS512, accesstest.RSA(), "rsa")),
		"PS256":                               i.Token(with(jose.PS256, accesstest.RSA(), "rsa")),
		"one key by another's id":             i.Token(with(jose.ES256, ec.Key, "rsa")),
		"other claims":                        parts[0] + "." + admin + "." + parts[2],
		"signature cut":                       good[:len(good)-2],
		"no signature":                        parts[0] + "." + parts[1] + ".",
		"two tokens":                          good + "." + good,
		"blanks inside":                       parts[0] + ". " + parts[1] + "." + parts[2],
		"its own key in the header": i.Token(with(jose.RS256, stranger, "mine"), func(t *accesstest.Token) {
			t.Header["jwk"] = jose.JSONWebKey{Key: stranger.Public(), KeyID: "mine"}
		}),
		"the notice of a logout":  i.Token(func(t *accesstest.Token) { t.Header[jose.HeaderType] = "logout+jwt" }),
		"a critical header":       i.Token(func(t *accesstest.Token) { t.Header["crit"] = []string{"x"}; t.Header["x"] = true }),
		"sub in another spelling": i.Token(accesstest.Sub("00u9"), accesstest.Claim("Sub", subIsBo)),
		"sub with a long s":       i.Token(accesstest.Claim("ſub", subIsService)),
		"exp in another spelling": i.Token(accesstest.Claim("exp", now.Add(-time.Hour).Unix()), accesstest.Claim("EXP", now.Add(time.Hour).Unix())),
		"the form with braces":    fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q}]}`, parts[1], parts[0], parts[2]),
		"too long":                i.Token(accesstest.Claim("groups", strings.Repeat("x", 9<<10))),
	} {
		p, err := a.Authenticate(t.Context(), token)
		var refused *access.RefusedError
		if !errors.Is(err, review.ErrUnauthenticated) || !errors.As(err, &refused) || refused.Reason == "" || p.Subject != "" || p.Scopes != nil {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, k := range []jose.JSONWebKey{ec, ed} {
		if _, err := a.Authenticate(t.Context(), i.Token(with(jose.SignatureAlgorithm(k.Algorithm), k.Key, k.KeyID))); err != nil {
			t.Errorf("%s, which is good: %v", k.Algorithm, err)
		}
	}
	if p, err := a.Authenticate(t.Context(), good); err != nil || p.Subject != "bo" {
		t.Errorf("the good one: %+v, %v", p, err)
	}
}

func TestAnIssuersAlgorithms(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	ec := accesstest.NewECDSA(t, "ec")
	i.SetKeys(ec, jose.JSONWebKey{Key: accesstest.RSA(), KeyID: "rsa", Algorithm: "RS256"})
	a := load(t, i, c, strings.Replace(working, "audience: weir", "audience: weir, algorithms: [ES256]", 1))
	if _, err := a.Authenticate(t.Context(), i.Token()); err != nil {
		t.Errorf("ES256: %v", err)
	}
	rs := i.Token(func(t *accesstest.Token) { t.Alg, t.Key, t.KeyID = jose.RS256, accesstest.RSA(), "rsa" })
	if _, err := a.Authenticate(t.Context(), rs); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("RS256: %v", err)
	}
}

// The keys of a private cluster are in a file, which is read again when they change.
func TestKeysInAFile(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := func(name string) func(*accesstest.Token) { return accesstest.Claim("iss", name) }
	write("cluster.jwks", i.JWKS())
	write(access.FileName, []byte(`
issuers: [{id: cluster, issuer: "https://kubernetes.default.svc.cluster.local", audience: weir, jwks_file: cluster.jwks}]
grants: [{services: [airflow], scopes: [submit]}]`))
	a, err := access.Load(dir, loadPeople(t, "https://kubernetes.default.svc.cluster.local"), access.Config{Now: c.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(changes ...func(*accesstest.Token)) error {
		p, err := a.Authenticate(t.Context(), i.Token(append([]func(*accesstest.Token){accesstest.Sub(subIsService), cluster("https://kubernetes.default.svc.cluster.local")}, changes...)...))
		if err == nil && (p.Subject != "airflow" || !p.May(review.ScopeSubmit)) {
			t.Errorf("principal %+v", p)
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	// The token that every pod has is for the API server.
	if err := ask(accesstest.Claim("aud", []string{"https://kubernetes.default.svc.cluster.local"})); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("default audience: %v", err)
	}
	i.SetKeys(accesstest.NewECDSA(t, "next"))
	if err := ask(); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("a key that is not in the file: %v", err)
	}
	write("cluster.jwks", i.JWKS())
	c.add(11 * time.Second)
	if err := ask(); err != nil {
		t.Errorf("a key that came into the file: %v", err)
	}
	if i.Fetches.Load()+i.Discoveries.Load() != 0 {
		t.Error("the issuer was asked")
	}
}

func TestWithoutDeclarations(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a, err := access.Load(t.TempDir(), loadPeople(t, i.URL), access.Config{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := a.Authenticate(t.Context(), i.Token()); !errors.Is(err, review.ErrUnauthenticated) || p.Subject != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := a.Principal(i.URL + "|" + subIsBo); !errors.Is(err, review.ErrNotAllowed) {
		t.Errorf("the subject of an issuer that is not declared: %v", err)
	}
}

// A key set may hold what is none of our business; none of it is used.
func TestKeySetsHoldOtherKeys(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	dir := t.TempDir()
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // it is to be refused
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("0123456789abcdef0123456789abcdef")
	marshal := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	set := func(keys ...json.RawMessage) []byte { return marshal(map[string]any{"keys": keys}) }
	others := []json.RawMessage{
		marshal(jose.JSONWebKey{Key: secret, KeyID: "secret", Algorithm: "HS256"}),
		marshal(jose.JSONWebKey{Key: weak.Public(), KeyID: "weak"}),
		marshal(jose.JSONWebKey{Key: accesstest.RSA().Public(), KeyID: "enc", Use: "enc"}),
		marshal(jose.JSONWebKey{Key: accesstest.RSA().Public(), KeyID: "other-alg", Algorithm: "RS512"}),
		marshal(jose.JSONWebKey{Key: accesstest.RSA(), KeyID: "private"}),
		json.RawMessage(`{"kty":"AKP","kid":"new","alg":"ML-DSA-65","pub":"AAAA"}`), json.RawMessage(`{}`), json.RawMessage(`null`),
	}
	declare := strings.ReplaceAll(strings.Replace(working, "audience: weir", "audience: weir, jwks_file: keys", 1), "ISSUER", i.URL)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, access.FileName), []byte(declare), 0o600),
		os.WriteFile(filepath.Join(dir, "keys"), set(append(others, marshal(jose.JSONWebKey{Key: accesstest.RSA().Public(), KeyID: "rsa"}))...), 0o600)); err != nil {
		t.Fatal(err)
	}
	a, err := access.Load(dir, loadPeople(t, i.URL), access.Config{Now: c.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), i.Token()); err != nil {
		t.Errorf("the good key: %v", err)
	}
	for kid, sign := range map[string]func(*accesstest.Token){
		"secret": func(t *accesstest.Token) { t.Alg, t.Key = jose.HS256, secret },
		"weak":   func(t *accesstest.Token) { t.Key = weak },
		"enc":    func(*accesstest.Token) {}, "other-alg": func(*accesstest.Token) {}, "private": func(*accesstest.Token) {},
	} {
		if _, err := a.Authenticate(t.Context(), i.Token(sign, func(t *accesstest.Token) { t.KeyID = kid })); !errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("key %s: %v", kid, err)
		}
	}
	for name, data := range map[string][]byte{"only others": set(others...), "none": set(), "no JSON": []byte("-----BEGIN"), "too many": set(make([]json.RawMessage, 101)...)} {
		if err := os.WriteFile(filepath.Join(dir, "keys"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := access.Load(dir, loadPeople(t, i.URL), access.Config{}); err == nil || !strings.Contains(err.Error(), "jwks_file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
