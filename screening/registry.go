package screening

import (
	"fmt"
	"maps"
	"slices"
)

// Predicate answers one term from a spec. It must be pure and must not keep or
// change the spec. The term id of the finding is set by the caller.
type Predicate func(*Spec) Finding

// Registry holds predicates that packs name. It is filled before packs are
// loaded and only read afterwards.
type Registry struct{ predicates map[string]Predicate }

// NewRegistry gives a registry with the built-in predicates.
func NewRegistry() *Registry {
	r := &Registry{predicates: map[string]Predicate{}}
	maps.Copy(r.predicates, commitments)
	return r
}

// Register adds a predicate under a name that packs can use.
func (r *Registry) Register(name string, p Predicate) error {
	switch {
	case !IsID(name):
		return fmt.Errorf("register predicate %q: the name must be 1 to 128 letters, digits or . _ - and start with a letter or digit", name)
	case p == nil:
		return fmt.Errorf("register predicate %s: the predicate is nil", name)
	case r.has(name):
		return fmt.Errorf("register predicate %s: the name is taken", name)
	}
	r.predicates[name] = p
	return nil
}

func (r *Registry) has(name string) bool { return r.predicates[name] != nil }

func (r *Registry) names() []string { return slices.Sorted(maps.Keys(r.predicates)) }
