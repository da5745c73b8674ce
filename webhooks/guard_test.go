package webhooks

import (
	"errors"
	"net/netip"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	const open, private, never = "open", "private", "never"
	tests := []struct{ addr, want string }{
		{"8.8.8.8", open},
		{"172.32.0.1", open}, // just past 172.16.0.0/12
		{"100.128.0.1", open},
		{"168.63.129.17", open},
		{"2606:4700::1111", open},
		{"::ffff:8.8.8.8", open},
		{"64:ff9b::808:808", open},
		{"2002:808:808::1", open},

		{"127.0.0.1", private},
		{"127.255.255.254", private},
		{"::1", private},
		{"10.0.0.1", private},
		{"172.16.0.1", private},
		{"172.31.255.255", private},
		{"192.168.1.1", private},
		{"100.64.0.1", private},
		{"192.0.2.1", private},
		{"198.18.0.1", private},
		{"fc00::1", private},
		{"fd12:3456::1", private},
		{"2001:db8::1", private},
		{"::ffff:10.0.0.1", private},
		{"::ffff:127.0.0.1", private},
		{"64:ff9b::a00:1", private},
		{"64:ff9b:1::808:808", private}, // a public address, but through the site's own translator
		{"64:ff9b:1::a00:1", private},
		{"2002:a00:1::1", private},
		{"2002:7f00:1::", private},

		{"169.254.169.254", never},
		{"169.254.170.2", never},
		{"169.254.0.1", never},
		{"100.100.100.200", never},
		{"168.63.129.16", never},
		{"0.0.0.0", never},
		{"0.1.2.3", never},
		{"224.0.0.1", never},
		{"239.255.255.255", never},
		{"240.0.0.1", never},
		{"255.255.255.255", never},
		{"::", never},
		{"::127.0.0.1", never},     // IPv4-compatible, deprecated
		{"::ffff:0:7f00:1", never}, // IPv4-translated
		{"fe80::1", never},         // link-local
		{"fe80::1%lo", never},      // and with a zone
		{"fec0::1", never},         // site-local, deprecated
		{"fd00:ec2::254", never},   // AWS
		{"fd20:ce::254", never},    // Google
		{"ff02::1", never},         // multicast
		{"2001:0:1234::1", never},  // Teredo
		{"4000::1", never},         // unassigned
		{"::ffff:0.0.0.0", never},  // mapped
		{"::ffff:169.254.1.1", never},
		{"64:ff9b::a9fe:a9fe", never},
		{"64:ff9b::6464:64c8", never},
		{"64:ff9b:1::a9fe:a9fe", never},       // local NAT64, prefix /96
		{"64:ff9b:1:a9fe:a9:fe00::", never},   // /48
		{"64:ff9b:1:a9:fe:a9fe::", never},     // /56
		{"64:ff9b:1:0:a9:fea9:fe00:0", never}, // /64
		{"2002:a9fe:a9fe::1", never},
		{"2002:a83f:8110::1", never},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			t.Parallel()
			got := open
			var blocked *BlockedError
			if err := (guard{}).check(netip.MustParseAddr(tt.addr)); errors.As(err, &blocked) {
				got = never
				if blocked.Private {
					got = private
				}
				if !errors.Is(err, ErrBlockedAddress) || blocked.Reason == "" {
					t.Errorf("check: %v; want a reason and ErrBlockedAddress", err)
				}
			}
			if got != tt.want {
				t.Errorf("without allow_private: %s, want %s", got, tt.want)
			}
			err := guard{allowPrivate: true}.check(netip.MustParseAddr(tt.addr))
			if (err != nil) != (tt.want == never) {
				t.Errorf("with allow_private: %v, want refused only if never", err)
			}
		})
	}
}

func TestGuardRefusesMore(t *testing.T) {
	t.Parallel()
	g := guard{allowPrivate: true, refuse: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
	for addr, refused := range map[string]bool{"10.8.0.1": false, "10.9.0.1": true, "::ffff:10.9.0.1": true, "64:ff9b::a09:1": true} {
		if err := g.check(netip.MustParseAddr(addr)); (err != nil) != refused {
			t.Errorf("%s: %v, want refused %t", addr, err, refused)
		}
	}
	if err := g.control(t.Context(), "tcp", "not-an-address:80", nil); !errors.Is(err, ErrBlockedAddress) {
		t.Errorf("what cannot be read is let through: %v", err)
	}
}

// No wrapping of an IPv4 address may open what the address itself does not.
func FuzzGuardWrapping(f *testing.F) {
	for _, a := range [][4]byte{{169, 254, 169, 254}, {127, 0, 0, 1}, {8, 8, 8, 8}, {0, 0, 0, 0}, {100, 100, 100, 200}} {
		f.Add(a[0], a[1], a[2], a[3])
	}
	f.Fuzz(func(t *testing.T, a, b, c, d byte) {
		v4 := netip.AddrFrom4([4]byte{a, b, c, d})
		wrapped := map[string]netip.Addr{
			"mapped": netip.AddrFrom16(v4.As16()),
			"NAT64":  netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: a, 13: b, 14: c, 15: d}),
			"6to4":   netip.AddrFrom16([16]byte{0x20, 0x02, a, b, c, d}),
		}
		for _, allow := range []bool{false, true} {
			g := guard{allowPrivate: allow}
			plain := g.check(v4)
			for name, w := range wrapped {
				if err := g.check(w); plain != nil && err == nil {
					t.Errorf("%v is refused, but as %s %v it passes (allow_private %t)", v4, name, w, allow)
				}
			}
		}
	})
}

// The database is never a receiver, whatever is declared.
func TestGuardOwnDatabase(t *testing.T) {
	t.Parallel()
	addrs := func(list ...string) func() (out []netip.AddrPort) {
		return func() (out []netip.AddrPort) {
			for _, a := range list {
				out = append(out, netip.MustParseAddrPort(a))
			}
			return out
		}
	}
	tests := []struct {
		own     func() []netip.AddrPort
		dialled string
		blocked bool
	}{
		{addrs("10.0.0.5:5432"), "10.0.0.5:5432", true},
		{addrs("10.0.0.5:5432"), "10.0.0.5:80", true}, // its pooler, its metrics
		{addrs("10.0.0.5:5432"), "[::ffff:10.0.0.5]:5432", true},
		{addrs("[::ffff:10.0.0.5]:5432"), "10.0.0.5:5432", true},
		{addrs("10.0.0.5:5432"), "10.0.0.6:5432", false},
		{addrs("203.0.114.1:5432", "127.0.0.1:5432"), "127.0.0.1:5432", true},
		{addrs("127.0.0.1:5432"), "[::1]:5432", true},
		{addrs("127.0.0.1:5432"), "127.0.0.9:5432", true},
		{addrs("127.0.0.1:5432"), "127.0.0.1:8080", false}, // a receiver beside it
		{addrs(), "10.0.0.5:5432", false},
		{nil, "10.0.0.5:5432", false},
	}
	for _, tt := range tests {
		err := guard{allowPrivate: true, own: tt.own}.control(t.Context(), "tcp", tt.dialled, nil)
		if errors.Is(err, ErrBlockedAddress) != tt.blocked {
			t.Errorf("%s: %v, want blocked %t", tt.dialled, err, tt.blocked)
		}
	}
}
