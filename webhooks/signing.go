package webhooks

import (
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

// scheme makes one element of a webhook-signature header. The library's type is
// the scheme v1; another version is another type with this method and another
// prefix in parseSecret.
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
	encoded, ok := strings.CutPrefix(s, "whsec_")
	if !ok {
		return nil, errors.New(`does not start with "whsec_"`)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("is not standard base64 with padding after the prefix")
	}
	if len(key) < minSecretBytes {
		return nil, fmt.Errorf("holds %d bytes; at least %d are needed, 32 are usual", len(key), minSecretBytes)
	}
	return standardwebhooks.NewWebhookRaw(key)
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
