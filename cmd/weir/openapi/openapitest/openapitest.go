// Package openapitest holds requests and answers of real handlers against an
// OpenAPI document: what is not in the document is a fault, and what the document
// has and nobody saw is told.
package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker compares. It may be used by several goroutines.
type Checker struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // "METHOD path status" in the document's words, or with the type of a problem behind it
	types    map[string]bool // of problems
}

const name = "openapi.json"

// ErrNoRoute: the document has no such route.
var ErrNoRoute = errors.New("is not in the document")

// New reads a document and compiles its schemas.
func New(text []byte) (*Checker, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &Checker{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}, types: map[string]bool{}}
	c.compiler.AssertFormat()
	var ok bool
	if c.doc, ok = doc.(map[string]any); !ok {
		return nil, errors.New("the document is no object")
	}
	if err := c.compiler.AddResource(name, doc); err != nil {
		return nil, err
	}
	components, _ := walk(c.doc, "components", "schemas").(map[string]any)
	for component := range components {
		if _, err := c.schema("/components/schemas/" + escape(component)); err != nil {
			return nil, fmt.Errorf("schema %s: %w", component, err)
		}
	}
	return c, nil
}

// Answer holds an answer against the document.
func (c *Checker) Answer(method, path string, status int, contentType string, body []byte) error {
	at, op, err := c.operation(method, path)
	if err != nil {
		return err
	}
	responses, _ := op["responses"].(map[string]any)
	key := strconv.Itoa(status)
	if responses[key] == nil {
		key = key[:1] + "XX"
	}
	if responses[key] == nil {
		return fmt.Errorf("%s answered %d, which the document does not know: %s", at.name, status, body)
	}
	c.see(at.name + " " + key)
	if status/100 == 3 && len(body) == 0 { // says all in its headers
		return nil
	}
	content, _ := walk(responses, key, "content").(map[string]any)
	if err := c.content(at.pointer+"/responses/"+key, content, contentType, body); err != nil {
		return fmt.Errorf("%s answered %d: %w", at.name, status, err)
	}
	if strings.HasPrefix(contentType, "application/problem+json") {
		name, err := c.problem(body)
		c.see(at.name + " " + key + " " + name)
		return err
	}
	return nil
}

func (c *Checker) see(answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[answer] = true
}

// Problem holds the body of an error against the document, where it is of no route.
func (c *Checker) Problem(body []byte) error {
	_, err := c.problem(body)
	return err
}

func (c *Checker) problem(body []byte) (typ string, err error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	schema, err := c.schema("/components/schemas/Problem")
	if err != nil {
		return "", err
	}
	typ, _ = walk(v, "type").(string)
	c.mu.Lock()
	c.types[typ] = true
	c.mu.Unlock()
	return typ, schema.Validate(v)
}

// Body holds the body of a request against the document.
func (c *Checker) Body(method, path, contentType string, body []byte) error {
	at, op, err := c.operation(method, path)
	if err != nil {
		return err
	}
	request, _ := op["requestBody"].(map[string]any)
	if len(body) == 0 && (request == nil || request["required"] == nil) {
		return nil
	}
	content, _ := request["content"].(map[string]any)
	if err := c.content(at.pointer+"/requestBody", content, contentType, body); err != nil {
		return fmt.Errorf("body of %s: %w", at.name, err)
	}
	return nil
}

// Operations lists every route of the document as "METHOD path".
func (c *Checker) Operations() (list []string) {
	paths, _ := c.doc["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods, _ := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			list = append(list, strings.ToUpper(method)+" "+path)
		}
	}
	return list
}

// Operation gives a route's part of the document.
func (c *Checker) Operation(name string) map[string]any {
	method, path, _ := strings.Cut(name, " ")
	op, _ := walk(c.doc, "paths", path, strings.ToLower(method)).(map[string]any)
	return op
}

// Resolve gives what a schema refers to, or the schema itself.
func (c *Checker) Resolve(schema any) any {
	ref, ok := walk(schema, "$ref").(string)
	if !ok {
		return schema
	}
	return walk(c.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// Unseen lists "METHOD path status" for every documented answer, and that with the
// type behind it for every documented problem, that was not held against the document.
func (c *Checker) Unseen() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.Operations() {
		responses, _ := c.Operation(op)["responses"].(map[string]any)
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			if !c.seen[op+" "+status] {
				list = append(list, op+" "+status)
			}
			types, _ := walk(responses, status, "content", "application/problem+json", "schema", "properties", "type", "enum").([]any)
			for _, typ := range types {
				if answer := fmt.Sprintf("%s %s %s", op, status, typ); !c.seen[answer] {
					list = append(list, answer)
				}
			}
		}
	}
	return list
}

// Problems gives the types of problems that were seen.
func (c *Checker) Problems() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.types)
}

type place struct{ name, pointer string }

// operation finds the route that a path is of: the one with the most parts that
// are not variable.
func (c *Checker) operation(method, path string) (place, map[string]any, error) {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	paths, _ := c.doc["paths"].(map[string]any)
	best, fixed := "", -1
	for template := range paths {
		if methods, _ := paths[template].(map[string]any); methods[strings.ToLower(method)] == nil {
			continue
		}
		if n := matches(strings.Split(template, "/"), parts); n > fixed {
			best, fixed = template, n
		}
	}
	if fixed < 0 {
		return place{}, nil, fmt.Errorf("%s %s %w", method, path, ErrNoRoute)
	}
	at := place{method + " " + best, "/paths/" + escape(best) + "/" + strings.ToLower(method)}
	return at, c.Operation(at.name), nil
}

// matches counts the fixed parts of a template that fits a path, -1 if it does
// not. A variable at the end takes the rest: it may stand for a wildcard.
func matches(template, path []string) (fixed int) {
	for i, part := range template {
		switch {
		case i >= len(path):
			return -1
		case strings.HasPrefix(part, "{"):
			switch {
			case i == len(template)-1 && part == "{page}":
				return fixed
			case path[i] == "":
				return -1
			}
		case part != path[i]:
			return -1
		default:
			fixed++
		}
	}
	if len(path) != len(template) {
		return -1
	}
	return fixed
}

// content holds a body against the schema of its media type.
func (c *Checker) content(pointer string, content map[string]any, contentType string, body []byte) error {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && len(content) > 0 {
		return fmt.Errorf("content type %q: %w", contentType, err)
	}
	described, ok := content[media].(map[string]any)
	if !ok {
		return fmt.Errorf("content type %s is not in the document, which has %v", media, slices.Sorted(maps.Keys(content)))
	}
	if described["schema"] == nil || strings.Contains(media, "yaml") {
		return nil
	}
	schema, err := c.schema(pointer + "/content/" + escape(media) + "/schema")
	if err != nil {
		return err
	}
	parts := [][]byte{body}
	if strings.HasSuffix(media, "ndjson") || strings.HasSuffix(media, "jsonl") {
		parts = bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	}
	for _, part := range parts {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(part))
		if err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		if err := schema.Validate(v); err != nil {
			return fmt.Errorf("%w\nin %s", err, part)
		}
	}
	return nil
}

func (c *Checker) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[pointer]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(name + "#" + pointer)
	if err == nil {
		c.schemas[pointer] = s
	}
	return s, err
}

// walk goes down a document.
func walk(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// escape writes a key within a pointer that is a fragment.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B").Replace(key)
}
