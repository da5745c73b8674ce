package webhooks

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestNormaliseURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		url           string
		private, http bool
		want          string // the URL, or if it starts with "!" a part of the complaint
	}{
		{url: "https://Hooks.Example.ORG/Weir?x=Y", want: "https://hooks.example.org/Weir?x=Y"},
		{url: "HTTPS://hooks.example.org:8443/", want: "https://hooks.example.org:8443/"},
		{url: "https://bücher.example/", want: "https://xn--bcher-kva.example/"},
		{url: "https://hooks.example.org./", want: "https://hooks.example.org./"},
		{url: "http://weir_receiver/", http: true, want: "http://weir_receiver/"},
		{url: "https://[2606:4700::1111]/", want: "https://[2606:4700::1111]/"},
		{url: "https://[2606:4700:0::1111]:444/", want: "https://[2606:4700::1111]:444/"},
		{url: "http://127.0.0.1:9/", private: true, http: true, want: "http://127.0.0.1:9/"},
		{url: "http://①②⑦.0.0.1/", private: true, http: true, want: "http://127.0.0.1/"}, // shown as what it is

		{url: "http://hooks.example.org/", want: "!allow_http: true"},
		{url: "", want: "!must start with https://"},
		{url: "hooks.example.org", want: "!must start with https://"},
		{url: "//hooks.example.org/", want: "!must start with https://"},
		{url: "file:///etc/passwd", want: "!must start with https://"},
		{url: "gopher://hooks.example.org/", want: "!must start with https://"},
		{url: "https:hooks.example.org", want: "!not an absolute URL"},
		{url: "https://exa mple.org/", want: "!not an absolute URL"},
		{url: "https:///path", want: "!no host"},
		{url: "https://user:pw@hooks.example.org/", want: "!user information"},
		{url: "https://@hooks.example.org/", want: "!user information"},
		{url: "https://hooks.example.org/#x", want: "!fragment"},
		{url: "https://hooks.example.org/#", want: "!fragment"},
		{url: "https://hooks.example.org:/", want: "!colon without a port"},
		{url: "https://hooks.example.org:0/", want: "!port outside"},
		{url: "https://hooks.example.org:65536/", want: "!port outside"},
		{url: "https://-hooks.example.org/", want: "!neither a domain name nor"},
		{url: "https://hooks..example.org/", want: "!neither a domain name nor"},
		{url: "https://a*b.example.org/", want: "!neither a domain name nor"},
		{url: "https://\u202eexample.org/", want: "!not a valid international domain name"},

		// Fault test 32: every spelling of an address that must not be reached.
		{url: "https://169.254.169.254/", private: true, want: "!never allowed"},
		{url: "https://[::ffff:169.254.169.254]/", private: true, want: "!never allowed"},
		{url: "https://[64:ff9b::a9fe:a9fe]/", private: true, want: "!never allowed"},
		{url: "https://[fe80::1%25lo]/", private: true, want: "!zone"},
		{url: "https://[fe80::1]/", private: true, want: "!never allowed"},
		{url: "https://168.63.129.16/", private: true, want: "!never allowed"},
		{url: "https://0.0.0.0/", private: true, want: "!never allowed"},
		{url: "https://[::]/", private: true, want: "!never allowed"},
		{url: "https://①⑥⑨.254.169.254/", private: true, want: "!never allowed"},
		{url: "https://127.1/", private: true, want: "!four decimal parts"},
		{url: "https://2130706433/", private: true, want: "!four decimal parts"},
		{url: "https://0x7f000001/", private: true, want: "!four decimal parts"},
		{url: "https://0X7F.0.0.1/", private: true, want: "!four decimal parts"},
		{url: "https://0177.0.0.1/", private: true, want: "!four decimal parts"},
		{url: "https://127.0.0.1./", private: true, want: "!four decimal parts"},
		{url: "https://127.0.0.1/", want: "!allow_private: true"},
		{url: "https://①②⑦.0.0.1/", want: "!allow_private: true"},
		{url: "https://10.1.2.3/", want: "!allow_private: true"},
		{url: "https://[::1]/", want: "!allow_private: true"},
		{url: "https://[::ffff:10.0.0.1]/", want: "!allow_private: true"},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel()
			e := Endpoint{ID: "legal", URL: tt.url, Secrets: []Secret{{Key: testSecret}}, AllowPrivate: tt.private, AllowHTTP: tt.http}
			got, err := e.Normalise()
			complaint, refused := strings.CutPrefix(tt.want, "!")
			if !refused {
				if err != nil || got.URL != tt.want {
					t.Errorf("got %q, %v; want %q", got.URL, err, tt.want)
				}
				return
			}
			if !errors.Is(err, ErrInvalidEndpoint) || !strings.Contains(err.Error(), complaint) || !strings.Contains(err.Error(), `"legal"`) {
				t.Errorf("got %q, %v; want a complaint about %q that names the endpoint", got.URL, err, complaint)
			}
			if err != nil && strings.Contains(err.Error(), "pw") {
				t.Errorf("the complaint repeats the password: %v", err)
			}
		})
	}
}

