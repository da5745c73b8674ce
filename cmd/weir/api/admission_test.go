package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/cmd/weir/api"
	"weir/screening"
	"weir/store/ledger"
)

// An admission is of digests, not of whatever a spec writes in their place.
func TestSubjectsAreDigests(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("ab", 32)
	spec := &screening.ParsedSpec{SHA256: screening.Sum([]byte("spec")), Spec: &screening.Spec{Inputs: []screening.Input{
		{ID: "d1", Digests: []screening.Digest{{Alg: "sha256", Value: "TBD"}, {Alg: "sha256", Value: hex[:62]}, {Alg: "sha1", Value: hex},
			{Alg: "sha256", Value: "g" + hex[1:]}, {Alg: "sha256", Value: ""}, {Alg: "crc32", Value: hex}}},
		{ID: "d2", Digests: []screening.Digest{{Alg: "sha256", Value: strings.ToUpper(hex)}, {Alg: "md5", Value: hex[:32], Of: "part-0"}}},
	}}}
	want := []ledger.Subject{
		{Name: ledger.SpecSubject, Digest: map[string]string{"sha256": spec.SHA256.String()}},
		{Name: "input/d2", Digest: map[string]string{"sha256": hex}},
		{Name: "input/d2/part-0", Digest: map[string]string{"md5": hex[:32]}},
	}
	if diff := cmp.Diff(want, api.Subjects(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
