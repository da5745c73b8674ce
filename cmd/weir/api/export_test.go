package api

import (
	"reflect"

	"github.com/labstack/echo/v4"

	"weir/cmd/weir/openapi"
)

// Registered gives what the router really has, for tests that walk it.
func (s *Server) Registered() []*echo.Route { return s.echo.Routes() }

// Table gives method and path of every declared route with its scopes.
func (s *Server) Table() map[string][]string {
	table := map[string][]string{}
	for _, r := range s.routes() {
		scopes := make([]string, len(r.scopes))
		for i, scope := range r.scopes {
			scopes[i] = string(scope)
		}
		table[r.method+" "+r.path] = scopes
	}
	return table
}

// Queries gives the query parameters of every route, under its name in the document.
func (s *Server) Queries() map[string][]string {
	queries := map[string][]string{}
	for _, r := range s.routes() {
		queries[r.method+" "+pathTemplate(r.path)] = r.query
	}
	return queries
}

// KnownTypes are the types with a closed list, and their schemas.
func KnownTypes() map[reflect.Type]openapi.Schema { return wireTypes().Known }

// ProblemNames lists every type of problem that there is.
func ProblemNames() []string {
	names := make([]string, len(problemNames))
	for i, p := range problemNames {
		names[i] = p.name
	}
	return names
}

// Subjects are those of an admission of a spec.
var Subjects = subjects

// BusyRetry gives what a caller that found no place is told in Retry-After, in seconds.
func BusyRetry() int {
	_, after := describe(errBusy)
	return after
}
