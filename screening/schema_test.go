package screening

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/docs/schemas"
	"weir/docs/schemas/schematest"
)

func published(t *testing.T, name string, notes bool) *schematest.Schema {
	t.Helper()
	data, err := schemas.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schematest.New(data, notes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tagNames() []string {
	names := make([]string, len(tags))
	for i, t := range tags {
		names[i] = t.name
	}
	return names
}

// A key or code that the loader of specs gains, the schema that editors use has to
// gain too; and the other way round.
func TestSpecSchemaFollowsTheLoader(t *testing.T) {
	t.Parallel()
	s := published(t, schemas.Spec, false)
	s.Keys("", reflect.TypeFor[Spec]())
	for _, fault := range s.Faults() {
		t.Error("docs/schemas/"+schemas.Spec, fault)
	}
	want := map[string][]string{
		"/properties/schema":                                            {SpecSchema},
		"/$defs/objective/properties/kind":                              objectiveKinds,
		"/$defs/objective/properties/purposes/items":                    purposeCodes,
		"/$defs/input/properties/kind":                                  inputKinds,
		"/$defs/input/properties/split":                                 splitCodes,
		"/$defs/input/properties/sources/items/properties/kind":         sourceKinds,
		"/$defs/input/properties/license/properties/restrictions/items": restrictionCodes,
		"/$defs/input/properties/license/properties/tdm":                tdmCodes,
		"/$defs/input/properties/consent/properties/status":             consentCodes,
		"/$defs/input/properties/shape/properties/modalities/items":     modalityCodes,
		"/$defs/input/properties/digests/items/properties/alg":          slices.Sorted(maps.Keys(digestHexLen)),
		"/$defs/disclosure/properties/state":                            stateCodes,
		"/$defs/disclosure/properties/basis":                            basisCodes,
		"/$defs/source_file/properties/open/items/properties/code":      openCodes,
		"/$defs/tag": tagNames(),
	}
	sameCodes(t, schemas.Spec, want, s.Codes())
}

// The same for packs, whose schema also knows which values each fact has.
func TestPackSchemaFollowsTheLoader(t *testing.T) {
	t.Parallel()
	s := published(t, schemas.Pack, true)
	s.Keys("/$defs/native", reflect.TypeFor[struct {
		Schema string `json:"schema"`
		Pack
	}]())
	s.Keys("/$defs/commitment_list", reflect.TypeFor[commitmentList]())
	for _, fault := range s.Faults() {
		t.Error("docs/schemas/"+schemas.Pack, fault)
	}
	responses := slices.Sorted(maps.Values(responseNames))
	without := func(codes []string, code string) []string {
		return slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c == code })
	}
	var facts []string
	for _, f := range factDefs {
		facts = append(facts, f.name)
		if f.perSpec {
			facts = append(facts, "spec."+f.name)
		}
	}
	const native, term, clause, list = "/$defs/native", "/$defs/term/properties", "/$defs/clause", "/$defs/commitment_list/properties"
	want := map[string][]string{
		native + "/properties/schema":                                 {PackSchema},
		native + "/properties/layer":                                  {string(Safety), string(Ethics)},
		native + "/properties/raises/items/properties/response":       without(responses, Observe.String()), // nothing is below it
		native + "/properties/raises/items/properties/unchecked":      without(without(responses, Observe.String()), Block.String()),
		native + "/properties/raises/items/then/properties/unchecked": {Escalate.String()},
		native + "/then/properties/terms/items/properties/response":   {Block.String()},
		term + "/severity":                              severities,
		term + "/over/items":                            inputKinds,
		term + "/if_stated/items":                       inputKinds,
		term + "/predicate":                             NewRegistry().names(),
		term + "/response":                              responses,
		term + "/unchecked":                             without(responses, Block.String()),
		"/$defs/term/allOf/2/then/properties/unchecked": {Escalate.String()},
		"/$defs/reference/properties/relation":          relations,
		"/$defs/tag":                                    tagNames(),
		clause + "/properties/fact":                     facts,
		clause + "/properties/tag/additionalProperties": {"present", "absent"},
		list + "/schema_version":                        {commitmentListSchema},
		list + "/domain":                                domains,
	}
	n := 0
	for _, f := range factDefs {
		if f.codes != nil {
			at := clause + "/allOf/" + strconv.Itoa(n) + "/then/properties"
			want[at+"/has"], want[at+"/any_of/items"] = f.codes, f.codes
			n++
		}
	}
	got := s.Codes()
	if obfuscated := clause + "/properties/obfuscated"; got[obfuscated] != nil {
		t.Errorf("%s has text codes", obfuscated)
	}
	sameCodes(t, schemas.Pack, want, got)
}

func sameCodes(t *testing.T, name string, want, got map[string][]string) {
	t.Helper()
	for _, lists := range []map[string][]string{want, got} {
		for at := range lists {
			lists[at] = slices.Sorted(slices.Values(lists[at]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes of docs/schemas/%s (-loader +schema):\n%s", name, diff)
	}
}
