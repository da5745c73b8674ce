package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrBlockedAddress is wrapped by every refusal of the egress guard.
var ErrBlockedAddress = errors.New("webhook address refused")

// BlockedError says which address was refused, and why.
type BlockedError struct {
	Addr   netip.Addr // as it was to be dialled
	Reason string     // the range it is in
	// Private tells that the endpoint's allow_private would let it through.
	Private bool
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%v: %v is %s", ErrBlockedAddress, e.Addr, e.Reason)
}

func (e *BlockedError) Unwrap() error { return ErrBlockedAddress }

type addrRange struct {
	netip.Prefix
	reason string
}

func ranges(reason string, prefixes ...string) []addrRange {
	out := make([]addrRange, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, addrRange{netip.MustParsePrefix(p), reason})
	}
	return out
}

func concat(lists ...[]addrRange) (out []addrRange) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// Single addresses stand before the ranges around them, so that the reason
// names what was meant.
var (
	// neverAllowed is refused whatever the declaration says.
	neverAllowed = concat(
		ranges("a cloud metadata address",
			"169.254.169.254/32", // most clouds
			"169.254.170.0/24",   // container credentials on AWS
			"100.100.100.200/32", // Alibaba, inside the carrier-grade NAT range
			"168.63.129.16/32",   // Azure, inside ordinary public space
			"192.0.0.192/32",     // Oracle, older
			"fd00:ec2::/32",      // AWS, inside the unique local range
			"fd20:ce::254/128",   // Google
		),
		ranges("a link-local address", "169.254.0.0/16", "fe80::/10"),
		ranges("an unspecified address", "0.0.0.0/8", "::/128"),
		ranges("a multicast address", "224.0.0.0/4", "ff00::/8"),
		ranges("a reserved address", "240.0.0.0/4"),
		// A tunnel's relay decides where the packet ends, not the address.
		ranges("a tunnel address", "2001::/32", "192.88.99.0/24"),
	)

	// privateOnly needs allow_private.
	privateOnly = concat(
		ranges("a loopback address", "127.0.0.0/8", "::1/128"),
		ranges("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
		ranges("a carrier-grade NAT address", "100.64.0.0/10"),
		ranges("a special-purpose address", "192.0.0.0/24", "198.18.0.0/15", "64:ff9b:1::/48", "2001::/23", "5f00::/16"),
		ranges("a documentation address", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
	)

	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	globalSpace = netip.MustParsePrefix("2000::/3")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)

// guard decides which addresses an endpoint may be dialled at.
type guard struct {
	allowPrivate bool
	refuse       []netip.Prefix // more that nothing lifts
	own          func() []netip.AddrPort
}

// control is a [net.Dialer] hook. It runs between name resolution and connect,
// on the very address of the socket, so no second lookup can slip past it.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &BlockedError{Reason: "not an IP address"}
	}
	if g.own != nil {
		for _, own := range g.own() {
			if isOwn(ap, own) {
				return &BlockedError{Addr: ap.Addr(), Reason: "this deployment's own database"}
			}
		}
	}
	return g.check(ap.Addr())
}

// isOwn reports whether an address is a database's. Everything else on its
// machine is refused too, unless that is this machine, where receivers may be.
func isOwn(dialled, own netip.AddrPort) bool {
	a, b := dialled.Addr().WithZone("").Unmap(), own.Addr().WithZone("").Unmap()
	if b.IsLoopback() {
		return a.IsLoopback() && dialled.Port() == own.Port()
	}
	return a == b
}

// check returns a *BlockedError if the address, or an IPv4 address that a
// gateway would take out of it, is in a range this endpoint may not reach. Of
// several reasons it gives one that allow_private would not lift, if any.
func (g guard) check(addr netip.Addr) error {
	a := addr.WithZone("").Unmap()
	var blocked *BlockedError
	for _, reading := range append(embedded(a), a) {
		if b := g.find(reading); b != nil && (blocked == nil || blocked.Private) {
			b.Addr = addr
			blocked = b
		}
	}
	if blocked == nil {
		return nil // not blocked itself: an interface holding a nil pointer is an error
	}
	return blocked
}

// find judges one reading of an address.
func (g guard) find(a netip.Addr) *BlockedError {
	for _, p := range g.refuse {
		if p.Contains(a) {
			return &BlockedError{Reason: "in a range this deployment refuses"}
		}
	}
	for _, r := range neverAllowed {
		if r.Contains(a) {
			return &BlockedError{Reason: r.reason}
		}
	}
	for _, r := range privateOnly {
		if !r.Contains(a) {
			continue
		}
		if g.allowPrivate {
			return nil
		}
		return &BlockedError{Reason: r.reason, Private: true}
	}
	if a.Is6() && !globalSpace.Contains(a) && !nat64.Contains(a) {
		// Deprecated and unassigned space: IPv4-compatible, site-local, …
		return &BlockedError{Reason: "outside global unicast space"}
	}
	return nil
}

// embedded returns the IPv4 addresses that a translator could read out of a.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	pick := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	switch {
	case nat64.Contains(a):
		return []netip.Addr{pick(12, 13, 14, 15)}
	case sixToFour.Contains(a):
		return []netip.Addr{pick(2, 3, 4, 5)}
	case nat64Local.Contains(a):
		// The site chose the prefix length, so every position that RFC 6052
		// section 2.2 knows is possible. The wrong ones are mostly zeros, and
		// no translator forwards to 0.0.0.0/8.
		var out []netip.Addr
		for _, v4 := range []netip.Addr{pick(6, 7, 9, 10), pick(7, 9, 10, 11), pick(9, 10, 11, 12), pick(12, 13, 14, 15)} {
			if !thisNetwork.Contains(v4) {
				out = append(out, v4)
			}
		}
		return out
	}
	return nil
}
