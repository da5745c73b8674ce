package webhooks

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"
)

// Bounds and defaults of a declared endpoint.
const (
	DefaultTimeout     = 15 * time.Second
	MinTimeout         = 100 * time.Millisecond
	MaxTimeout         = time.Minute
	DefaultMaxInFlight = 2
	MaxMaxInFlight     = 64
)

// ErrInvalidEndpoint is wrapped by every complaint of [Endpoint.Normalise].
var ErrInvalidEndpoint = errors.New("invalid webhook endpoint")

// Endpoint is a receiver as an operator declared it. Whoever reads the
// declaration resolves secret files and environment variables first: here the
// secrets are the "whsec_…" strings themselves.
type Endpoint struct {
	// ID names the endpoint in policies, deliveries and logs.
	ID string `json:"id"`

	// URL receives the POST. https, unless AllowHTTP is set; no user
	// information and no fragment.
	URL string `json:"url"`

	// Secrets sign every message, each one that has not expired: whsec_… makes
	// v1 signatures, whsk_… v1a. At least one whsec_… must have no expiry, so
	// that a rotation cannot end with nothing to sign with.
	Secrets []Secret `json:"secrets"`

	// Timeout is for one whole attempt, from the name lookup to the end of the
	// answer. Zero means DefaultTimeout; otherwise MinTimeout to MaxTimeout.
	Timeout time.Duration `json:"timeout,omitzero"`

	// AllowPrivate lets the address be loopback or private. It never lifts the
	// refusal of metadata and link-local addresses.
	AllowPrivate bool `json:"allow_private,omitzero"`

	// AllowHTTP accepts an http URL: the message then travels in the clear.
	AllowHTTP bool `json:"allow_http,omitzero"`

	// MaxInFlight is how many requests may be open at once. Zero means
	// DefaultMaxInFlight; at most MaxMaxInFlight.
	MaxInFlight int `json:"max_in_flight,omitzero"`

	// Format of the bodies. Empty means FormatStandard.
	Format Format `json:"format,omitzero"`

	// Types of messages that are sent. Nil means all; pings always are.
	Types []string `json:"types,omitzero"`

	// Bearer is sent as "Authorization: Bearer …". The zero value sends none.
	// It and Certificate need https.
	Bearer Secret `json:"bearer,omitzero"`

	// Certificate is shown to the receiver, with its key. Nil shows none.
	Certificate *tls.Certificate `json:"-"`

	// RootCAs verify this receiver's certificate. Nil means the dispatcher's.
	RootCAs *x509.CertPool `json:"-"`
}

// Secret is one signing secret. However it is printed, logged or marshalled,
// its key does not show.
type Secret struct {
	// Key is "whsec_" and the base64 of at least 24 random bytes, or "whsk_" and
	// the base64 of an ed25519 private key.
	Key string `json:"key"`

	// ExpiresAt ends the use of a secret that is being rotated out. Zero means
	// never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

const redacted = "[secret]"

// Format covers every verb of fmt, %#v too.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// LogValue implements [slog.LogValuer].
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON implements [json.Marshaler]. It is one-way on purpose.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// bearerToken is the b64token of RFC 6750, so that no token can end the header.
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

var endpointID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Normalise checks a declaration and returns it with its defaults filled in and
// the URL as it will be dialled (host lower case, in ASCII), which is what an
// operator should be shown. The error joins all complaints; each names the
// endpoint, says what to do, and repeats neither a secret nor the URL, which
// may hold one.
func (e Endpoint) Normalise() (Endpoint, error) {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w %q: %s", ErrInvalidEndpoint, e.ID, fmt.Sprintf(format, args...)))
	}

	if !endpointID.MatchString(e.ID) {
		complain("id must be 1 to 64 letters, digits, dots, dashes or underscores, and start with a letter or digit")
	}
	dialled, err := e.normaliseURL()
	if err != nil {
		complain("%v", err)
	}
	if err := checkSecrets(e.Secrets); err != nil {
		complain("%v", err)
	}
	switch {
	case e.Timeout == 0:
		e.Timeout = DefaultTimeout
	case e.Timeout < MinTimeout || e.Timeout > MaxTimeout:
		complain("timeout is %v; it must be between %v and %v (default %v)", e.Timeout, MinTimeout, MaxTimeout, DefaultTimeout)
	}
	switch {
	case e.MaxInFlight == 0:
		e.MaxInFlight = DefaultMaxInFlight
	case e.MaxInFlight < 0 || e.MaxInFlight > MaxMaxInFlight:
		complain("max_in_flight is %d; it must be between 1 and %d (default %d)", e.MaxInFlight, MaxMaxInFlight, DefaultMaxInFlight)
	}
	switch {
	case e.Format == "":
		e.Format = FormatStandard
	case !slices.Contains(Formats(), e.Format):
		complain("format must be one of %v", Formats())
	}
	if e.Types != nil && len(e.Types) == 0 {
		complain("types is an empty list; leave it out to be told of everything")
	}
	for _, typ := range e.Types {
		if !slices.Contains(Types(), typ) {
			complain("types must be of %s", strings.Join(Types(), ", "))
			break
		}
	}
	if e.Bearer.Key != "" && (len(e.Bearer.Key) > 4096 || !bearerToken.MatchString(e.Bearer.Key)) {
		complain("the bearer token must be 1 to 4096 letters, digits or - . _ ~ + / =")
	}
	if (e.Bearer.Key != "" || e.Certificate != nil) && err == nil && !strings.HasPrefix(dialled, "https:") {
		complain("a bearer token or client certificate needs https")
	}
	if len(errs) > 0 {
		return Endpoint{}, errors.Join(errs...)
	}
	e.URL = dialled
	return e, nil
}

