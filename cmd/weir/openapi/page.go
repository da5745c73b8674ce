package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"words": words, "codes": problemCodes}).Parse(pageHTML))
)

// PagePolicy is the Content-Security-Policy of a page: nothing is loaded, nothing
// runs, and of styles only the page's own counts.
var PagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageCSS))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
}()

type pageGroup struct {
	Name       string
	Operations []pageOperation
}

type pageOperation struct {
	Method, Path string
	*Operation
}

// Scopes are those of which one is enough.
func (o pageOperation) Scopes() (scopes []string) {
	for _, way := range o.Security {
		for _, name := range slices.Sorted(maps.Keys(way)) {
			scopes = append(scopes, way[name]...)
			if len(way[name]) == 0 {
				scopes = append(scopes, name)
			}
		}
	}
	return scopes
}

type pageSchema struct {
	Name       string
	Required   bool
	Schema     map[string]any
	Properties []pageSchema
}

// Page writes the document as one HTML page, which works without scripts and on a
// small screen. It is to be served under PagePolicy.
func (d *Document) Page() ([]byte, error) {
	// The schemas come from types, files and by hand; read back they are of one kind.
	raw, err := d.JSON()
	if err != nil {
		return nil, err
	}
	var doc Document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	data := struct {
		Doc     *Document
		Style   template.CSS
		Groups  []pageGroup
		Schemas []pageSchema
	}{Doc: &doc, Style: template.CSS(pageCSS)} //nolint:gosec // our own file
	for _, tag := range doc.Tags {
		g := pageGroup{Name: tag.Name}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				if op := doc.Paths[path][method]; slices.Contains(op.Tags, tag.Name) {
					g.Operations = append(g.Operations, pageOperation{strings.ToUpper(method), path, op})
				}
			}
		}
		data.Groups = append(data.Groups, g)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		data.Schemas = append(data.Schemas, schemaOf(name, doc.Components.Schemas[name]))
	}
	var out bytes.Buffer
	err = pageTemplate.Execute(&out, data)
	return out.Bytes(), err
}

func schemaOf(name string, s map[string]any) pageSchema {
	p := pageSchema{Name: name, Schema: s}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		sub, _ := properties[key].(map[string]any) // a false has nothing to show
		p.Properties = append(p.Properties, pageSchema{Name: key, Schema: sub, Required: slices.Contains(required, any(key))})
	}
	return p
}

// word is a piece of a type in words; Schema is what it refers to.
type word struct{ Text, Schema string }

// words says what a schema allows, in a line.
func words(schema any) []word {
	s, ok := schema.(map[string]any)
	if !ok {
		if of, isSchema := schema.(Schema); isSchema {
			s = of
		}
	}
	switch {
	case s["$ref"] != nil:
		name := strings.TrimPrefix(fmt.Sprint(s["$ref"]), "#/components/schemas/")
		return []word{{name, name}}
	case s["enum"] != nil:
		return []word{{Text: list(s["enum"], ", ")}}
	case s["const"] != nil:
		return []word{{Text: fmt.Sprint(s["const"])}}
	case s["anyOf"] != nil:
		return joined(s["anyOf"], " or ")
	case s["type"] == "array":
		return append([]word{{Text: "list of "}}, words(s["items"])...)
	case s["type"] == "object" && s["properties"] == nil && s["additionalProperties"] != nil:
		return append([]word{{Text: "map to "}}, words(s["additionalProperties"])...)
	case s["type"] == "object" && s["properties"] != nil:
		out := []word{{Text: "{ "}}
		for i, p := range schemaOf("", s).Properties {
			if i > 0 {
				out = append(out, word{Text: ", "})
			}
			out = append(append(out, word{Text: p.Name + ": "}), words(p.Schema)...)
		}
		return append(out, word{Text: " }"})
	case s["type"] != nil:
		text := list(s["type"], " or ")
		if f, ok := s["format"].(string); ok {
			text = f
		}
		return []word{{Text: text}}
	}
	return []word{{Text: "anything"}}
}

func joined(schemas any, between string) (out []word) {
	list, _ := schemas.([]any)
	for i, s := range list {
		if i > 0 {
			out = append(out, word{Text: between})
		}
		out = append(out, words(s)...)
	}
	return out
}

func list(v any, between string) string {
	many, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	texts := make([]string, len(many))
	for i := range many {
		texts[i] = fmt.Sprint(many[i])
	}
	return strings.Join(texts, between)
}

// problemCodes lists the types of a problem, "" for what is none.
func problemCodes(s Schema) string {
	properties, _ := s["properties"].(map[string]any)
	typ, _ := properties["type"].(map[string]any)
	if s["$ref"] == nil || typ == nil {
		return ""
	}
	return list(typ["enum"], ", ")
}
