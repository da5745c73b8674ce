package webhooks

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Class says how an attempt failed. Up to the connection it names the stage
// that failed, whatever the reason; after that, the reason.
type Class string

// The classes. The zero value means that the attempt did not fail.
const (
	ClassDNS         Class = "dns"          // the name did not resolve
	ClassConnect     Class = "connect"      // refused, unreachable, or no answer to the dial
	ClassTLS         Class = "tls"          // the handshake failed or did not end
	ClassTimeout     Class = "timeout"      // connected, but no whole answer in time
	ClassReset       Class = "reset"        // connected, but the connection broke or did not speak HTTP
	ClassSSRFBlocked Class = "ssrf_blocked" // the egress guard refused the address
	ClassHTTPStatus  Class = "http_status"  // an answer that is neither 2xx nor 3xx
	ClassRedirect    Class = "redirect"     // 3xx, never followed
	ClassBodyLimit   Class = "body_limit"   // more answer before the body than is read
	ClassInternal    Class = "internal"     // no request was made: a fault on this side
)

// Classes lists all failure classes, for whoever stores or counts them.
func Classes() []Class {
	return []Class{
		ClassDNS, ClassConnect, ClassTLS, ClassTimeout, ClassReset, ClassSSRFBlocked,
		ClassHTTPStatus, ClassRedirect, ClassBodyLimit, ClassInternal,
	}
}

// Attempt is the record of one request. It holds no secret and no signature,
// and of the URL the host only. Answer and Detail hold text from outside.
type Attempt struct {
	DeliveryID string
	EndpointID string
	MessageID  string
	// Number counts from 1. Zero means that nothing was tried: the outcome
	// needs no attempt to explain it.
	Number    int
	Request   string // set when a person asked for it
	StartedAt time.Time
	Duration  time.Duration
	Host      string     // of the URL, with its port if it names one
	IP        netip.Addr // the address dialled last; invalid if it never came to that
	Status    int        // zero without an answer
	Class     Class      // empty exactly when the receiver has the message
	Detail    string     // what failed, for a person; at most 512 bytes
	// Answer is the start of the body, at most 4 KiB of valid UTF-8, with
	// everything unprintable escaped.
	Answer string
	// Truncated tells that the body was longer than Answer.
	Truncated bool
	// RetryAfter is what the receiver asked for; zero if nothing usable.
	RetryAfter time.Duration

	aborted bool // ended by this side, by stopping; says nothing about the receiver
}

// Delivered reports whether the receiver acknowledged the message.
func (a Attempt) Delivered() bool { return a.Number > 0 && a.Class == "" }

// parseRetryAfter reads seconds or an HTTP date. Anything else, and a moment
// that has passed, is zero: no wish.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	// 31 bits of seconds are 68 years and fit a Duration.
	if secs, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(secs) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// excerpt turns bytes from outside into at most limit bytes of text that is
// safe to store and show: what is not printable, and bidirectional controls
// are not, becomes an escape. It reports whether anything was left out.
func excerpt(b []byte, limit int) (text string, cut bool) {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		var piece string
		switch {
		case r == utf8.RuneError && n == 1:
			piece = fmt.Sprintf(`\x%02x`, b[0])
		case unicode.IsPrint(r):
			piece = string(b[:n])
		default:
			piece = strings.Trim(strconv.QuoteRune(r), "'")
		}
		if out.Len()+len(piece) > limit {
			return out.String(), true
		}
		out.WriteString(piece)
		b = b[n:]
	}
	return out.String(), false
}
