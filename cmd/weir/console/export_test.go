package console

import (
	"maps"
	"slices"
)

// Patterns gives what is for who is logged in, for tests that walk it.
func (c *Console) Patterns() []string { return slices.Sorted(maps.Keys(c.forVisitors())) }
