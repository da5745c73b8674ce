package review

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"

	"weir/screening"
)

// An API key reads weir_<id>_<secret><checksum>. The prefix lets scanners find
// leaked keys, the checksum tells a mistyped key without asking the database,
// and the secret has 256 bits, so a plain digest of it is enough to keep.
const (
	keyPrefix   = "weir_"
	keyIDLen    = 12
	keySecret   = 43
	keyChecksum = 6
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// APIKey is a key's public id and the digest of its secret.
type APIKey struct {
	ID           string
	SecretSHA256 screening.Digest256
}

// NewAPIKey makes a key. The token is shown once and kept nowhere.
func NewAPIKey() (token string, key APIKey, err error) {
	id, err := randomBase62(keyIDLen)
	if err != nil {
		return "", APIKey{}, err
	}
	secret, err := randomBase62(keySecret)
	if err != nil {
		return "", APIKey{}, err
	}
	token = keyPrefix + id + "_" + secret
	return token + checksum(token), APIKey{ID: id, SecretSHA256: screening.Sum([]byte(secret))}, nil
}

// IsAPIKey reports whether a token is meant as one of our keys.
func IsAPIKey(token string) bool { return strings.HasPrefix(token, keyPrefix) }

// ParseAPIKey reads a token. The error is ErrUnauthenticated.
func ParseAPIKey(token string) (APIKey, error) {
	rest, ok := strings.CutPrefix(token, keyPrefix)
	if !ok || len(rest) != keyIDLen+1+keySecret+keyChecksum || rest[keyIDLen] != '_' || !isBase62(rest[:keyIDLen]) {
		return APIKey{}, ErrUnauthenticated
	}
	body := token[:len(token)-keyChecksum]
	if checksum(body) != token[len(body):] {
		return APIKey{}, ErrUnauthenticated
	}
	secret := rest[keyIDLen+1 : keyIDLen+1+keySecret]
	return APIKey{ID: rest[:keyIDLen], SecretSHA256: screening.Sum([]byte(secret))}, nil
}

// isBase62 keeps what is no id, or no text at all, away from the database.
func isBase62(s string) bool { return strings.Trim(s, base62) == "" }

func randomBase62(n int) (string, error) {
	out := make([]byte, n)
	for i := range out {
		d, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			return "", fmt.Errorf("random key: %w", err)
		}
		out[i] = base62[d.Int64()]
	}
	return string(out), nil
}

func checksum(s string) string {
	sum, out := crc32.ChecksumIEEE([]byte(s)), make([]byte, keyChecksum)
	for i := range out {
		out[i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
	return string(out)
}
