// Package schemas holds the JSON Schemas (2020-12) of the files that people write
// for weir, for editors and for pipelines that check before they ask. The loaders
// decide; tests hold the schemas to them, key by key and code by code.
package schemas

import (
	"embed"
	"io/fs"
)

//go:embed *.json
var files embed.FS

// The published schemas.
const (
	Spec     = "spec.v1.json"     // training specs
	Pack     = "pack.v1.json"     // packs, native and as commitment lists
	Policies = "policies.v1.json" // policies.yaml
	People   = "people.v1.json"   // people.yaml
	Access   = "access.v1.json"   // access.yaml
)

// Names lists them.
func Names() []string { return []string{Spec, Pack, Policies, People, Access} }

// Read gives one. The error is [fs.ErrNotExist] for a name that is none of them.
func Read(name string) ([]byte, error) { return fs.ReadFile(files, name) }
