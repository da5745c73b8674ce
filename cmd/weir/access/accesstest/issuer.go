// Package accesstest is an identity provider for tests: it serves a discovery
// document, keys and a code flow on loopback, counts who asks, and can go away.
package accesstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the one that tokens are for unless a test says otherwise.
const Audience = "weir"

// Issuer is a provider of a test's own.
type Issuer struct {
	testing.TB
	URL string
	// Discoveries and Fetches count what was asked for.
	Discoveries, Fetches atomic.Int64
	// Now is the clock of the tokens. Default time.Now.
	Now func() time.Time

	mu      sync.Mutex
	keys    []jose.JSONWebKey // private; the public halves are served
	down    int               // status that everything is answered with; 0 = it works
	hanging chan struct{}     // closed when answers go on; nil = they do
	flow    flow
}

// RSA makes one key of 2048 bits for all tests: they are slow to make.
var RSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// NewIssuer starts one that signs with an RSA key of the id "rsa".
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{TB: t, Now: time.Now, keys: []jose.JSONWebKey{{Key: RSA(), KeyID: "rsa", Algorithm: string(jose.RS256), Use: "sig"}}}
	i.flow.codes = map[string]grantedCode{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.served)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	server := httptest.NewServer(i.mood(mux))
	i.URL = server.URL
	t.Cleanup(func() { i.Resume(); server.Close() })
	return i
}

// mood answers as the issuer feels.
func (i *Issuer) mood(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/keys":
			i.Fetches.Add(1)
		case "/.well-known/openid-configuration":
			i.Discoveries.Add(1)
		}
		i.mu.Lock()
		down, hanging := i.down, i.hanging
		i.mu.Unlock()
		if hanging != nil {
			select {
			case <-hanging:
			case <-r.Context().Done():
				return
			}
		}
		if down != 0 {
			w.WriteHeader(down)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Down answers everything with a status, until Resume.
func (i *Issuer) Down(status int) { i.mu.Lock(); defer i.mu.Unlock(); i.down = status }

// Hang answers nothing, until Resume.
func (i *Issuer) Hang() { i.mu.Lock(); defer i.mu.Unlock(); i.hanging = make(chan struct{}) }

// Resume works again.
func (i *Issuer) Resume() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hanging != nil {
		close(i.hanging)
	}
	i.hanging, i.down = nil, 0
}

// SetKeys takes other keys from now on; tokens are signed with the first.
func (i *Issuer) SetKeys(keys ...jose.JSONWebKey) { i.mu.Lock(); defer i.mu.Unlock(); i.keys = keys }

// NewECDSA makes a key for ES256.
func NewECDSA(t testing.TB, id string) jose.JSONWebKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}
}

// NewEd25519 makes a key for EdDSA.
func NewEd25519(t testing.TB, id string) jose.JSONWebKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.EdDSA), Use: "sig"}
}

// JWKS is the key set as it is served.
func (i *Issuer) JWKS() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	data, err := json.Marshal(set)
	if err != nil {
		panic(err) // they are keys of ours
	}
	return data
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize",
		"token_endpoint": i.URL + "/token", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
	i.mu.Lock()
	if i.flow.methods != nil {
		document["token_endpoint_auth_methods_supported"] = i.flow.methods
	}
	i.mu.Unlock()
	reply(w, document)
}

func (i *Issuer) served(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(i.JWKS())
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Token is what a test may change about a token.
type Token struct {
	Claims map[string]any
	Header map[jose.HeaderKey]any
	Alg    jose.SignatureAlgorithm
	Key    any    // what signs it
	KeyID  string // what it says signed it
}

// Claim sets a claim; nil takes it out.
func Claim(name string, value any) func(*Token) {
	return func(t *Token) {
		if t.Claims[name] = value; value == nil {
			delete(t.Claims, name)
		}
	}
}

// Sub is a token of another subject.
func Sub(sub string) func(*Token) { return Claim("sub", sub) }

// Token signs one for 00u1 that is good for an hour, with the first key.
func (i *Issuer) Token(changes ...func(*Token)) string {
	i.Helper()
	i.mu.Lock()
	key := i.keys[0]
	i.mu.Unlock()
	now := i.Now()
	t := &Token{Claims: map[string]any{"iss": i.URL, "sub": "00u1", "aud": Audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()},
		Header: map[jose.HeaderKey]any{jose.HeaderType: "JWT"}, Alg: jose.SignatureAlgorithm(key.Algorithm), Key: key.Key, KeyID: key.KeyID}
	for _, c := range changes {
		c(t)
	}
	return t.sign(i)
}

func (t *Token) sign(tb testing.TB) string {
	tb.Helper()
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, value := range t.Header {
		options.ExtraHeaders[name] = value
	}
	if t.KeyID != "" {
		options.ExtraHeaders["kid"] = t.KeyID
	}
	if public, ok := t.Key.(crypto.Signer); ok && t.Alg == jose.HS256 {
		tb.Fatalf("HS256 needs bytes, not %T", public)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: t.Alg, Key: t.Key}, options)
	if err != nil {
		tb.Fatal(err)
	}
	payload, err := json.Marshal(t.Claims)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		tb.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return compact
}
