// Package openapi writes an OpenAPI 3.1 document of routes whose bodies are Go
// types, and shows one as a page.
//
// The schemas are made from the types by reflection, so that a key that a handler
// writes is in the document without anybody having to think of it. What reflection
// cannot see (closed lists of codes, types that marshal themselves, raw JSON) has
// to be said, see [Types]; a type that was forgotten is a panic, in every test that
// asks for the document.
package openapi
