package access

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/docs/schemas"
	"weir/docs/schemas/schematest"
	"weir/review"
)

// A key or code that the loader gains, the schema that editors use has to gain too;
// and the other way round.
func TestAccessSchemaFollowsTheLoader(t *testing.T) {
	t.Parallel()
	data, err := schemas.Read(schemas.Access)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schematest.New(data, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Keys("", reflect.TypeFor[accessFile]())
	for _, fault := range s.Faults() {
		t.Error(fault)
	}
	var algs, scopes []string
	for _, a := range algorithms {
		algs = append(algs, string(a))
	}
	for _, scope := range review.Scopes {
		scopes = append(scopes, string(scope))
	}
	want := map[string][]string{"/properties/issuers/items/properties/algorithms/items": algs, "/properties/grants/items/properties/scopes/items": scopes}
	got := s.Codes()
	for _, lists := range []map[string][]string{want, got} {
		for _, codes := range lists {
			slices.Sort(codes)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-loader +schema):\n%s", diff)
	}
}
