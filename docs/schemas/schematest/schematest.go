// Package schematest holds a published JSON Schema to what its loader takes. The
// loaders' types are their packages' own, so the comparison is here and each
// package brings its types.
package schematest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Schema is a JSON Schema under comparison.
type Schema struct {
	root    map[string]any
	notes   bool
	reached map[string]bool // pointers of the objects that a type was compared with
	faults  []string
}

// New reads a schema. notes says whether the loader takes "x-" keys.
func New(data []byte, notes bool) (*Schema, error) {
	s := &Schema{notes: notes, reached: map[string]bool{}}
	return s, json.Unmarshal(data, &s.root)
}

// Keys compares the object at a pointer with a struct that the loader fills, and
// all that is within both. refused are keys, as pointers, that the loader knows
// only to refuse them.
func (s *Schema) Keys(pointer string, t reflect.Type, refused ...string) {
	s.compare(pointer, s.at(pointer), t, refused)
}

// Faults lists what differs, at the end with the objects that nothing was
// compared with.
func (s *Schema) Faults() []string {
	s.walk("", s.root, func(pointer string, node map[string]any) {
		if node["type"] == "object" && node["properties"] != nil && !s.reached[pointer] {
			s.fault(pointer, "describes an object that the loader does not read")
		}
	})
	return s.faults
}

// Codes gives every closed list of the schema, by pointer, a const as a list of one.
// The conditions of an if are left out.
func (s *Schema) Codes() map[string][]string {
	codes := map[string][]string{}
	s.walk("", s.root, func(pointer string, node map[string]any) {
		list, _ := node["enum"].([]any)
		if one, ok := node["const"].(string); ok {
			list = []any{one}
		}
		for _, code := range list {
			text, _ := code.(string)
			codes[pointer] = append(codes[pointer], text)
		}
	})
	return codes
}

func (s *Schema) fault(pointer, format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf("%s %s", pointer, fmt.Sprintf(format, args...)))
}

func (s *Schema) compare(pointer string, node map[string]any, t reflect.Type, refused []string) {
	if ref, ok := node["$ref"].(string); ok {
		pointer = strings.TrimPrefix(ref, "#")
		node = s.at(pointer)
	}
	if node == nil {
		s.fault(pointer, "is not there")
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isText(t) {
		return
	}
	child := func(key string, t reflect.Type) {
		next, _ := node[key].(map[string]any)
		s.compare(pointer+"/"+key, next, t, refused)
	}
	switch t.Kind() {
	case reflect.Slice:
		child("items", t.Elem())
	case reflect.Map:
		child("additionalProperties", t.Elem())
	case reflect.Struct:
		if s.reached[pointer] {
			return
		}
		s.reached[pointer] = true
		if node["type"] != "object" || node["additionalProperties"] != false {
			s.fault(pointer, "must be an object that refuses unknown keys")
		}
		patterns, _ := node["patternProperties"].(map[string]any)
		if (patterns["^x-"] != nil) != s.notes {
			s.fault(pointer, "must take notes (x- keys) exactly if the loader does")
		}
		properties, _ := node["properties"].(map[string]any)
		fields := fieldsOf(t)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if _, ok := fields[key]; !ok {
				s.fault(pointer+"/properties/"+key, "is not a key of the loader")
			}
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			at := pointer + "/properties/" + key
			if slices.Contains(refused, at) {
				continue
			}
			property, ok := properties[key].(map[string]any)
			if !ok {
				s.fault(at, "is a key of the loader and not in the schema")
				continue
			}
			s.compare(at, property, fields[key], refused)
		}
	}
}

// isText reports whether a type reads itself, from one value.
func isText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) || p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fieldsOf gives the keys that a struct is decoded from.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(fields, fieldsOf(f.Type))
		case f.IsExported() && name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// at finds the node that a pointer names.
func (s *Schema) at(pointer string) map[string]any {
	node := s.root
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if key != "" {
			node, _ = node[key].(map[string]any)
		}
	}
	return node
}

// walk visits every schema within a node.
func (s *Schema) walk(pointer string, node map[string]any, visit func(pointer string, node map[string]any)) {
	visit(pointer, node)
	for key, value := range node {
		if key == "if" || key == "not" {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			s.walk(pointer+"/"+key, v, visit)
		case []any:
			for i, item := range v {
				if m, ok := item.(map[string]any); ok {
					s.walk(pointer+"/"+key+"/"+strconv.Itoa(i), m, visit)
				}
			}
		}
	}
}
