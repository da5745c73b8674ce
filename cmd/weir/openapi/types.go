package openapi

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types makes schemas of Go types. Structs with a name become components.
type Types struct {
	// Known are the schemas of types that reflection cannot read: those that
	// marshal themselves, and texts and numbers with a closed list.
	Known map[reflect.Type]Schema
	// Structs marshal themselves, and all the same to what their fields say.
	Structs []reflect.Type
	// Fields say what raw JSON and texts of a closed list hold, by "Type.Field": a
	// Schema, or a zero value of the type.
	Fields map[string]any
	// Names are components whose own name is taken.
	Names map[reflect.Type]string

	components map[string]Schema
	of         map[string]component
}

// component is what a name stands for.
type component struct {
	t    reflect.Type
	body bool
}

// Answer is the schema of what package json writes of v: every key that can be
// left out is optional, every other one is there, and there is none beside them.
func (t *Types) Answer(v any) Schema { return t.schema(reflect.TypeOf(v), false) }

// Body is the schema of what a handler reads into a v strictly and checks by its
// validate tags: only what these ask for is required, and x- keys are notes.
func (t *Types) Body(v any) Schema { return t.schema(reflect.TypeOf(v), true) }

// Components gives the schemas that the others refer to.
func (t *Types) Components() map[string]Schema { return maps.Clone(t.components) }

func (t *Types) schema(typ reflect.Type, body bool) Schema {
	if known, ok := t.Known[typ]; ok {
		return maps.Clone(known)
	}
	switch typ {
	case reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[jsontext.Value]():
		panic("openapi: raw JSON stands where nobody said what it holds; add the field to Types.Fields")
	}
	if typ.Kind() == reflect.Pointer {
		return t.schema(typ.Elem(), body)
	}
	if marshalsItself(typ) && !slices.Contains(t.Structs, typ) {
		panic(fmt.Sprintf("openapi: %s marshals itself; say in Types.Known to what", typ))
	}
	switch typ.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.String:
		if typ.PkgPath() != "" {
			panic(fmt.Sprintf("openapi: %s has a name and so a meaning; say in Types.Known which values it has", typ))
		}
		if typ.Kind() == reflect.String {
			return Schema{"type": "string"}
		}
		return Schema{"type": "integer"}
	case reflect.Slice:
		return Schema{"type": "array", "items": t.schema(typ.Elem(), body)}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": t.schema(typ.Elem(), body)}
	case reflect.Struct:
		if typ.Name() == "" {
			return t.object(typ, body)
		}
		return t.component(typ, body)
	}
	panic(fmt.Sprintf("openapi: no schema for %s", typ))
}

func marshalsItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t.Implements(reflect.TypeFor[jsonv2.Marshaler]()) ||
		t.Implements(reflect.TypeFor[jsonv2.MarshalerTo]())
}

func (t *Types) component(typ reflect.Type, body bool) Schema {
	name := componentName(typ.Name())
	if own, ok := t.Names[typ]; ok {
		name = own
	}
	if body && !strings.HasSuffix(name, "Body") {
		name += "Given" // what is written in full may be given in part
	}
	if t.components == nil {
		t.components, t.of = map[string]Schema{}, map[string]component{}
	}
	is := component{typ, body}
	if was, ok := t.of[name]; !ok {
		t.of[name] = is
		t.components[name] = nil // it may refer to itself
		t.components[name] = t.object(typ, body)
	} else if was != is {
		panic(fmt.Sprintf("openapi: %s and %s are both called %s; give one another name in Types.Names", was.t, typ, name))
	}
	return Schema{"$ref": "#/components/schemas/" + name}
}

// componentName drops the prefix that only tells wire types from the domain's.
func componentName(name string) string {
	name = strings.TrimPrefix(name, "wire")
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}

func (t *Types) object(typ reflect.Type, body bool) Schema {
	properties, required := map[string]Schema{}, []string{}
	t.fields(typ, body, false, properties, &required)
	s := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if body {
		s["patternProperties"] = map[string]Schema{"^x-": {"description": "A note for people."}}
	}
	return s
}

func (t *Types) fields(typ reflect.Type, body, maybe bool, properties map[string]Schema, required *[]string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner, optional := f.Type, maybe
			if inner.Kind() == reflect.Pointer { // nil: none of its keys
				inner, optional = inner.Elem(), true
			}
			t.fields(inner, body, optional, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			panic(fmt.Sprintf("openapi: %s.%s has no name in JSON", typ, f.Name))
		}
		s, optional := t.field(typ, f, body), maybe || options != ""
		if body {
			optional = !asked(f.Tag.Get("validate"))
			bound(s, f.Tag.Get("validate"))
		} else if f.Type.Kind() == reflect.Pointer && options == "" {
			s = Schema{"anyOf": []Schema{s, {"type": "null"}}}
		}
		properties[name] = s
		if !optional {
			*required = append(*required, name)
		}
	}
}

func (t *Types) field(typ reflect.Type, f reflect.StructField, body bool) Schema {
	holds, said := t.Fields[typ.Name()+"."+f.Name]
	if !said {
		return t.schema(f.Type, body)
	}
	own, isSchema := holds.(Schema)
	if isSchema {
		own = maps.Clone(own)
	} else {
		own = t.schema(reflect.TypeOf(holds), body)
	}
	if f.Type.Kind() == reflect.Slice && f.Type != reflect.TypeFor[jsontext.Value]() {
		return Schema{"type": "array", "items": own}
	}
	return own
}

// asked reports whether the zero value does not pass.
func asked(validate string) bool {
	for _, rule := range strings.Split(validate, ",") {
		name, value, _ := strings.Cut(rule, "=")
		if n, err := strconv.Atoi(value); name == "required" || name == "oneof" || name == "min" && err == nil && n > 0 {
			return true
		}
	}
	return false
}

// bound writes the rules that a schema has words for.
func bound(s Schema, validate string) {
	least, most := "minLength", "maxLength"
	switch s["type"] {
	case "integer", "number":
		least, most = "minimum", "maximum"
	case "array":
		least, most = "minItems", "maxItems"
	}
	for _, rule := range strings.Split(validate, ",") {
		name, value, _ := strings.Cut(rule, "=")
		n, _ := strconv.Atoi(value) // a test of the tags is the validator's, at the first request
		switch {
		case name == "oneof":
			s["enum"] = strings.Fields(value)
		case name == "required" && s["type"] == "string" && s["format"] == nil && s["pattern"] == nil:
			s[least] = 1
		case name == "min":
			s[least] = n
		case name == "max":
			s[most] = n
		}
	}
}
