package accesstest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
)

// flow is what the code flow of an issuer has to know.
type flow struct {
	subject string         // who is signed in there
	changes []func(*Token) // to the tokens that are asked for
	methods []string       // by which clients may show their secret; nil = it is not said
	codes   map[string]grantedCode
	number  int
	shown   []string // where a secret came, and which
}

type grantedCode struct {
	client, redirect, challenge, nonce, subject string
}

// SignedIn is who the issuer takes the browser for.
func (i *Issuer) SignedIn(subject string) { i.mu.Lock(); defer i.mu.Unlock(); i.flow.subject = subject }

// Misbehave changes the tokens that are given for codes.
func (i *Issuer) Misbehave(changes ...func(*Token)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.flow.changes = changes
}

// Methods says by which clients may show their secret.
func (i *Issuer) Methods(names ...string) { i.mu.Lock(); defer i.mu.Unlock(); i.flow.methods = names }

// ForgetCodes ends all codes, as if each had been used.
func (i *Issuer) ForgetCodes() { i.mu.Lock(); defer i.mu.Unlock(); clear(i.flow.codes) }

// Secrets are what the token endpoint was shown: "header" or "form", and the secret.
func (i *Issuer) Secrets() []string { i.mu.Lock(); defer i.mu.Unlock(); return i.flow.shown }

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("scope") != "openid" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "not what was expected: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	i.flow.number++
	code := fmt.Sprintf("code-%d", i.flow.number)
	i.flow.codes[code] = grantedCode{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce"), i.flow.subject}
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	client, secret, basic := r.BasicAuth()
	where := "header "
	if !basic {
		client, secret, where = r.PostFormValue("client_id"), r.PostFormValue("client_secret"), "form "
	}
	i.mu.Lock()
	code, ok := i.flow.codes[r.PostFormValue("code")]
	delete(i.flow.codes, r.PostFormValue("code")) // once
	i.flow.shown = append(i.flow.shown, where+secret)
	changes := append([]func(*Token){Sub(code.subject), Claim("aud", client), Claim("nonce", code.nonce)}, i.flow.changes...)
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != code.redirect || client != code.client ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != code.challenge {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]any{"error": "invalid_grant"})
		return
	}
	reply(w, map[string]any{"access_token": "of no use", "token_type": "Bearer", "id_token": i.Token(changes...)})
}
