package review

import (
	"fmt"
	"slices"
)

// Scope is a right that a key carries.
type Scope string

const (
	ScopeSubmit Scope = "submit" // submit specs, check the gate, read own screenings
	ScopeReview Scope = "review" // read all screenings of the project and vote
	ScopeAudit  Scope = "audit"  // read everything of the project
	ScopePolicy Scope = "policy" // manage deliveries and packs
	ScopeCurate Scope = "curate" // give reviewed examples their epistemic status
	ScopeAdmin  Scope = "admin"  // manage keys
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeSubmit, ScopeReview, ScopeAudit, ScopePolicy, ScopeCurate, ScopeAdmin}

// ParseScopes reads scope names. No scope at all is refused.
func ParseScopes(names []string) ([]Scope, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("a key needs at least one scope of %v", Scopes)
	}
	out := make([]Scope, len(names))
	for i, n := range names {
		out[i] = Scope(n)
		if !slices.Contains(Scopes, out[i]) {
			return nil, fmt.Errorf("scope %q is not one of %v", n, Scopes)
		}
	}
	return out, nil
}

// Principal is an authenticated caller.
type Principal struct {
	Subject string // id of a person or service in people.yaml
	Project string
	Scopes  []Scope
}

// May reports whether the principal has a scope.
func (p Principal) May(s Scope) bool { return slices.Contains(p.Scopes, s) }

// mayReadAll reports whether the principal sees more than its own screenings.
func (p Principal) mayReadAll() bool { return p.May(ScopeReview) || p.May(ScopeAudit) }
