package review

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/docs/schemas"
	"weir/docs/schemas/schematest"
	"weir/screening"
)

// A key or code that the loaders of policies and people gain, the schemas that
// editors use have to gain too; and the other way round.
func TestDeclarationSchemasFollowTheLoaders(t *testing.T) {
	t.Parallel()
	var tags []string
	for _, tag := range screening.DisclosureTags() {
		tags = append(tags, tag.Name)
	}
	for name, loader := range map[string]struct {
		file    reflect.Type
		refused []string
		codes   map[string][]string
	}{
		schemas.People: {file: reflect.TypeFor[peopleFile](), codes: map[string][]string{}},
		schemas.Policies: {file: reflect.TypeFor[policiesFile](), refused: []string{"/$defs/policy/properties/on_expiry"},
			codes: map[string][]string{
				"/$defs/policy/properties/match/properties/severities/items": slices.Sorted(slices.Values(severities)),
				"/$defs/project/properties/mode":                             {"enforce", "report"},
				"/$defs/tag":                                                 tags,
				// Package webhooks has these; docs/schemas compares them.
				"/$defs/endpoint/properties/format":      nil,
				"/$defs/endpoint/properties/types/items": nil,
			}},
	} {
		data, err := schemas.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schematest.New(data, true)
		if err != nil {
			t.Fatal(err)
		}
		s.Keys("", loader.file, loader.refused...)
		for _, fault := range s.Faults() {
			t.Error("docs/schemas/"+name, fault)
		}
		got := s.Codes()
		for at, codes := range got {
			if want, ok := loader.codes[at]; ok && want == nil {
				got[at] = nil
			} else {
				slices.Sort(codes)
			}
		}
		if diff := cmp.Diff(loader.codes, got); diff != "" {
			t.Errorf("codes of docs/schemas/%s (-loader +schema):\n%s", name, diff)
		}
	}
}
