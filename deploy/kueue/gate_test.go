package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// pairFiles writes a certificate for both ends that is its own CA.
func pairFiles(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := errors.Join(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestGate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serverCert, serverKey := pairFiles(t, dir, "gate")
	cert, key := pairFiles(t, dir, "weir-kueue")
	var answer func(w http.ResponseWriter, asked *admissionv1.AdmissionRequest)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		if r.URL.Query().Get("timeout") == "" || review.Request.Operation != admissionv1.Create || *review.Request.DryRun ||
			review.Request.Kind.Kind != "TrainJob" || review.Request.Resource.Resource != "trainjobs" || !strings.Contains(string(review.Request.Object.Raw), `"weir.dev/gate":"true"`) {
			t.Errorf("asked %s %+v", r.URL, review.Request)
		}
		answer(w, review.Request)
	}))
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	clients.AppendCertsFromPEM(pem)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	t.Cleanup(server.Close)
	g, err := newGate(server.URL, gateFiles{serverCert, cert, key})
	if err != nil {
		t.Fatal(err)
	}
	write := func(edit func(string) string) func(http.ResponseWriter, *admissionv1.AdmissionRequest) {
		return func(w http.ResponseWriter, asked *admissionv1.AdmissionRequest) {
			_, _ = w.Write([]byte(edit(string(recorded(t, "admitted", asked.UID)))))
		}
	}
	same := func(s string) string { return s }
	answer = write(same)
	if v, err := g.ask(t.Context(), job(), "trainjobs"); err != nil || v.result != "admitted" {
		t.Errorf("%+v, %v", v, err)
	}
	if job().GetLabels() != nil {
		t.Error("the object itself was changed")
	}
	for name, a := range map[string]func(http.ResponseWriter, *admissionv1.AdmissionRequest){
		"500": func(w http.ResponseWriter, _ *admissionv1.AdmissionRequest) { w.WriteHeader(500) },
		"a redirect": func(w http.ResponseWriter, _ *admissionv1.AdmissionRequest) {
			w.Header().Set("Location", "/")
			w.WriteHeader(302)
		},
		"nothing":         write(func(string) string { return "" }),
		"half":            write(func(s string) string { return s[:len(s)/2] }),
		"another's":       write(func(s string) string { return strings.Replace(s, `"uid":"`, `"uid":"x`, 1) }),
		"an empty object": write(func(string) string { return "{}" }),
		"v1beta1":         write(func(s string) string { return strings.Replace(s, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1) }),
		"not admitted":    write(func(s string) string { return strings.Replace(s, `"result":"admitted"`, `"result":"passed"`, 1) }),
		"not allowed":     write(func(s string) string { return strings.Replace(s, `"allowed":true`, `"allowed":false`, 1) }),
	} {
		answer = a
		if v, err := g.ask(t.Context(), job(), "trainjobs"); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// A gate that another CA vouches for is not the gate.
	other, err := newGate(server.URL, gateFiles{cert, cert, key})
	if err != nil {
		t.Fatal(err)
	}
	answer = write(same)
	if v, err := other.ask(t.Context(), job(), "trainjobs"); err == nil {
		t.Errorf("of another CA: %+v", v)
	}
	for _, files := range []gateFiles{{"missing", cert, key}, {key, cert, key}, {serverCert, "missing", key}} {
		if _, err := newGate(server.URL, files); err == nil {
			t.Errorf("%+v is taken", files)
		}
	}
}
