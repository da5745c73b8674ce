package main

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"weir/cmd/weir/client"
)

// 32: addresses that no receiver has are refused when they are declared.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1%25lo]", "168.63.129.16",
		"0.0.0.0", "[::]", "①⑥⑨.254.169.254", "127.1", "2130706433", "0x7f000001", "user:pw@hooks.example.org"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			refusedAtStart(t, endpoint("hook", "http://"+host+"/"))
		})
	}
	for _, u := range []string{"file:///etc/passwd", "gopher://hooks.example.org/"} {
		t.Run(u, func(t *testing.T) {
			t.Parallel()
			refusedAtStart(t, endpoint("hook", u))
		})
	}
	for _, host := range []string{"127.0.0.1:9", "①②⑦.0.0.1", "[::1]:9", "10.0.0.1"} { // allowed, if that is declared
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			refusedAtStart(t, strings.ReplaceAll(endpoint("hook", "http://"+host+"/"), "allow_private: true, ", ""))
			config := endpointsConfig(t, endpoint("hook", "http://"+host+"/"))
			if _, err := loadDeployment(config, slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("declared: %v", err)
			}
		})
	}
}

func refusedAtStart(t *testing.T, endpoint string) {
	t.Helper()
	r := weirEnv(t, nil, "serve", "--listen", "127.0.0.1:0", "--packs", pledge(t), "--state-dir", filepath.Join(t.TempDir(), "none"),
		"--config", endpointsConfig(t, endpoint))
	if r.code != exitUsage || !strings.Contains(r.stderr, `invalid webhook endpoint "hook"`) || strings.Contains(r.stderr, "pw") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// nameServer answers the n-th question (from 1) for an A record with addr(n).
func nameServer(t testing.TB, addr func(n int) string) (address string) {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		asked, buf := 0, make([]byte, 1500)
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
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body: &dnsmessage.AResource{A: netip.MustParseAddr(addr(asked)).As4()}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { pc.Close(); <-ended })
	return pc.LocalAddr().String()
}

// 33: a name that points at the receiver when it is first looked up, then at the
// metadata service: what counts is the address that is dialled, each time.
func TestRebinding(t *testing.T) {
	t.Parallel()
	h := newHook(t, answering(500, 200))
	u, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	dns := nameServer(t, func(n int) string { return []string{"127.0.0.1", "169.254.169.254", "127.0.0.1"}[min(n-1, 2)] })
	f := startFleet(t, 1, "--config", endpointsConfig(t, endpoint("hook", "http://receiver.test.:"+u.Port()+"/")),
		"--webhook-schedule", "0s,10ms,10ms,10ms", "--webhook-resolver", dns)
	f.escalate("r")
	log := f.settled("hook", "delivered")[0].Log
	if len(log) != 3 || log[0].Status != 500 || log[1].Class != "ssrf_blocked" || !strings.Contains(log[1].Address, "169.254.169.254") || log[2].Status != 200 {
		t.Errorf("attempts %+v", log)
	}
	if n := len(h.requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// 33, the rest: the database's own address is no receiver's, whatever is
// declared and whatever a name resolves to.
func TestOwnDatabaseIsNoReceiver(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	door, dsn := frontDoor(t, db.dsn)
	config := endpointsConfig(t, endpoint("literal", "http://"+door+"/"), endpoint("named", "http://localhost:"+door[strings.LastIndex(door, ":")+1:]+"/"))
	f := &fleet{testDatabase: db, TB: t, gates: []*gate{startGate(t, []string{"DATABASE_URL=" + dsn}, "--config", config, "--webhook-schedule", "0s,1h").ready()}}
	f.escalate("r")
	for _, id := range []string{"literal", "named"} {
		var d client.Delivery
		f.await("an attempt to "+id, func() bool { d = f.deliveries(id)[0]; return len(d.Log) > 0 })
		if d.Log[0].Class != "ssrf_blocked" || !strings.Contains(d.Log[0].Detail, "database") {
			t.Errorf("%s: %+v", id, d.Log[0])
		}
	}
}
