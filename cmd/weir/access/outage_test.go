package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/review"
)

func authenticate(t *testing.T, a *access.Access, token string) error {
	t.Helper()
	_, err := a.Authenticate(t.Context(), token)
	return err
}

func unknown(i *accesstest.Issuer, id string) string {
	return i.Token(func(t *accesstest.Token) { t.KeyID = id })
}

// Fault 49: an issuer that is away.
func TestIssuerIsAway(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a := load(t, i, c, working)
	i.Down(503)
	// Nothing is known yet: neither whether a token is good nor whether it is bad.
	for range 50 {
		if err := authenticate(t, a, i.Token()); !errors.Is(err, review.ErrIssuerAway) || errors.Is(err, review.ErrUnauthenticated) {
			t.Fatalf("before the first fetch: %v", err)
		}
	}
	if n := i.Discoveries.Load() + i.Fetches.Load(); n != 1 {
		t.Errorf("asked %d times at one moment", n)
	}
	// What cannot be good is refused whether the issuer is there or not.
	if err := authenticate(t, a, "weir.x.y"); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("no JWT: %v", err)
	}
	if len(a.Warnings()) != 1 {
		t.Errorf("warnings %v", a.Warnings())
	}
	i.Resume()
	c.add(9 * time.Second)
	if err := authenticate(t, a, i.Token()); !errors.Is(err, review.ErrIssuerAway) {
		t.Errorf("9 s later: %v", err)
	}
	c.add(time.Second)
	if err := authenticate(t, a, i.Token()); err != nil {
		t.Errorf("10 s later: %v", err)
	}
	if len(a.Warnings()) != 0 {
		t.Errorf("warnings %v", a.Warnings())
	}

	// Known keys go on working, hours later, and unknown ones are not known.
	i.Down(500)
	for range 5 {
		c.add(2 * time.Hour)
		if err := authenticate(t, a, i.Token()); err != nil {
			t.Fatalf("a known key: %v", err)
		}
		if err := authenticate(t, a, unknown(i, "new")); !errors.Is(err, review.ErrIssuerAway) {
			t.Fatalf("an unknown key: %v", err)
		}
	}
	if len(a.Warnings()) != 1 {
		t.Errorf("warnings %v", a.Warnings())
	}
	i.Resume()
	c.add(10 * time.Second)
	if err := authenticate(t, a, unknown(i, "new")); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("an unknown key of an issuer that is there: %v", err)
	}
}

// Whatever tokens come, an issuer is asked at most once in ten seconds.
func TestNoStormOfRequests(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]int{"there": 0, "away": 502} {
		c := newClock()
		i := newIssuer(t, c)
		a := load(t, i, c, working)
		if err := authenticate(t, a, i.Token()); err != nil {
			t.Fatal(err)
		}
		i.Down(down)
		before := i.Fetches.Load() + i.Discoveries.Load()
		const seconds = 60
		for s := range seconds {
			c.add(time.Second)
			var users sync.WaitGroup
			token := unknown(i, fmt.Sprint(s))
			for range 20 {
				users.Go(func() { _, _ = a.Authenticate(t.Context(), token) })
			}
			users.Wait()
		}
		// After a failure discovery comes first, and stops at its own failure.
		if asked := i.Fetches.Load() + i.Discoveries.Load() - before; asked < 2 || asked > seconds/10 {
			t.Errorf("issuer is %s: asked %d times in %d s", name, asked, seconds)
		}
		if err := authenticate(t, a, i.Token()); err != nil {
			t.Errorf("issuer is %s: the known key: %v", name, err)
		}
	}
}

// An issuer that hangs holds few requests, and none whose key is known.
func TestIssuerHangs(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a := load(t, i, c, working)
	if err := authenticate(t, a, i.Token()); err != nil {
		t.Fatal(err)
	}
	i.Hang()
	c.add(6 * time.Minute) // the keys are to be fetched again, beside the work
	if err := authenticate(t, a, i.Token()); err != nil {
		t.Fatalf("a known key: %v", err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	const askers = 50
	answers := make(chan error, askers)
	for n := range askers {
		go func() { _, err := a.Authenticate(ctx, unknown(i, fmt.Sprint(n))); answers <- err }()
	}
	for range askers - access.WaitersAtMost { // these are answered at once: the issuer still hangs
		if err := <-answers; !errors.Is(err, review.ErrIssuerAway) {
			t.Errorf("while it hangs: %v", err)
		}
	}
	giveUp()
	for range access.WaitersAtMost {
		if err := <-answers; !errors.Is(err, review.ErrIssuerAway) {
			t.Errorf("gave up: %v", err)
		}
	}
	if err := authenticate(t, a, i.Token()); err != nil {
		t.Errorf("a known key in the end: %v", err)
	}
}

// New keys are found when they sign; keys that were taken back end.
func TestKeysChange(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a := load(t, i, c, working)
	old := i.Token(accesstest.Claim("exp", c.now().Add(24*time.Hour).Unix()))
	if err := authenticate(t, a, old); err != nil {
		t.Fatal(err)
	}
	i.SetKeys(accesstest.NewEd25519(t, "next"))
	c.add(10 * time.Second)
	if err := authenticate(t, a, i.Token()); err != nil {
		t.Errorf("the next key: %v", err)
	}
	if err := authenticate(t, a, old); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("the key that is gone, after a fetch: %v", err)
	}
	// Nobody needs another key; the one in use is taken back all the same.
	last := i.Token(accesstest.Claim("exp", c.now().Add(24*time.Hour).Unix()))
	i.SetKeys(accesstest.NewECDSA(t, "third"))
	c.add(access.KeysOld + time.Second)
	if err := authenticate(t, a, last); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("a key that was taken back an hour ago: %v", err)
	}
	// Nor does it help that a fetch once failed and nobody came for a week.
	late := i.Token(accesstest.Claim("exp", c.now().Add(30*24*time.Hour).Unix()))
	if err := authenticate(t, a, late); err != nil {
		t.Fatal(err)
	}
	i.Down(503)
	c.add(access.KeysOld + time.Second)
	if err := authenticate(t, a, late); err != nil {
		t.Errorf("a known key of an issuer that is away: %v", err)
	}
	i.Resume()
	i.SetKeys(accesstest.NewECDSA(t, "fourth"))
	c.add(7 * 24 * time.Hour)
	if err := authenticate(t, a, late); !errors.Is(err, review.ErrUnauthenticated) {
		t.Errorf("a key that was taken back within a quiet week: %v", err)
	}
}

// What an issuer answers does not bring the gate down, nor fill it.
func TestIssuersTalkNonsense(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]jose.JSONWebKey{
		"no keys":     {},
		"only secret": {{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "rsa"}},
	} {
		c := newClock()
		i := newIssuer(t, c)
		token := i.Token()
		i.SetKeys(keys...)
		a := load(t, i, c, working)
		if err := authenticate(t, a, token); !errors.Is(err, review.ErrIssuerAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, status := range []int{204, 302, 404, 500} {
		c := newClock()
		i := newIssuer(t, c)
		i.Down(status)
		a := load(t, i, c, working)
		if err := authenticate(t, a, i.Token()); !errors.Is(err, review.ErrIssuerAway) {
			t.Errorf("status %d: %v", status, err)
		}
	}
}
