package main

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The gate speaks TLS by itself: a renewed certificate needs no restart, half a one
// changes nothing, and nobody is answered in the open.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	db, dir := newDatabase(t), t.TempDir()
	old, key := selfSigned(t, "gate")
	cert, keyFile := writeFile(t, old, dir, "tls.crt"), writeFile(t, key, dir, "tls.key")
	g := startGate(t, []string{db.env()}, "--config", configFor(t, ""), "--tls-cert", cert, "--tls-key", keyFile, "--tls-min-version", "1.3")
	g.await("ready", func() bool { return g.log.event("ready") != nil })
	if !strings.HasPrefix(g.url, "https://") {
		t.Fatalf("the gate is at %s", g.url)
	}
	serial := func(trusted []byte, change func(*tls.Config)) (*big.Int, error) {
		cfg := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		cfg.RootCAs.AppendCertsFromPEM(trusted)
		if change != nil {
			change(cfg)
		}
		transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(g.url + "/readyz")
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.TLS.Version != tls.VersionTLS13 {
			t.Errorf("status %d by TLS %x", resp.StatusCode, resp.TLS.Version)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber, nil
	}
	if _, err := serial(old, nil); err != nil {
		t.Errorf("the gate: %v", err)
	}
	if _, err := serial(old, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); err == nil {
		t.Error("TLS 1.2 is spoken, and 1.3 was asked for")
	}
	path := writeFile(t, spec("tls"), dir, "spec.yaml")
	check := func(server, trusted string) result {
		t.Helper()
		return weirEnv(t, []string{"WEIR_SERVER=" + server, "WEIR_KEY=" + db.token, "SSL_CERT_FILE=" + trusted}, "check", path, "--timeout", "2s")
	}
	if r := check(g.url, cert); r.code != exitAdmit {
		t.Errorf("check: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	stranger, _ := selfSigned(t, "stranger")
	if r := check(g.url, writeFile(t, stranger, dir, "other.crt")); r.code != exitNoAnswer {
		t.Errorf("check, and the certificate is not trusted: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := check("http"+strings.TrimPrefix(g.url, "https"), cert); r.code == exitAdmit {
		t.Error("check in the open is answered")
	}

	renewed, renewedKey := selfSigned(t, "gate")
	writeFile(t, renewed, dir, "tls.crt") // half of a renewal: the key does not fit yet
	if _, err := serial(old, nil); err != nil {
		t.Errorf("in the middle of a renewal: %v", err)
	}
	if g.log.event("certificates not read again; the last good ones hold") == nil {
		t.Errorf("nothing is said of a certificate that does not fit\n%s", g.log)
	}
	writeFile(t, renewedKey, dir, "tls.key")
	if _, err := serial(renewed, nil); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
	if _, err := serial(old, nil); err == nil {
		t.Error("the old certificate is still shown")
	}
}

// One caller is told to slow down, and another is not.
func TestServeRateLimit(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, ""), "--rate-limit", "1").ready()
	ask := func(token string) reply {
		t.Helper()
		r, err := send(t.Context(), "GET", g.url+"/v1/packs", token, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	last := ask(db.token)
	for n := 0; n < 500 && last.status == http.StatusOK; n++ { // ten at once, and one for each second that passes
		last = ask(db.token)
	}
	if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") != "1" {
		t.Errorf("status %d, Retry-After %q: %s", last.status, last.header.Get("Retry-After"), last.body)
	}
	if r := ask(makeKey(t, db.store, "chi")); r.status != http.StatusOK {
		t.Errorf("somebody else: status %d: %s", r.status, r.body)
	}
}

// What is wrong with the listener is said before anything starts.
func TestServeHalfACertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pem, key := selfSigned(t, "gate")
	other, _ := selfSigned(t, "other")
	cert, keyFile, stray := writeFile(t, pem, dir, "tls.crt"), writeFile(t, key, dir, "tls.key"), writeFile(t, other, dir, "stray.crt")
	for want, args := range map[string][]string{
		"one of the two is not given":     {"--tls-cert", cert},
		"go together":                     {"--tls-key", keyFile},
		"no such file":                    {"--tls-cert", filepath.Join(dir, "none.crt"), "--tls-key", keyFile},
		"does not match":                  {"--tls-cert", stray, "--tls-key", keyFile},
		"must be 1.2 or 1.3":              {"--tls-cert", cert, "--tls-key", keyFile, "--tls-min-version", "1.1"},
		"--tls-min-version must be 1.2":   {"--tls-min-version", "2"},
		"--rate-limit must not be negati": {"--rate-limit", "-1"},
	} {
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"config", "check"}} {
			args := append(append(command, "--config", configFor(t, ""), "--packs", pledge(t)), args...)
			if r := weirEnv(t, nil, args...); r.code != exitUsage || !strings.Contains(strings.Join(strings.Fields(r.stdout+r.stderr), " "), want) {
				t.Errorf("%s, want %q: exit %d: %s%s", command, want, r.code, r.stdout, r.stderr)
			}
		}
	}
}
