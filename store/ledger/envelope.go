package ledger

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// ErrNotSigned: the envelope carries no valid signature of the key.
var ErrNotSigned = errors.New("no valid signature of this key")

// Key signs. Its id is in every signature; it is a hint, never trusted.
type Key struct{ private ed25519.PrivateKey }

// PublicKey verifies.
type PublicKey struct{ public ed25519.PublicKey }

// ParseKey reads an ed25519 key in PKCS #8 PEM, as openssl genpkey -algorithm
// ed25519 writes it.
func ParseKey(data []byte) (Key, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return Key{}, errors.New("not PEM; make a key with: openssl genpkey -algorithm ed25519 -out key.pem")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, errors.New("not a PKCS #8 key; make one with: openssl genpkey -algorithm ed25519 -out key.pem")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, errors.New("not an ed25519 key")
	}
	return Key{private}, nil
}

// ParsePublicKey reads an ed25519 public key in PEM, as openssl pkey -pubout writes it.
func ParsePublicKey(data []byte) (PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return PublicKey{}, errors.New("not PEM; write it with: openssl pkey -in key.pem -pubout")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, errors.New("not a public key; write it with: openssl pkey -in key.pem -pubout")
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return PublicKey{}, errors.New("not an ed25519 key")
	}
	return PublicKey{public}, nil
}

// Public is the key that verifies what k signs.
func (k Key) Public() PublicKey { return PublicKey{k.private.Public().(ed25519.PublicKey)} }

// ID is the first 16 hex digits of the SHA-256 of the raw public key.
func (p PublicKey) ID() string {
	sum := sha256.Sum256(p.public)
	return hex.EncodeToString(sum[:8])
}

// Sign puts a payload into a DSSE envelope signed with the key.
func (k Key) Sign(ctx context.Context, payloadType string, payload []byte) ([]byte, error) {
	signer, err := dsse.NewEnvelopeSigner(signer{k})
	if err != nil {
		return nil, err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return json.Marshal(envelope)
}

// Open gives the payload of an envelope that the key signed. The error is
// ErrNotSigned for anything else.
func (p PublicKey) Open(ctx context.Context, payloadType string, envelope []byte) ([]byte, error) {
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, fmt.Errorf("%w: not a DSSE envelope", ErrNotSigned)
	}
	if e.PayloadType != payloadType {
		return nil, fmt.Errorf("%w: the envelope holds something else", ErrNotSigned)
	}
	verifier, err := dsse.NewEnvelopeVerifier(verifier{p})
	if err != nil {
		return nil, err
	}
	if _, err := verifier.Verify(ctx, &e); err != nil {
		return nil, ErrNotSigned
	}
	return e.DecodeB64Payload()
}

// signer and verifier fit the keys to the library's interfaces.
type signer struct{ Key }

func (s signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.private, data), nil
}
func (s signer) KeyID() (string, error) { return s.Public().ID(), nil }

type verifier struct{ PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.public, data, sig) {
		return ErrNotSigned
	}
	return nil
}
func (v verifier) KeyID() (string, error)   { return v.ID(), nil }
func (v verifier) Public() crypto.PublicKey { return v.public }
