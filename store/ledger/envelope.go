package ledger

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// ErrNotSigned: the envelope carries no valid signature of the key.
var ErrNotSigned = errors.New("no valid signature of this key")

// Signer signs with an ed25519 key that may be kept elsewhere.
type Signer interface {
	Public() PublicKey
	// SignMessage gives the 64 bytes of a pure ed25519 signature.
	SignMessage(message []byte) ([]byte, error)
}

// Key signs. Its id is in every signature; it is a hint, never trusted.
type Key struct{ private ed25519.PrivateKey }

var _ Signer = Key{}

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

// PublicKeyOf gives the key of which these are the 32 raw bytes.
func PublicKeyOf(raw []byte) (PublicKey, error) {
	if len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, errors.New("not an ed25519 key")
	}
	return PublicKey{slices.Clone(raw)}, nil
}

// Public is the key that verifies what k signs.
func (k Key) Public() PublicKey { return PublicKey{k.private.Public().(ed25519.PublicKey)} }

// Bytes gives the 32 bytes of the raw key.
func (p PublicKey) Bytes() []byte { return slices.Clone(p.public) }

// ID is the first 16 hex digits of the SHA-256 of the raw public key.
func (p PublicKey) ID() string {
	sum := sha256.Sum256(p.public)
	return hex.EncodeToString(sum[:8])
}

// SignMessage signs.
func (k Key) SignMessage(message []byte) ([]byte, error) {
	return ed25519.Sign(k.private, message), nil
}

// Sign puts a payload into a DSSE envelope signed with the key.
func (k Key) Sign(ctx context.Context, payloadType string, payload []byte) ([]byte, error) {
	return Envelope(ctx, payloadType, payload, k)
}

// Envelope puts a payload into a DSSE envelope that every given key signed.
func Envelope(ctx context.Context, payloadType string, payload []byte, keys ...Signer) ([]byte, error) {
	signers := make([]dsse.Signer, len(keys))
	for i, k := range keys {
		signers[i] = signer{k}
	}
	signer, err := dsse.NewEnvelopeSigner(signers...)
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
	payload, signed, err := openEnvelope(ctx, payloadType, envelope, []PublicKey{p})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSigned, err)
	}
	if len(signed) == 0 {
		return nil, ErrNotSigned
	}
	return payload, nil
}

// openEnvelope gives the payload of an envelope and those of the keys that signed
// it. It takes only the form that Envelope writes, with or without a line's end:
// two files that differ must never be the same record.
func openEnvelope(ctx context.Context, payloadType string, envelope []byte, keys []PublicKey) (payload []byte, signed []PublicKey, err error) {
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, nil, errors.New("not a DSSE envelope")
	}
	again, err := json.Marshal(e)
	if err != nil || !bytes.Equal(again, bytes.TrimSuffix(envelope, []byte("\n"))) {
		return nil, nil, errors.New("the envelope is written in another form than weir's")
	}
	if e.PayloadType != payloadType {
		return nil, nil, errors.New("the envelope holds something else")
	}
	if payload, err = base64.StdEncoding.Strict().DecodeString(e.Payload); err != nil {
		return nil, nil, errors.New("the envelope's payload is not base64")
	}
	for _, k := range keys {
		v, err := dsse.NewEnvelopeVerifier(verifier{k})
		if err != nil {
			return nil, nil, err
		}
		if _, err := v.Verify(ctx, &e); err == nil {
			signed = append(signed, k)
		}
	}
	return payload, signed, nil
}

// signer and verifier fit the keys to the library's interfaces.
type signer struct{ Signer }

func (s signer) Sign(_ context.Context, data []byte) ([]byte, error) { return s.SignMessage(data) }
func (s signer) KeyID() (string, error)                              { return s.Public().ID(), nil }

type verifier struct{ PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.public, data, sig) {
		return ErrNotSigned
	}
	return nil
}
func (v verifier) KeyID() (string, error)   { return v.ID(), nil }
func (v verifier) Public() crypto.PublicKey { return v.public }
