package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
)

func newKey(t *testing.T) (key Key, privatePEM, publicPEM []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	privatePEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	publicPEM = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
	if key, err = ParseKey(privatePEM); err != nil {
		t.Fatal(err)
	}
	return key, privatePEM, publicPEM
}

func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	const kind = "application/vnd.test+json"
	key, _, publicPEM := newKey(t)
	public, err := ParsePublicKey(publicPEM)
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"a":1}`)
	envelope, err := key.Sign(t.Context(), kind, payload)
	if err != nil {
		t.Fatal(err)
	}
	got, err := public.Open(t.Context(), kind, envelope)
	if err != nil || !bytes.Equal(got, payload) {
		t.Fatalf("opened %q, %v", got, err)
	}
	other, _, _ := newKey(t)
	for name, try := range map[string]func() ([]byte, error){
		"another key":  func() ([]byte, error) { return other.Public().Open(t.Context(), kind, envelope) },
		"another type": func() ([]byte, error) { return public.Open(t.Context(), "application/json", envelope) },
		"not JSON":     func() ([]byte, error) { return public.Open(t.Context(), kind, []byte("x")) },
		"no signature": func() ([]byte, error) {
			return public.Open(t.Context(), kind, []byte(`{"payloadType":"`+kind+`","payload":"e30=","signatures":[]}`))
		},
	} {
		if _, err := try(); !errors.Is(err, ErrNotSigned) {
			t.Errorf("%s: %v, want ErrNotSigned", name, err)
		}
	}
	// Every single byte of the signed payload and of the signature matters.
	for i := range envelope {
		changed := bytes.Clone(envelope)
		changed[i] ^= 1
		if got, err := public.Open(t.Context(), kind, changed); err == nil && !bytes.Equal(got, payload) {
			t.Errorf("byte %d changed: another payload was accepted", i)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	_, privatePEM, publicPEM := newKey(t)
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "public": publicPEM} {
		if _, err := ParseKey(data); err == nil {
			t.Errorf("private key from %s: accepted", name)
		}
	}
	for name, data := range map[string][]byte{"nothing": nil, "private": privatePEM} {
		if _, err := ParsePublicKey(data); err == nil {
			t.Errorf("public key from %s: accepted", name)
		}
	}
}
