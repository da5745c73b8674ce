package screening

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Digest256 is a SHA-256 digest. It is written as 64 lower-case hex digits.
type Digest256 [sha256.Size]byte

// Sum is the SHA-256 of data.
func Sum(data []byte) Digest256 { return sha256.Sum256(data) }

// ParseDigest256 reads 64 lower-case hex digits.
func ParseDigest256(s string) (Digest256, error) {
	var d Digest256
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) || hex.EncodeToString(b) != s {
		return d, &valueError{"must be a SHA-256 digest: 64 lower-case hex digits"}
	}
	return Digest256(b), nil
}

func (d Digest256) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest was never set.
func (d Digest256) IsZero() bool { return d == Digest256{} }

// MarshalText writes the digest in hex.
func (d Digest256) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest256) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest256(string(text))
	return err
}

// Canonical gives the RFC 8785 (JCS) form of a JSON document.
func Canonical(doc []byte) ([]byte, error) {
	v := jsontext.Value(doc).Clone()
	if err := v.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return v, nil
}
