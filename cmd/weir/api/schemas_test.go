package api_test

import (
	"bytes"
	"testing"

	"weir/docs/schemas"
)

// Editors fetch the schemas without a key; nothing else is to be had that way.
func TestSchemasAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range schemas.Names() {
		want, err := schemas.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		a := w.do("GET", "/schemas/"+name, "", nil)
		if a.status != 200 || !bytes.Equal(a.body, want) || a.header.Get("Content-Type") != "application/schema+json" {
			t.Errorf("%s: %d %s", name, a.status, a.header)
		}
	}
	for _, name := range []string{"", "nothing.json", "schemas.go", ".", "..%2f..%2fspec.md", "schematest"} {
		if a := w.do("GET", "/schemas/"+name, "", nil); a.status != 404 {
			t.Errorf("%q: %d %s", name, a.status, a.body)
		}
	}
}
