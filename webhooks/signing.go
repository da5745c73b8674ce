package webhooks

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// minSecretBytes is the least that Standard Webhooks allows. The library takes
// an empty secret, so the floor is held here.
const minSecretBytes = 24

// Prefixes of secrets and of the public half of an ed25519 one.
const (
	prefixHMAC    = "whsec_"
	prefixEd25519 = "whsk_"
	prefixPublic  = "whpk_"
)

// scheme makes one element of a webhook-signature header. The library's type is
// the scheme v1, the one below v1a.
type scheme interface {
	Sign(msgID string, at time.Time, body []byte) (string, error)
}

// signer holds the parsed secrets of one endpoint.
type signer []signingKey

type signingKey struct {
	scheme
	expires time.Time
}

// parseSecret never repeats its input in an error.
func parseSecret(s string) (scheme, error) {
	encoded, isHMAC := strings.CutPrefix(s, prefixHMAC)
	if !isHMAC {
		var ok bool
		if encoded, ok = strings.CutPrefix(s, prefixEd25519); !ok {
			if strings.HasPrefix(s, prefixPublic) {
				return nil, errors.New("is a public key, which cannot sign; the private one starts with whsk_")
			}
			return nil, errors.New(`does not start with "whsec_" or "whsk_"`)
		}
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("is not standard base64 with padding after the prefix")
	}
	if !isHMAC {
		if len(key) != ed25519.PrivateKeySize || !ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]).Equal(ed25519.PrivateKey(key)) {
			return nil, errors.New("is not an ed25519 key: the base64 of its 32 byte seed and the 32 byte public key that follows from it")
		}
		return ed25519Key(key), nil
	}
	if len(key) < minSecretBytes {
		return nil, fmt.Errorf("holds %d bytes; at least %d are needed, 32 are usual", len(key), minSecretBytes)
	}
	return standardwebhooks.NewWebhookRaw(key)
}

// ed25519Key signs by the scheme v1a of Standard Webhooks, which its library for
// Go does not know.
type ed25519Key ed25519.PrivateKey

func (k ed25519Key) Sign(msgID string, at time.Time, body []byte) (string, error) {
	sig := ed25519.Sign(ed25519.PrivateKey(k), fmt.Appendf(nil, "%s.%d.%s", msgID, at.Unix(), body))
	return "v1a," + base64.StdEncoding.EncodeToString(sig), nil
}

// NewSecret makes a secret for v1 signatures: whsec_ and 32 random bytes.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return prefixHMAC + base64.StdEncoding.EncodeToString(key)
}

// NewKeyPair makes an ed25519 key for v1a signatures: whsk_… to sign with, and
// whpk_… for the receiver.
func NewKeyPair() (private, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	return prefixEd25519 + base64.StdEncoding.EncodeToString(priv), prefixPublic + base64.StdEncoding.EncodeToString(pub), nil
}

func newSigner(secrets []Secret) (signer, error) {
	keys := make(signer, 0, len(secrets))
	for _, s := range secrets {
		sch, err := parseSecret(s.Key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, signingKey{scheme: sch, expires: s.ExpiresAt})
	}
	return keys, nil
}

// The signed text is id.timestamp.body, so a dot in the id would let one part
// run into the next.
var messageID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// sign returns the webhook-signature header: a signature by every secret that
// is still valid at the time of the attempt, separated by spaces.
func (s signer) sign(msgID string, at time.Time, body []byte) (string, error) {
	if !messageID.MatchString(msgID) {
		return "", errors.New("message id is not 1 to 128 letters, digits, dashes or underscores")
	}
	var signatures []string
	for _, k := range s {
		if !k.expires.IsZero() && !at.Before(k.expires) {
			continue
		}
		sig, err := k.Sign(msgID, at, body)
		if err != nil {
			return "", err
		}
		signatures = append(signatures, sig)
	}
	if len(signatures) == 0 {
		return "", errors.New("every secret has expired")
	}
	return strings.Join(signatures, " "), nil
}
