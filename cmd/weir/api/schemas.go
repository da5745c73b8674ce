package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/docs/schemas"
	"weir/review"
)

// schema gives a published JSON Schema. Editors fetch them without a key, also
// those that run in a browser.
func (s *Server) schema(c echo.Context) error {
	body, err := schemas.Read(c.Param("name"))
	if err != nil {
		return review.ErrNotFound
	}
	c.Response().Header().Set("Access-Control-Allow-Origin", "*")
	c.Response().Header().Set("Cache-Control", "max-age=300")
	return c.Blob(http.StatusOK, "application/schema+json", body)
}
