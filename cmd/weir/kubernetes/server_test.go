package kubernetes_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/certificate"
	"weir/cmd/weir/kubernetes"
	"weir/review/reviewtest"
)

// authority signs certificates for a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = sign(t, template, nil)
	return a
}

func sign(t testing.TB, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// issue gives a certificate with one use.
func (a *authority) issue(name string, use x509.ExtKeyUsage, until time.Duration) tls.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key := sign(a.t, &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(until), ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// write puts a certificate and its key into two files.
func write(t testing.TB, c tls.Certificate, cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	ours, theirs, dir := newAuthority(t), newAuthority(t), t.TempDir()
	files := certificate.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"),
		ClientNames: []string{"kube-apiserver"}}
	write(t, ours.issue("hook", x509.ExtKeyUsageServerAuth, time.Hour), files.Cert, files.Key)
	if err := os.WriteFile(files.ClientCA, ours.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	server, err := kubernetes.Server(c.handler, files)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), ignoreClosed(<-ended)); err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	post := func(client ...tls.Certificate) (status int, serial *big.Int, err error) {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: client}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Post("https://"+listener.Addr().String()+kubernetes.Path+"?timeout=10s",
			"application/json", bytes.NewReader(encode(load(t, "job"))))
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber, nil
	}
	client := func(a *authority, name string, use x509.ExtKeyUsage, until time.Duration) []tls.Certificate {
		return []tls.Certificate{a.issue(name, use, until)}
	}
	const asClient = x509.ExtKeyUsageClientAuth
	for name, cert := range map[string][]tls.Certificate{
		"none":              nil,
		"of another CA":     client(theirs, "kube-apiserver", asClient, time.Hour),
		"of another name":   client(ours, "kubelet", asClient, time.Hour),
		"of a server":       client(ours, "kube-apiserver", x509.ExtKeyUsageServerAuth, time.Hour),
		"of a time gone by": client(ours, "kube-apiserver", asClient, -time.Minute),
	} {
		if status, _, err := post(cert...); err == nil {
			t.Errorf("a certificate %s: answered %d", name, status)
		}
	}
	if n := c.rows("screening"); n != 0 {
		t.Errorf("%d screenings by callers without a certificate", n)
	}
	good := client(ours, "kube-apiserver", asClient, time.Hour)
	status, first, err := post(good...)
	if err != nil || status != http.StatusOK || c.rows("screening") != 1 {
		t.Fatalf("the API server: %d, %v", status, err)
	}
	// The hook's certificate is renewed, and its new one is used without a restart.
	write(t, ours.issue("hook", x509.ExtKeyUsageServerAuth, time.Hour), files.Cert, files.Key)
	_, second, err := post(good...)
	if err != nil || first.Cmp(second) == 0 {
		t.Errorf("after a renewal: %v, serial %v", err, second)
	}
	// Half-written files leave the last good ones in use.
	if err := os.WriteFile(files.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, third, err := post(good...); err != nil || second.Cmp(third) != 0 {
		t.Errorf("with a broken file: %v", err)
	}
	// Another CA for the clients, and the old ones are out.
	write(t, ours.issue("hook", x509.ExtKeyUsageServerAuth, time.Hour), files.Cert, files.Key)
	if err := os.WriteFile(files.ClientCA, theirs.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := post(good...); err == nil {
		t.Error("a client of the CA that was taken out is answered")
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func TestServerNeedsFiles(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	good := certificate.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt")}
	write(t, a.issue("hook", x509.ExtKeyUsageServerAuth, time.Hour), good.Cert, good.Key)
	if err := os.WriteFile(good.ClientCA, a.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := on(t, failing{}, reviewtest.Floor, pledgeYAML)
	if _, err := kubernetes.Server(c.handler, good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*certificate.Files){
		"needs a certificate, its key and the CA": func(f *certificate.Files) { f.ClientCA = "" },
		"certificate":                 func(f *certificate.Files) { f.Key = f.ClientCA },
		"no such file":                func(f *certificate.Files) { f.ClientCA += "x" },
		"holds no certificate in PEM": func(f *certificate.Files) { f.ClientCA = f.Key },
	} {
		files := good
		change(&files)
		if _, err := kubernetes.Server(c.handler, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