func TestNormaliseDefaultsAndBounds(t *testing.T) {
	t.Parallel()
	good := Endpoint{ID: "legal", URL: "https://hooks.example.org/", Secrets: []Secret{{Key: testSecret}}}
	got, err := good.Normalise()
	if err != nil || got.Timeout != DefaultTimeout || got.MaxInFlight != DefaultMaxInFlight {
		t.Fatalf("got %+v, %v; want the defaults", got, err)
	}
	short := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23))
	tests := []struct {
		name   string
		change func(*Endpoint)
		want   string
	}{
		{"no id", func(e *Endpoint) { e.ID = "" }, "id must be"},
		{"id with space", func(e *Endpoint) { e.ID = "a b" }, "id must be"},
		{"id too long", func(e *Endpoint) { e.ID = strings.Repeat("a", 65) }, "id must be"},
		{"timeout short", func(e *Endpoint) { e.Timeout = time.Millisecond }, "timeout is 1ms"},
		{"timeout long", func(e *Endpoint) { e.Timeout = time.Hour }, "timeout is 1h"},
		{"timeout negative", func(e *Endpoint) { e.Timeout = -1 }, "timeout is -1ns"},
		{"in flight negative", func(e *Endpoint) { e.MaxInFlight = -1 }, "max_in_flight is -1"},
		{"in flight large", func(e *Endpoint) { e.MaxInFlight = 65 }, "max_in_flight is 65"},
		{"no secret", func(e *Endpoint) { e.Secrets = nil }, "no secret"},
		{"empty secret", func(e *Endpoint) { e.Secrets = []Secret{{}} }, "whsec_"},
		{"only a prefix", func(e *Endpoint) { e.Secrets = []Secret{{Key: "whsec_"}} }, "holds 0 bytes"},
		{"23 bytes", func(e *Endpoint) { e.Secrets = []Secret{{Key: short}} }, "holds 23 bytes"},
		{"not base64", func(e *Endpoint) { e.Secrets = []Secret{{Key: "whsec_s3cr3t!"}} }, "not standard base64"},
		{"second one bad", func(e *Endpoint) { e.Secrets = append(e.Secrets[:1:1], Secret{Key: "s3cr3t!"}) }, "secret 2"},
		{"two that last", func(e *Endpoint) { e.Secrets = append(e.Secrets[:1:1], Secret{Key: otherSecret}) }, "2 secrets whsec_… have no expiry"},
		{"format", func(e *Endpoint) { e.Format = "xml" }, "format must be one of [standard chat ticket cloudevents]"},
		{"no types", func(e *Endpoint) { e.Types = []string{} }, "types is an empty list"},
		{"unknown type", func(e *Endpoint) { e.Types = []string{TypeOpened, "review.closed"} }, "types must be of review.opened"},
		{"types with a ping", func(e *Endpoint) { e.Types = []string{TypePing} }, "types must be of"},
		{"bearer with a line end", func(e *Endpoint) { e.Bearer.Key = "s3cr3t\r\nX: y" }, "bearer token must be"},
		{"bearer too long", func(e *Endpoint) { e.Bearer.Key = strings.Repeat("s3cr3t", 1000) }, "bearer token must be"},
		{"bearer in the clear", func(e *Endpoint) { e.URL, e.AllowHTTP, e.Bearer.Key = "http://hooks.example.org/", true, "s3cr3t" }, "needs https"},
		{"certificate in the clear", func(e *Endpoint) {
			e.URL, e.AllowHTTP, e.Certificate = "http://hooks.example.org/", true, &tls.Certificate{}
		}, "needs https"},
		{"all expire", func(e *Endpoint) { e.Secrets = []Secret{{Key: testSecret, ExpiresAt: time.Now()}} }, "every secret has an expiry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := good
			tt.change(&e)
			_, err := e.Normalise()
			if !errors.Is(err, ErrInvalidEndpoint) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v; want a complaint about %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the complaint repeats the secret: %v", err)
			}
		})
	}
	t.Run("all complaints at once", func(t *testing.T) {
		t.Parallel()
		_, err := Endpoint{ID: "x", URL: "ftp://x", Timeout: -1, MaxInFlight: -1}.Normalise()
		if n := strings.Count(fmt.Sprint(err), ErrInvalidEndpoint.Error()); n != 4 {
			t.Errorf("got %d complaints, want 4:\n%v", n, err)
		}
	})
}

func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	e := loopback("legal", "https://hooks.example.org/")
	e.Bearer.Key = testSecret
	var out bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, format+"\n", e.Secrets[0])
		fmt.Fprintf(&out, format+"\n", e)
		fmt.Fprintf(&out, format+"\n", &e)
	}
	enc, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(enc)
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", slog.Any("endpoint", e), slog.Any("secret", e.Secrets[0]), slog.Any("secrets", e.Secrets))
	}
	key := strings.TrimPrefix(testSecret, "whsec_")
	if got := out.String(); strings.Contains(got, key) || strings.Contains(got, fmt.Sprintf("%x", key)) {
		t.Errorf("a secret shows:\n%s", got)
	}
}
