package webhooks

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers the n-th question (from 1) for an A record with addr(n),
// and has no other records.
func nameServer(t *testing.T, addr func(n int) netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		asked := 0
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				asked++
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: addr(asked).As4()},
				}}
			}
			if out, err := m.Pack(); err == nil {
				pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() {
		pc.Close()
		<-ended
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// named rewrites the URL of a receiver so that it goes through a name server.
func named(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "receiver.test:" + u.Port()
	return u.String()
}

// Fault test 33, and the rest of its kind: what a name resolves to is judged
// each time, on the address that is dialled.
func TestEgressRebinding(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(200))
	loop, metadata := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")
	dns := nameServer(t, func(n int) netip.Addr {
		if n == 1 {
			return loop
		}
		return metadata
	})
	s := newTestSender(t, loopback("legal", named(t, r.URL)), Config{Resolver: dns})

	if a := s.send(t.Context(), message("legal")); !a.Delivered() || a.IP != loop {
		t.Fatalf("first attempt: class %q (%s), IP %v", a.Class, a.Detail, a.IP)
	}
	a := s.send(t.Context(), message("legal"))
	if a.Class != ClassSSRFBlocked || a.IP != metadata || a.Status != 0 {
		t.Errorf("second attempt: class %q (%s), IP %v, status %d", a.Class, a.Detail, a.IP, a.Status)
	}
	if n := len(r.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestEgressNames(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(200))
	tests := []struct {
		name, addr string
		private    bool
		refuse     []netip.Prefix
		want       Class
	}{
		{"loopback, declared", "127.0.0.1", true, nil, ""},
		{"loopback, not declared", "127.0.0.1", false, nil, ClassSSRFBlocked},
		{"private, not declared", "10.0.0.1", false, nil, ClassSSRFBlocked},
		{"metadata", "169.254.169.254", true, nil, ClassSSRFBlocked},
		{"unspecified", "0.0.0.0", true, nil, ClassSSRFBlocked}, // dialled, it would be loopback
		{"refused by the deployment", "127.0.0.1", true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, ClassSSRFBlocked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dns := nameServer(t, func(int) netip.Addr { return netip.MustParseAddr(tt.addr) })
			e := loopback("legal", named(t, r.URL))
			e.AllowPrivate = tt.private
			a := newTestSender(t, e, Config{Resolver: dns, Refuse: tt.refuse}).send(t.Context(), message("legal"))
			if a.Class != tt.want || a.IP.String() != tt.addr {
				t.Errorf("class %q (%s), IP %v; want %q", a.Class, a.Detail, a.IP, tt.want)
			}
		})
	}
}

// Fault test 32 once more, with the check at load taken away: were it ever to
// miss a spelling, the dial would still refuse. Nothing here leaves the machine
// or needs a name server: literals are not looked up, and a spelling that is
// not a literal is answered with the address a lenient resolver would make of it.
func TestEgressSpellings(t *testing.T) {
	t.Parallel()
	hit := atomic.Int64{}
	port := rawServer(t, func(net.Conn) { hit.Add(1) })
	port = port[strings.LastIndex(port, ":"):]
	dns := nameServer(t, func(int) netip.Addr { return netip.MustParseAddr("127.0.0.1") })
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1%25lo]",
		"168.63.129.16", "0.0.0.0", "[::]", "①②⑦.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1",
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			s := newTestSender(t, Endpoint{
				ID: "legal", URL: "http://receiver.test/", AllowHTTP: true, Secrets: []Secret{{Key: testSecret}}, Timeout: patience,
			}, Config{Resolver: dns})
			u, err := url.Parse("http://" + host + port + "/")
			if err != nil {
				t.Fatal(err)
			}
			s.url = u
			a := s.send(t.Context(), message("legal"))
			// Go's own resolver knows that a number is no name.
			if a.Class != ClassSSRFBlocked && (a.Class != ClassDNS || !numericLabel.MatchString(u.Hostname())) {
				t.Errorf("class %q (%s), IP %v", a.Class, a.Detail, a.IP)
			}
		})
	}
	t.Cleanup(func() {
		if n := hit.Load(); n != 0 {
			t.Errorf("%d connections reached the receiver", n)
		}
	})
}