func checkSecrets(secrets []Secret) error {
	if len(secrets) == 0 {
		return errors.New("no secret; give at least one, whsec_ and the base64 of 32 random bytes")
	}
	lasting := map[string]int{} // how many, by prefix
	for i, s := range secrets {
		if _, err := parseSecret(s.Key); err != nil {
			return fmt.Errorf("secret %d: %w", i+1, err)
		}
		if s.ExpiresAt.IsZero() {
			prefix, _, _ := strings.Cut(s.Key, "_")
			lasting[prefix+"_"]++
		}
	}
	if lasting[prefixHMAC] == 0 {
		return errors.New("every secret has an expiry; set it only on those that are being rotated out, and keep one whsec_ without")
	}
	for prefix, n := range lasting {
		if n > 1 {
			return fmt.Errorf("%d secrets %s… have no expiry; give the old ones one, a day from now is usual", n, prefix)
		}
	}
	return nil
}

func (e Endpoint) normaliseURL() (string, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Opaque != "" {
		// The parser's own message quotes the input, password and all.
		return "", errors.New("url is not an absolute URL such as https://hooks.example.org/weir")
	}
	switch {
	case u.Scheme == "http" && !e.AllowHTTP:
		return "", errors.New("url is http; use https, or set allow_http: true if the message may travel in the clear")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("url must start with https://")
	case u.User != nil:
		return "", errors.New("url holds user information; remove it, the signature authenticates the sender")
	case strings.Contains(e.URL, "#"):
		return "", errors.New("url has a fragment, which is never sent; remove it")
	}
	host, err := e.normaliseHost(u.Hostname())
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") {
		return "", errors.New("url has a colon without a port; add the port or remove the colon")
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", errors.New("url has a port outside 1 to 65535")
		}
		u.Host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	} else {
		u.Host = host
	}
	return u.String(), nil
}

var (
	hostName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$`)
	// A last label of this form makes resolvers read the whole host as an IPv4
	// address: 127.1, 2130706433, 0x7f000001, 0177.0.0.1.
	numericLabel = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)
)

// normaliseHost returns the host as it will be resolved. A literal address is
// judged here already; a name only when it is dialled.
func (e Endpoint) normaliseHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("url has no host")
	}
	if !strings.Contains(host, ":") {
		if isASCII(host) {
			// Not through idna: it refuses the underscores of container names.
			host = strings.ToLower(host)
		} else {
			ascii, err := idna.Lookup.ToASCII(host)
			if err != nil {
				return "", errors.New("url has a host that is not a valid international domain name")
			}
			host = ascii
		}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if numericLabel.MatchString(host) {
			return "", errors.New("url has a number for a host; write an IPv4 address as four decimal parts")
		}
		if len(host) > 253 || !hostName.MatchString(host) {
			return "", errors.New("url has a host that is neither a domain name nor an IP address")
		}
		return host, nil
	}
	if addr.Zone() != "" {
		return "", errors.New("url has an address with a zone; link-local receivers are never allowed")
	}
	var blocked *BlockedError
	if errors.As(guard{allowPrivate: e.AllowPrivate}.check(addr), &blocked) {
		if blocked.Private {
			return "", fmt.Errorf("url points at %v (%s); set allow_private: true if that is meant", addr, blocked.Reason)
		}
		return "", fmt.Errorf("url points at %v (%s), which is never allowed", addr, blocked.Reason)
	}
	return addr.String(), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
