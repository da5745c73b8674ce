package access

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
)

const (
	// retryEvery is how often the keys of an issuer are asked for at most, whatever
	// tokens come.
	retryEvery = 10 * time.Second
	// keysFresh is after how long kept keys are asked for again, beside the work. A
	// key that the issuer took back is good for no longer than this and keysOld.
	keysFresh = 5 * time.Minute
	// keysOld is after how long kept keys are not used before they were asked for
	// again. If that fails they are: an issuer that is away stops nobody. That it is
	// away is known for keysFresh; then the next fetch is waited for again.
	keysOld = time.Hour
	// fetchWithin bounds one look at an issuer, discovery and keys.
	fetchWithin = 3 * time.Second
	// waitersAtMost is how many requests wait for issuers at once, all issuers
	// together. It is less than the requests that are worked on at once, so that
	// issuers that hang leave room for those who have a key of ours.
	waitersAtMost = 16
	// keysAtMost bounds what one issuer can make us try.
	keysAtMost = 100
)

// keySet is the keys of one issuer. It is an oidc.KeySet.
type keySet struct {
	fetch    func(ctx context.Context) ([]jose.JSONWebKey, error)
	algs     []jose.SignatureAlgorithm
	now      func() time.Time
	patience chan struct{}                        // shared by all issuers: a place for each who waits
	report   func(ctx context.Context, err error) // of each fetch

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time     // when keys were
	tried   time.Time     // when it was last begun to fetch them
	err     error         // of the last fetch that ended
	failed  time.Time     // when the last one that failed was begun
	running chan struct{} // closed when the fetch under way ends; nil = there is none
}

// VerifySignature gives the payload of a token that one of the keys signed. The
// error is review.ErrIssuerAway when that cannot be told.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, s.algs)
	if err != nil {
		return nil, err
	}
	header := jws.Signatures[0].Header
	keys, err := s.find(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if k := &keys[i]; k.Algorithm == "" || k.Algorithm == header.Algorithm {
			if payload, err := jws.Verify(k.Key); err == nil {
				return payload, nil
			}
		}
	}
	return nil, errors.New("no key of the issuer made the signature")
}

// find gives the keys of an id, fetching them where that can help and is due.
func (s *keySet) find(ctx context.Context, kid string) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	found, now := s.named(kid), s.now()
	age := now.Sub(s.fetched)
	if len(found) == 0 || age > keysFresh {
		s.startIfDue(ctx, now)
	}
	running := s.running
	wait := running != nil && (len(found) == 0 || age > keysOld && (s.err == nil || now.Sub(s.failed) > keysFresh))
	s.mu.Unlock()
	if wait && !s.wait(ctx, running) && len(found) == 0 {
		return nil, review.ErrIssuerAway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found = s.named(kid); len(found) > 0 {
		return found, nil
	}
	if s.err != nil || s.fetched.IsZero() {
		return nil, review.ErrIssuerAway
	}
	return nil, errors.New("the issuer has no key of this id")
}

// named gives the keys that can have made a signature: all of them when the token
// names none.
func (s *keySet) named(kid string) (found []jose.JSONWebKey) {
	for _, k := range s.keys {
		if kid == "" || k.KeyID == kid {
			found = append(found, k)
		}
	}
	return found
}

func (s *keySet) wait(ctx context.Context, running chan struct{}) bool {
	select {
	case s.patience <- struct{}{}:
		defer func() { <-s.patience }()
	default:
		return false
	}
	select {
	case <-running:
		return true
	case <-ctx.Done():
		return false
	}
}

// again fetches the keys once more, if it is due, and waits for it.
func (s *keySet) again(ctx context.Context) {
	s.mu.Lock()
	s.startIfDue(ctx, s.now())
	running := s.running
	s.mu.Unlock()
	if running != nil {
		s.wait(ctx, running)
	}
}

// startIfDue keeps the pace at which an issuer is asked; s.mu is held.
func (s *keySet) startIfDue(ctx context.Context, now time.Time) {
	if s.running == nil && (s.tried.IsZero() || now.Sub(s.tried) >= retryEvery) {
		s.start(context.WithoutCancel(ctx), now)
	}
}

// start begins to fetch; s.mu is held. The fetch is for everybody who comes in
// the meantime, so it does not end with the request that asked first.
func (s *keySet) start(ctx context.Context, now time.Time) {
	done := make(chan struct{})
	s.running, s.tried = done, now
	go func() {
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		defer cancel()
		keys, err := s.safely(ctx)
		s.report(ctx, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err = err; err == nil {
			s.keys, s.fetched = keys, now
		} else {
			s.failed = now
		}
		s.running = nil
		close(done)
	}()
}

// safely is fetch; what an issuer sends must not end the gate.
func (s *keySet) safely(ctx context.Context) (keys []jose.JSONWebKey, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return s.fetch(ctx)
}

// warm begins to fetch the keys before anybody needs them.
func (s *keySet) warm(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried.IsZero() {
		s.start(context.WithoutCancel(ctx), s.now())
	}
}

// away gives how many keys there are, and why the last fetch failed: nil when it
// did not.
func (s *keySet) away() (known int, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys), s.err
}

// readKeys reads a JSON Web Key Set and keeps the public keys that can make a
// signature that we take. Keys of other kinds are none of our business.
func readKeys(data []byte, algs []jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("the key set is not JSON")
	}
	if len(set.Keys) > keysAtMost {
		return nil, fmt.Errorf("the key set has %d keys, more than %d", len(set.Keys), keysAtMost)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if err := k.UnmarshalJSON(raw); err != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		if alg := algorithmOf(k.Key); slices.Contains(algs, alg) && (k.Algorithm == "" || k.Algorithm == string(alg)) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no public key that could sign what is taken from this issuer")
	}
	return keys, nil
}

// algorithmOf gives the algorithm that goes with a key, "" when it is none of ours
// or too weak.
func algorithmOf(key crypto.PublicKey) jose.SignatureAlgorithm {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= 2048 {
			return jose.RS256
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return jose.ES256
		}
	case ed25519.PublicKey:
		return jose.EdDSA
	}
	return ""
}
