package review

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newManifold(t *testing.T) *IdentityManifold {
	t.Helper()
	m, err := NewIdentityManifold([]IdentityAxis{
		{"honesty", []float64{1, 0, 0}},
		{"care", []float64{0.6, 0.8, 0}},
	}, 0.5, []string{"no_impersonation"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNewIdentityManifoldErrors(t *testing.T) {
	t.Parallel()
	unit := []float64{1, 0}
	tests := []struct {
		name       string
		axes       []IdentityAxis
		threshold  float64
		boundaries []string
		want       string
	}{
		{"no axes", nil, 0, nil, "at least one axis"},
		{"blank name", []IdentityAxis{{"\u200b", unit}}, 0, nil, "axis 0 has no name"},
		{"name twice", []IdentityAxis{{"a", unit}, {"a", unit}}, 0, nil, "is taken"},
		{"no direction", []IdentityAxis{{"a", nil}}, 0, nil, "0 dimensions"},
		{"other dimension", []IdentityAxis{{"a", unit}, {"b", []float64{1}}}, 0, nil, `axis "b" has 1 dimensions`},
		{"too long", []IdentityAxis{{"a", []float64{1, 1}}}, 0, nil, "length 1.414"},
		{"zero", []IdentityAxis{{"a", []float64{0, 0}}}, 0, nil, "length 0, not 1"},
		{"not a number", []IdentityAxis{{"a", []float64{1, math.NaN()}}}, 0, nil, "not 1"},
		{"infinite", []IdentityAxis{{"a", []float64{math.Inf(1), 0}}}, 0, nil, "not 1"},
		{"threshold too high", []IdentityAxis{{"a", unit}}, 1.01, nil, "threshold 1.01"},
		{"threshold not a number", []IdentityAxis{{"a", unit}}, math.NaN(), nil, "threshold NaN"},
		{"blank boundary", []IdentityAxis{{"a", unit}}, 0, []string{" "}, "boundary 0"},
		{"boundary twice", []IdentityAxis{{"a", unit}}, 0, []string{"x", "x"}, "boundary 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewIdentityManifold(tt.axes, tt.threshold, tt.boundaries); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	m := newManifold(t)
	tests := []struct {
		name       string
		trajectory []float64
		want       *IdentityScore // nil: an error
	}{
		{"along both", []float64{2, 1, 0}, &IdentityScore{Alignment: 2 / math.Sqrt(5)}},
		{"off one", []float64{0, 3, 0}, &IdentityScore{Alignment: 0, DeviatingAxes: []string{"honesty"}}},
		{"off both", []float64{0, 0, -7}, &IdentityScore{Alignment: 0, DeviatingAxes: []string{"honesty", "care"}}},
		{"against", []float64{-1, 0, 0}, &IdentityScore{Alignment: -1, DeviatingAxes: []string{"honesty", "care"}}},
		{"huge", []float64{1e300, 0, 0}, &IdentityScore{Alignment: 0.6}},
		{"tiny", []float64{1e-300, 0, 0}, &IdentityScore{Alignment: 0.6}},
		{"no direction", []float64{0, 0, 0}, nil},
		{"not a number", []float64{1, math.NaN(), 0}, nil},
		{"infinite", []float64{math.Inf(-1), 0, 0}, nil},
		{"other dimension", []float64{1, 0}, nil},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := m.Score(tt.trajectory)
			if (err != nil) != (tt.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got, near); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestScoreHasNoScale(t *testing.T) {
	t.Parallel()
	m := newManifold(t)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-1, 1), 3, 3).Draw(t, "trajectory")
		scale := rapid.SampledFrom([]float64{1e-200, 0.5, 3, 1e200}).Draw(t, "scale")
		scaled := []float64{v[0] * scale, v[1] * scale, v[2] * scale}
		a, errA := m.Score(v)
		b, errB := m.Score(scaled)
		if errA != nil || errB != nil || math.Abs(v[0])+math.Abs(v[1])+math.Abs(v[2]) < 1e-6 {
			return // no direction, or too little of one left after scaling
		}
		if math.Abs(a.Alignment-b.Alignment) > 1e-6 || math.Abs(a.Alignment) > 1 {
			t.Fatalf("%v: %v, scaled %v", v, a.Alignment, b.Alignment)
		}
		if violatesIdentity(a, m) != (len(a.DeviatingAxes) > 0) {
			t.Fatalf("%v: alignment %v, deviating %v", v, a.Alignment, a.DeviatingAxes)
		}
	})
}

func TestCheckScore(t *testing.T) {
	t.Parallel()
	m := newManifold(t)
	tests := []struct {
		score IdentityScore
		want  string // "": no error
	}{
		{IdentityScore{Alignment: 1}, ""},
		{IdentityScore{Alignment: -1, DeviatingAxes: []string{"care"}, BoundaryViolations: []string{"no_impersonation"}}, ""},
		{IdentityScore{Alignment: 1.5}, "alignment 1.5"},
		{IdentityScore{Alignment: math.NaN()}, "alignment NaN"},
		{IdentityScore{DeviatingAxes: []string{"care", "x"}}, "deviating axis 1"},
		{IdentityScore{BoundaryViolations: []string{"x"}}, "boundary violation 0"},
	}
	for _, tt := range tests {
		err := m.Check(&tt.score)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.score, err, tt.want)
		}
	}
}

func TestViolatesIdentity(t *testing.T) {
	t.Parallel()
	m := newManifold(t)
	tests := []struct {
		name     string
		score    *IdentityScore
		manifold *IdentityManifold
		want     bool
	}{
		{"no score, no vote", nil, m, false},
		{"aligned", &IdentityScore{Alignment: 0.8}, m, false},
		{"at the threshold", &IdentityScore{Alignment: 0.5}, m, false},
		{"below", &IdentityScore{Alignment: math.Nextafter(0.5, 0)}, m, true},
		{"not a number", &IdentityScore{Alignment: math.NaN()}, m, true},
		{"flagged", &IdentityScore{Alignment: 1, Flagged: true}, m, true},
		{"flagged, no manifold", &IdentityScore{Flagged: true}, nil, true},
		{"boundary", &IdentityScore{Alignment: 1, BoundaryViolations: []string{"no_impersonation"}}, m, true},
		{"unknown boundary", &IdentityScore{Alignment: 1, BoundaryViolations: []string{"x"}}, nil, true},
		{"no threshold", &IdentityScore{Alignment: -1}, nil, false},
	}
	for _, tt := range tests {
		if got := violatesIdentity(tt.score, tt.manifold); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
