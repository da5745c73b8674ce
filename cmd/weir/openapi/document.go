package openapi

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Version is the version of the format.
const Version = "3.1.1"

// Schema is a JSON Schema (2020-12), as it is written.
type Schema map[string]any

// Document is an OpenAPI document, as far as weir needs the format.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       Info                             `json:"info"`
	Servers    []Server                         `json:"servers"`
	Tags       []Tag                            `json:"tags"`
	Paths      map[string]map[string]*Operation `json:"paths"` // by path and lower-case method
	Components Components                       `json:"components"`
}

// Info says what the interface is.
type Info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

// Server is where the routes are.
type Server struct {
	URL string `json:"url"`
}

// Tag heads a group of operations.
type Tag struct {
	Name string `json:"name"`
}

// Components are what operations refer to.
type Components struct {
	Schemas         map[string]Schema         `json:"schemas"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes"`
}

// SecurityScheme is a way to say who asks.
type SecurityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitzero"`
	Description string `json:"description"`
}

// Operation is a method of a path.
type Operation struct {
	ID         string                `json:"operationId"`
	Summary    string                `json:"summary"`
	Tags       []string              `json:"tags"`
	Security   []map[string][]string `json:"security,omitempty"` // any one of these
	Parameters []Parameter           `json:"parameters,omitempty"`
	Body       *Body                 `json:"requestBody,omitzero"`
	Responses  map[string]*Response  `json:"responses"` // by status
}

// Parameter is a part of the path, the query or the headers.
type Parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"` // path, query or header
	Required    bool   `json:"required,omitzero"`
	Description string `json:"description,omitzero"`
	Schema      Schema `json:"schema"`
}

// Body is what a request brings.
type Body struct {
	Required bool             `json:"required,omitzero"`
	Content  map[string]Media `json:"content"` // by media type
}

// Response is an answer with one status.
type Response struct {
	Description string           `json:"description"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Media is a body of one media type. One without a schema is not JSON.
type Media struct {
	Schema Schema `json:"schema,omitempty"`
}

// JSON writes the document, the same bytes each time.
func (d *Document) JSON() ([]byte, error) {
	return json.Marshal(d, json.Deterministic(true))
}

// Route is a route of another listener than the one that serves the document.
type Route struct {
	Method, Path string
	Describe     func(*Types) *Operation
	Security     map[string]SecurityScheme // that its operation names
}

// Add puts an operation in its place.
func (d *Document) Add(method, path string, op *Operation) {
	if d.Paths[path] == nil {
		d.Paths[path] = map[string]*Operation{}
	}
	d.Paths[path][strings.ToLower(method)] = op
	for _, name := range op.Tags {
		if !slices.Contains(d.Tags, Tag{name}) {
			d.Tags = append(d.Tags, Tag{name})
		}
	}
}
