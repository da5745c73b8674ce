package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answerAtMost bounds what is read of an issuer's answer.
const answerAtMost = 1 << 20

// issuer is one that is trusted.
type issuer struct {
	issuerEntry
	secret string // of the console as its client; "" = a public client
	algs   []jose.SignatureAlgorithm
	names  []string // of algs
	now    func() time.Time
	client *http.Client
	log    *slog.Logger
	keys   *keySet

	mu       sync.Mutex
	provider *oidc.Provider // what discovery found; nil = not yet, or to be asked again
	silent   bool           // the last fetch failed, which was logged
}

func newIssuer(e issuerEntry, dir string, patience chan struct{}, cfg Config) (*issuer, error) {
	is := &issuer{issuerEntry: e, now: cfg.Now, log: cfg.Log, algs: algorithms}
	if e.Algorithms != nil {
		is.algs = nil
		for _, alg := range e.Algorithms {
			is.algs = append(is.algs, jose.SignatureAlgorithm(alg))
		}
	}
	for _, alg := range is.algs {
		is.names = append(is.names, string(alg))
	}
	if e.CAFile != "" {
		e.CAFile = beside(dir, e.CAFile)
	}
	trust, err := clientTLS(e.CAFile)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	is.client = &http.Client{Transport: bounded{transport}, Timeout: fetchWithin,
		// Where the keys come from is said by the issuer's own document, not by whoever answers.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if e.Login != nil {
		if is.secret, err = e.Login.secret(dir); err != nil {
			return nil, err
		}
	}
	fetch := is.fetch
	if e.JWKSFile != "" {
		file := beside(dir, e.JWKSFile)
		fetch = func(context.Context) ([]jose.JSONWebKey, error) { // again when a key is not known: clusters change theirs
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			return readKeys(data, is.algs)
		}
		if _, err := fetch(context.Background()); err != nil {
			return nil, fmt.Errorf("jwks_file: %w", err)
		}
	}
	is.keys = &keySet{fetch: fetch, algs: is.algs, now: cfg.Now, patience: patience, report: is.report}
	return is, nil
}

// bounded cuts answers that are too long, so that no issuer can fill the memory.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, answerAtMost), resp.Body}
	}
	return resp, err
}

// discover gives the issuer's endpoints, asking for them where they are not known.
func (is *issuer) discover(ctx context.Context) (*oidc.Provider, error) {
	if p := is.known(); p != nil {
		return p, nil
	}
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, is.client), is.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	is.remember(p)
	return p, nil
}

// known is what discovery found last; nil = nothing.
func (is *issuer) known() *oidc.Provider {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.provider
}

func (is *issuer) remember(p *oidc.Provider) {
	is.mu.Lock()
	defer is.mu.Unlock()
	is.provider = p
}

// fetch asks the issuer for its keys.
func (is *issuer) fetch(ctx context.Context) (keys []jose.JSONWebKey, err error) {
	p, err := is.discover(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			is.remember(nil) // they may have moved
		}
	}()
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&document); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if !isSafe(document.Keys) {
		return nil, errors.New("discovery: jwks_uri is not an https address")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, document.Keys, nil)
	if err != nil {
		return nil, err
	}
	resp, err := is.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the keys: status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the keys: %w", err)
	}
	return readKeys(data, is.algs)
}

// isSafe reports whether an address that an issuer names may be used.
func isSafe(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()))
}

// report says once that an issuer is away, and once that it is back.
func (is *issuer) report(ctx context.Context, err error) {
	is.mu.Lock()
	was := is.silent
	is.silent = err != nil
	is.mu.Unlock()
	switch {
	case err != nil && !was:
		is.log.WarnContext(ctx, "the keys of an issuer cannot be fetched; tokens with known keys go on being good", "issuer", is.ID, "error", err)
	case err == nil && was:
		is.log.InfoContext(ctx, "the keys of an issuer can be fetched again", "issuer", is.ID)
	}
}

// verify checks a token for an audience: signature, issuer, audience and time. The
// error is review.ErrIssuerAway when it cannot be told.
func (is *issuer) verify(ctx context.Context, audience, token string) (*oidc.IDToken, error) {
	keys := &keepError{KeySet: is.keys}
	t, err := oidc.NewVerifier(is.Issuer, keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: is.names, Now: is.now}).Verify(ctx, token)
	switch {
	case keys.err != nil:
		return nil, keys.err
	case err != nil:
		return nil, err
	case t.Subject == "":
		return nil, errors.New("has no subject")
	}
	return t, plainClaims(t)
}

// keepError keeps the error of a key set, which the verifier only quotes.
type keepError struct {
	oidc.KeySet
	err error
}

func (k *keepError) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, k.err = k.KeySet.VerifySignature(ctx, token)
	return payload, k.err
}

// registered are the claims that decide.
var registered = []string{"iss", "sub", "aud", "exp", "nbf", "nonce"}

// plainClaims refuses a token that says one of the deciding claims twice or in
// another spelling. The library reads "Sub" as sub, the last one winning, and an
// issuer may let people choose claims of theirs.
func plainClaims(t *oidc.IDToken) error {
	var payload jsontext.Value
	if err := t.Claims(&payload); err != nil {
		return err
	}
	var claims map[string]jsontext.Value
	if err := json.Unmarshal(payload, &claims); err != nil {
		return errors.New("has claims that are not plain JSON")
	}
	for name := range claims {
		if i := slices.IndexFunc(registered, func(r string) bool { return strings.EqualFold(r, name) }); i >= 0 && registered[i] != name {
			return fmt.Errorf("has a claim that could be taken for %s", registered[i])
		}
	}
	return nil
}
