package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"weir/review"
)

// Logins gives the id and label of each issuer that signs people in to the console.
func (a *Access) Logins() iter.Seq2[string, string] {
	return func(yield func(id, label string) bool) {
		for _, is := range a.issuers {
			if is.Login != nil && !yield(is.ID, cmp.Or(is.Login.Label, "Sign in with "+is.ID)) {
				return
			}
		}
	}
}

// LoginAddress gives where a browser is sent to sign in at an issuer. It comes back
// to the address back; secret is 256 random bits in text that only this browser
// keeps until then. Errors: review.ErrNotFound and review.ErrIssuerAway.
func (a *Access) LoginAddress(ctx context.Context, id, back, secret string) (string, error) {
	is, err := a.loginAt(id)
	if err != nil {
		return "", err
	}
	client, err := is.oauth(ctx, back)
	if err != nil {
		return "", err
	}
	return client.AuthCodeURL(is.derive(secret, "state"), oidc.Nonce(is.derive(secret, "nonce")),
		oauth2.S256ChallengeOption(is.derive(secret, "verifier"))), nil
}

// Login gives who came back from an issuer, as people.yaml writes a subject. answer
// is the query that they came with, back and secret are those of LoginAddress.
// Errors: review.ErrNotFound, review.ErrIssuerAway, and review.ErrUnauthenticated,
// a [*RefusedError], for an answer that was not for this browser or is no good.
func (a *Access) Login(ctx context.Context, id, back, secret string, answer url.Values) (subject string, err error) {
	is, err := a.loginAt(id)
	if err != nil {
		return "", err
	}
	refuse := func(format string, args ...any) (string, error) {
		return "", &RefusedError{is.ID, fmt.Sprintf(format, args...)}
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(is.derive(secret, "state"))) != 1 {
		return refuse("the answer is not to a login that this browser began")
	}
	if from, told := answer["iss"]; told && !slices.Equal(from, []string{is.Issuer}) { // RFC 9207
		return refuse("the answer is of another issuer")
	}
	if why := answer.Get("error"); why != "" {
		return refuse("the issuer says %q", why)
	}
	raw, err := is.exchange(ctx, back, answer.Get("code"), is.derive(secret, "verifier"))
	if err != nil {
		return "", err
	}
	t, err := is.verify(ctx, is.Login.ClientID, raw)
	switch {
	case errors.Is(err, review.ErrIssuerAway):
		return "", fmt.Errorf("issuer %s: %w", is.ID, err)
	case err != nil:
		return refuse("%v", err)
	}
	var claims struct {
		For string `json:"azp"`
	}
	if err := t.Claims(&claims); err != nil {
		return refuse("%v", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(is.derive(secret, "nonce"))) != 1:
		return refuse("the token is not of this login")
	case claims.For != "" && claims.For != is.Login.ClientID, claims.For == "" && len(t.Audience) > 1:
		return refuse("the token was given to another client")
	}
	return review.TokenSubject(t.Issuer, t.Subject), nil
}

func (a *Access) loginAt(id string) (*issuer, error) {
	i := slices.IndexFunc(a.issuers, func(is *issuer) bool { return is.ID == id && is.Login != nil })
	if i < 0 {
		return nil, review.ErrNotFound
	}
	return a.issuers[i], nil
}

// derive gives what a login needs one of its own of: state, nonce and PKCE verifier
// (43 characters). All hang on the secret, so the browser's cookie is all that is
// kept of a login, and on the issuer, so that none can answer for another.
func (is *issuer) derive(secret, what string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(what + " " + is.Issuer))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// oauth is the console as a client of the issuer.
func (is *issuer) oauth(ctx context.Context, back string) (*oauth2.Config, error) {
	p := is.known()
	if p == nil {
		is.keys.again(ctx) // discovery comes with the keys, and no more often
		if p = is.known(); p == nil {
			return nil, fmt.Errorf("issuer %s: %w", is.ID, review.ErrIssuerAway)
		}
	}
	var document struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	end := p.Endpoint()
	if err := p.Claims(&document); err != nil || !isSafe(end.AuthURL) || !isSafe(end.TokenURL) {
		return nil, fmt.Errorf("issuer %s: %w: its discovery document names no https addresses for a login", is.ID, review.ErrIssuerAway)
	}
	// Named here, because the library would try both, and a code is good for one try.
	end.AuthStyle = oauth2.AuthStyleInHeader
	if is.secret == "" || document.Methods != nil && !slices.Contains(document.Methods, "client_secret_basic") {
		end.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: is.Login.ClientID, ClientSecret: is.secret, Endpoint: end, RedirectURL: back, Scopes: []string{oidc.ScopeOpenID}}, nil
}

// exchange gives the ID token for a code. Nothing else that comes with it is kept.
func (is *issuer) exchange(ctx context.Context, back, code, verifier string) (token string, err error) {
	client, err := is.oauth(ctx, back)
	if err != nil {
		return "", err
	}
	away := func(why error) error { return fmt.Errorf("issuer %s: %w: %w", is.ID, review.ErrIssuerAway, why) }
	select {
	case is.keys.patience <- struct{}{}:
		defer func() { <-is.keys.patience }()
	default:
		return "", away(errors.New("too many wait for issuers"))
	}
	got, err := client.Exchange(oidc.ClientContext(ctx, is.client), code, oauth2.VerifierOption(verifier))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response.StatusCode < 500 && said.Response.StatusCode != http.StatusTooManyRequests:
		return "", &RefusedError{is.ID, fmt.Sprintf("the issuer gives no token for the code: status %d, %q", said.Response.StatusCode, said.ErrorCode)}
	case errors.As(err, &said): // its text quotes the whole answer
		return "", away(fmt.Errorf("the token: status %d", said.Response.StatusCode))
	case err != nil:
		return "", away(err)
	}
	token, ok := got.Extra("id_token").(string)
	if !ok {
		return "", &RefusedError{is.ID, "the issuer gave no ID token for the code"}
	}
	return token, nil
}
