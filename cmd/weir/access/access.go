package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"weir/review"
)

// tokenAtMost bounds a token. Kubernetes and the usual providers stay below 4 KiB.
const tokenAtMost = 8 << 10

// RefusedError says why a token counts for nothing. It is a
// [review.ErrUnauthenticated]; the reason is for the operator's log, as whoever
// holds a token that is not good has no claim to be helped.
type RefusedError struct {
	Issuer string // id of the issuer; "" when it is none of ours
	Reason string
}

func (e *RefusedError) Error() string {
	if e.Issuer == "" {
		return "token refused: " + e.Reason
	}
	return "token of " + e.Issuer + " refused: " + e.Reason
}

// Unwrap makes it a review.ErrUnauthenticated.
func (e *RefusedError) Unwrap() error { return review.ErrUnauthenticated }

// Authenticate gives the principal that a bearer token speaks for. Errors:
// review.ErrUnauthenticated, review.ErrIssuerAway, and review.ErrNotAllowed for a
// good token of somebody whom people.yaml does not know.
func (a *Access) Authenticate(ctx context.Context, token string) (review.Principal, error) {
	is, err := a.issuerOf(token)
	if err != nil {
		return review.Principal{}, err
	}
	t, err := is.verify(ctx, is.Audience, token)
	switch {
	case errors.Is(err, review.ErrIssuerAway):
		return review.Principal{}, fmt.Errorf("issuer %s: %w", is.ID, err)
	case err != nil:
		return review.Principal{}, &RefusedError{is.ID, err.Error()}
	}
	return a.Principal(review.TokenSubject(t.Issuer, t.Subject))
}

// Principal gives what a subject, as people.yaml writes it, may do today. Who is
// granted nothing is known but may do nothing. The error is review.ErrNotAllowed
// for a subject that people.yaml gives to nobody.
func (a *Access) Principal(subject string) (review.Principal, error) {
	from, sub, ok := review.CutSubject(subject)
	id, known := a.people.OfToken(from, sub)
	if !ok || !known || !slices.ContainsFunc(a.issuers, func(is *issuer) bool { return is.Issuer == from }) {
		return review.Principal{}, fmt.Errorf("%w: people.yaml gives the issuer and subject of this token to nobody", review.ErrNotAllowed)
	}
	g := a.grants[id]
	return review.Principal{Subject: id, Project: g.project, Scopes: slices.Clone(g.scopes)}, nil
}

// issuerOf gives the issuer that a token says it is from. Nothing of it was checked
// yet but its form.
func (a *Access) issuerOf(token string) (*issuer, error) {
	refuse := func(why string) (*issuer, error) { return nil, &RefusedError{Reason: why} }
	if len(token) > tokenAtMost {
		return refuse("is too long")
	}
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return refuse("is no JWT that is signed by RS256, ES256 or EdDSA")
	}
	// Other tokens that an issuer signs, like the notice of a logout, are for other ends.
	typ, _ := jws.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	if !slices.Contains([]string{"", "jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(typ)) {
		return refuse("is of a type that does not let anybody in")
	}
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return refuse("is no JWT")
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return refuse("has claims that are not plain JSON")
	}
	i := slices.IndexFunc(a.issuers, func(is *issuer) bool { return is.Issuer == claims.Issuer })
	if i < 0 {
		return refuse("is of an issuer that access.yaml does not declare")
	}
	return a.issuers[i], nil
}

// Issuers counts those that are declared.
func (a *Access) Issuers() int { return len(a.issuers) }

// Warm asks every issuer for its keys, and does not wait for them.
func (a *Access) Warm(ctx context.Context) {
	for _, is := range a.issuers {
		is.keys.warm(ctx)
	}
}

// Check asks every issuer for its keys now, and tells what came of it.
func (a *Access) Check(ctx context.Context, tell func(issuer string, err error)) {
	for _, is := range a.issuers {
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		_, err := is.keys.safely(ctx)
		cancel()
		tell(is.ID, err)
	}
}

// Warnings says which issuers are away, for operators.
func (a *Access) Warnings() (list []string) {
	for _, is := range a.issuers {
		switch known, err := is.keys.away(); {
		case err == nil:
		case known == 0:
			list = append(list, fmt.Sprintf("issuer %s: its keys cannot be fetched, so none of its tokens is accepted", is.ID))
		default:
			list = append(list, fmt.Sprintf("issuer %s: its keys cannot be fetched again; those from before are used", is.ID))
		}
	}
	return list
}
