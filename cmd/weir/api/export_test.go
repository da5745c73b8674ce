package api

import "github.com/labstack/echo/v4"

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
