package review

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"weir/screening"
)

// IdentityAxis is one direction that makes up who a model is.
type IdentityAxis struct {
	Name      string    `json:"name"`
	Direction []float64 `json:"direction"` // of length 1
}

// IdentityManifold is what a model's trajectory is compared with: axes, how close to all of them it has to stay, and
// the boundaries that may not be crossed. It is valid once made, and immutable.
type IdentityManifold struct {
	axes       []IdentityAxis
	threshold  float64
	boundaries []string
}

// unitTolerance is how far the squared length of a direction may be from 1: directions come from files with seven
// digits.
const unitTolerance = 1e-6

// maxDimensions bounds a direction; embeddings have thousands.
const maxDimensions = 1 << 16

// NewIdentityManifold checks and copies its arguments: at least one axis, all of the same dimension, of finite numbers
// and length 1; names and boundary ids that are not blank and not repeated; a threshold of -1 to 1, which is compared
// with the cosine of the angle between trajectory and axis.
func NewIdentityManifold(axes []IdentityAxis, threshold float64, boundaries []string) (*IdentityManifold, error) {
	if len(axes) == 0 {
		return nil, errors.New("an identity manifold needs at least one axis")
	}
	if !(threshold >= -1 && threshold <= 1) { // also refuses NaN
		return nil, fmt.Errorf("alignment threshold %v is not between -1 and 1", threshold)
	}
	m := &IdentityManifold{threshold: threshold, boundaries: slices.Clone(boundaries)}
	names := make(map[string]bool)
	for i, axis := range axes {
		switch {
		case screening.IsBlank(axis.Name):
			return nil, fmt.Errorf("axis %d has no name", i)
		case names[axis.Name]:
			return nil, fmt.Errorf("axis %d: the name %q is taken", i, axis.Name)
		case len(axis.Direction) == 0 || len(axis.Direction) > maxDimensions:
			return nil, fmt.Errorf("axis %q has %d dimensions, not between 1 and %d", axis.Name, len(axis.Direction), maxDimensions)
		case len(axis.Direction) != len(axes[0].Direction):
			return nil, fmt.Errorf("axis %q has %d dimensions, axis %q %d", axis.Name, len(axis.Direction), axes[0].Name, len(axes[0].Direction))
		}
		if square := dot(axis.Direction, axis.Direction); !(math.Abs(square-1) <= unitTolerance) {
			return nil, fmt.Errorf("axis %q is of length %v, not 1", axis.Name, math.Sqrt(square))
		}
		names[axis.Name] = true
		m.axes = append(m.axes, IdentityAxis{axis.Name, slices.Clone(axis.Direction)})
	}
	for i, id := range boundaries {
		if screening.IsBlank(id) || slices.Contains(boundaries[:i], id) {
			return nil, fmt.Errorf("boundary %d is blank or repeated", i)
		}
	}
	return m, nil
}

// IdentityScore is how a trajectory stands to a manifold.
type IdentityScore struct {
	Alignment          float64  `json:"alignment"`           // cosine, -1 to 1, with the axis it is furthest from
	Flagged            bool     `json:"flagged"`             // by whoever supplied the score, for reasons of their own
	DeviatingAxes      []string `json:"deviating_axes"`      // below the threshold, in the order of the manifold
	BoundaryViolations []string `json:"boundary_violations"` // ids
}

// Check refuses a supplied score that cannot be of this manifold: an alignment that is no cosine, or names it does not
// have.
func (m *IdentityManifold) Check(score *IdentityScore) error {
	if !(score.Alignment >= -1 && score.Alignment <= 1) {
		return fmt.Errorf("alignment %v is not between -1 and 1", score.Alignment)
	}
	for i, name := range score.DeviatingAxes {
		if !slices.ContainsFunc(m.axes, func(a IdentityAxis) bool { return a.Name == name }) {
			return fmt.Errorf("deviating axis %d is no axis of the manifold", i)
		}
	}
	for i, id := range score.BoundaryViolations {
		if !slices.Contains(m.boundaries, id) {
			return fmt.Errorf("boundary violation %d is no boundary of the manifold", i)
		}
	}
	return nil
}

// Score compares the trajectory that a correction produced with the axes. Boundaries are crossed by what a model does,
// which a direction does not tell: a computed score has no violations.
func (m *IdentityManifold) Score(trajectory []float64) (*IdentityScore, error) {
	if want := len(m.axes[0].Direction); len(trajectory) != want {
		return nil, fmt.Errorf("the trajectory has %d dimensions, the manifold %d", len(trajectory), want)
	}
	unit, err := normalized(trajectory)
	if err != nil {
		return nil, err
	}
	score := &IdentityScore{Alignment: math.Inf(1)}
	for _, axis := range m.axes {
		// Rounding may leave it a little outside.
		alignment := max(-1, min(1, dot(unit, axis.Direction)))
		score.Alignment = min(score.Alignment, alignment)
		if alignment < m.threshold {
			score.DeviatingAxes = append(score.DeviatingAxes, axis.Name)
		}
	}
	return score, nil
}

// normalized scales before it squares, so that neither large nor small components are lost.
func normalized(v []float64) ([]float64, error) {
	largest := 0.0
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, errors.New("the trajectory has a component that is not a finite number")
		}
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return nil, errors.New("the trajectory has no direction")
	}
	unit := make([]float64, len(v))
	for i, x := range v {
		unit[i] = x / largest
	}
	length := math.Sqrt(dot(unit, unit))
	for i := range unit {
		unit[i] /= length
	}
	return unit, nil
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// violatesIdentity is the vote of the geometry. Without a score there is none. A flag and a boundary count whatever the
// manifold is; alignment counts against its threshold, and one that is not a number is below any.
func violatesIdentity(score *IdentityScore, manifold *IdentityManifold) bool {
	if score == nil {
		return false
	}
	if score.Flagged || len(score.BoundaryViolations) > 0 {
		return true
	}
	return manifold != nil && !(score.Alignment >= manifold.threshold)
}
