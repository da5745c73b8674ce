package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// selfSigned gives a certificate that serves, asks, and is its own CA.
func selfSigned(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// The built binary answers an API server on the hook's listener, and nobody on the other.
func TestServeKubernetesHook(t *testing.T) {
	t.Parallel()
	db, dir, config := newDatabase(t), t.TempDir(), configFor(t, "")
	hookCert, hookKey := selfSigned(t, "hook")
	clientCert, clientKey := selfSigned(t, "kube-apiserver")
	flags := []string{"--config", config, "--hooks-listen", "127.0.0.1:0", "--hooks-service", "airflow",
		"--hooks-cert", writeFile(t, hookCert, dir, "tls.crt"), "--hooks-key", writeFile(t, hookKey, dir, "tls.key"),
		"--hooks-client-ca", writeFile(t, clientCert, dir, "ca.crt")}
	g := startGate(t, []string{db.env()}, flags...).ready()
	event := g.log.event("kubernetes hook listening")
	if event == nil {
		t.Fatalf("no hook\n%s", g.log)
	}
	review, err := os.ReadFile("kubernetes/testdata/job.json")
	if err != nil {
		t.Fatal(err)
	}
	review = []byte(strings.NewReplacer("hf://example", "hf://x", `{tag: personal_data, state: absent, basis: structured}`,
		`{tag: personal_data, state: absent, basis: structured}\n  - {tag: biometric, state: absent, basis: structured}`).Replace(string(review)))
	pair, err := tls.X509KeyPair(clientCert, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hookCert)
	ask := func(url string, certs ...tls.Certificate) (int, string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certs}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Post(url+"/hooks/kubernetes/validate?timeout=10s", "application/json", bytes.NewReader(review))
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	hook := "https://" + event["address"]
	if status, body, err := ask(hook, pair); err != nil || status != 200 || !strings.Contains(body, `"allowed":true`) {
		t.Errorf("the API server: %d %s %v", status, body, err)
	}
	if status, body, err := ask(hook); err == nil {
		t.Errorf("without a certificate: %d %s", status, body)
	}
	if status, body, err := ask(g.url, pair); err != nil || status != http.StatusNotFound {
		t.Errorf("on the other listener: %d %s %v", status, body, err)
	}
	resp, err := http.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if metrics, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(metrics), `weir_hook_seconds_count{kind="Job",result="admitted"} 1`) {
		t.Errorf("not counted: %v", err)
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("stopped with %d\n%s", code, g.log)
	}
}

func TestServeHalfAHook(t *testing.T) {
	t.Parallel()
	db, config, dir := newDatabase(t), configFor(t, ""), t.TempDir()
	cert, key := selfSigned(t, "hook")
	files := []string{"--hooks-cert", writeFile(t, cert, dir, "tls.crt"), "--hooks-key", writeFile(t, key, dir, "tls.key"), "--hooks-client-ca", writeFile(t, cert, dir, "ca.crt")}
	for want, flags := range map[string][]string{
		"give --hooks-listen":                      {"--hooks-service", "airflow"},
		"needs a service":                          append([]string{"--hooks-listen", "127.0.0.1:0"}, files...),
		"is not a service declared in people.yaml": append([]string{"--hooks-listen", "127.0.0.1:0", "--hooks-service", "ana"}, files...),
		"needs a certificate, its key and the CA":  {"--hooks-listen", "127.0.0.1:0", "--hooks-service", "airflow"},
	} {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "--config", config, "--packs", pledge(t)}, flags...)
		if r := weirEnv(t, []string{db.env()}, args...); r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %d %s", flags, r.code, r.stderr)
		}
	}
}

// The example of the manifests is admitted by the shipped packs, as the hook sees it.
func TestKubernetesSpec(t *testing.T) {
	t.Parallel()
	r := weir(t, "kubernetes", "spec", "../../deploy/kubernetes/example-trainjob.yaml")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	file := writeFile(t, []byte(r.stdout), t.TempDir(), "spec.json")
	if check := weir(t, "check", "--offline", file); check.code != exitAdmit {
		t.Errorf("%d %s%s", check.code, check.stdout, check.stderr)
	}
	manifest, err := os.ReadFile("../../deploy/kubernetes/example-trainjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		"kind: TrainJob → kind: Deployment":       "of a kind that is not gated",
		"weir.dev/spec → weir.dev/other":          "the annotation weir.dev/spec is missing",
		"objective:\n → objectif:\n":              "is not a known key",
		"apiVersion: trainer → apiVersion: [1, 2": "is not well-formed YAML",
		"s3://help/questions/2026.2/\"} → x\"}":   "is data that no input of the training spec names",
	} {
		old, new, _ := strings.Cut(change, " → ")
		file := writeFile(t, []byte(strings.Replace(string(manifest), old, new, 1)), t.TempDir(), "job.yaml")
		if r := weir(t, "kubernetes", "spec", file); r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %d %s", change, r.code, r.stderr)
		}
	}
}
