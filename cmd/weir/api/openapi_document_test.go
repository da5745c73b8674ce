package api_test

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/cmd/weir/api"
	"weir/cmd/weir/openapi"
)

// The document is an OpenAPI 3.1 document: by the format's own schema, and to
// another reader, which resolves every reference.
func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	text := documentText()
	meta, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("meta.json", meta); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("meta.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	if schema.Validate(map[string]any{"openapi": "3.1.1"}) == nil {
		t.Error("the format's schema takes anything")
	}
	other, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	model, err := other.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, item := range model.Model.Paths.PathItems.FromOldest() {
		for _, op := range item.GetOperations().FromOldest() {
			if ids[op.OperationId] || op.OperationId == "" || op.Summary == "" {
				t.Errorf("operation %q is not named, or named twice, or not summed up", op.OperationId)
			}
			ids[op.OperationId] = true
		}
	}
	if want := len(api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet}).Table()); len(ids) != want {
		t.Errorf("%d operations, and %d routes", len(ids), want)
	}
	if again := documentText(); string(again) != string(text) {
		t.Error("two gates of one build give two documents")
	}
}

// Query parameters of the document are those that routes let through.
func TestOpenAPIQueries(t *testing.T) {
	t.Parallel()
	queries := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet}).Queries()
	c := newChecker()
	got := map[string][]string{}
	for _, op := range c.Operations() {
		got[op] = nil
		parameters, _ := c.Operation(op)["parameters"].([]any)
		for _, p := range parameters {
			if m := p.(map[string]any); m["in"] == "query" {
				got[op] = append(got[op], m["name"].(string))
			}
		}
	}
	if diff := cmp.Diff(queries, got); diff != "" {
		t.Errorf("(-routes +document):\n%s", diff)
	}
}

// Closed lists are whole: every constant of the type is in its schema, whichever
// package has it.
func TestOpenAPICodesAreWhole(t *testing.T) {
	t.Parallel()
	for typ, schema := range api.KnownTypes() {
		want, ok := schema["enum"].([]string)
		if !ok {
			continue // a form, not a list
		}
		got := named(typ)
		if typ.Kind() == reflect.String {
			got = constants(t, typ)
		}
		if typ.Name() == "ReplayOutcome" { // the outcomes, and this one
			got = append(got, "admit", "escalate", "block")
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
			t.Errorf("%s (-schema +constants):\n%s", typ, diff)
		}
	}
}

// named gives what the values of a type that writes itself are called.
func named(typ reflect.Type) (names []string) {
	for i := range uint64(64) {
		v := reflect.New(typ).Elem()
		if !v.CanUint() {
			return nil
		}
		v.SetUint(i)
		if text, err := v.Interface().(encoding.TextMarshaler).MarshalText(); err == nil {
			names = append(names, string(text))
		}
	}
	return names
}

// constants gives the values of the constants of a type, from its package's source.
func constants(t *testing.T, typ reflect.Type) (values []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", strings.TrimPrefix(typ.PkgPath(), "weir/"), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no source: %v", typ, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				if name, ok := v.Type.(*ast.Ident); !ok || name.Name != typ.Name() {
					continue
				}
				for _, value := range v.Values {
					text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, text)
				}
			}
		}
	}
	return values
}

// The page shows every route and schema, loads nothing, runs nothing, and leads
// nowhere that is not there.
func TestOpenAPIPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", "/openapi", "", nil)
	page := string(a.body)
	if a.status != 200 || a.header.Get("Content-Security-Policy") != openapi.PagePolicy || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", a.status, a.header)
	}
	for _, bad := range []string{"<script", "<link", "<img", "src=", " style=", "@import", "url(", "http:", "https:", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, `name="viewport"`) {
		t.Error("a phone would show it small")
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
		Paths      map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string
		}
	}
	if err := json.Unmarshal(documentText(), &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("two parts are called %s", m[1])
		}
		ids[m[1]] = true
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if !ids[op.OperationID] || !strings.Contains(page, "<code>"+strings.ToUpper(method)+" "+path+"</code>") {
				t.Errorf("%s %s is not on the page", method, path)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if !ids["schema-"+name] {
			t.Errorf("schema %s is not on the page", name)
		}
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("a link leads to %s, which is not there", m[1])
		}
	}
}
