package kubernetes

import (
	"net/http"

	"weir/cmd/weir/openapi"
)

// Describe says what the hook is, for the OpenAPI document of the gate.
func Describe() openapi.Route {
	const certificate = "certificate"
	words := func(says string) *openapi.Response {
		return &openapi.Response{Description: says, Content: map[string]openapi.Media{"text/plain": {}}}
	}
	return openapi.Route{Method: http.MethodPost, Path: Path,
		Security: map[string]openapi.SecurityScheme{certificate: {Type: "mutualTLS", Description: "The API server's client certificate, on a listener of its own."}},
		Describe: func(t *openapi.Types) *openapi.Operation {
			text := openapi.Schema{"type": "string"}
			// An AdmissionReview belongs to Kubernetes: only what the gate reads is said of it.
			asked := openapi.Schema{"type": "object", "required": []string{"apiVersion", "kind", "request"}, "properties": map[string]openapi.Schema{
				"apiVersion": {"enum": []string{reviewVersion, reviewVersionBefore}}, "kind": {"const": reviewKind},
				"request": {"type": "object", "required": []string{"uid"}, "properties": map[string]openapi.Schema{"uid": {"type": "string", "minLength": 1},
					"operation": text, "subResource": text, "dryRun": {"type": "boolean"}, "object": {"type": []string{"object", "null"}},
					"oldObject": {"type": []string{"object", "null"}}}}}}
			return &openapi.Operation{ID: "validate", Summary: "May this object be made or changed? Kubernetes asks with an AdmissionReview.",
				Tags: []string{"hooks"}, Security: []map[string][]string{{certificate: {}}},
				Parameters: []openapi.Parameter{{Name: "timeout", In: "query", Description: "How long the API server waits, like 10s.", Schema: text}},
				Body:       &openapi.Body{Required: true, Content: map[string]openapi.Media{"application/json": {Schema: asked}}},
				Responses: map[string]*openapi.Response{
					"200": {Description: "Allowed, or not and why", Content: map[string]openapi.Media{"application/json": {Schema: t.Answer(admissionAnswer{})}}},
					"400": words("This is no question that can be answered. Nothing was checked"),
					"503": words("Too many questions at once. Nothing was checked")}}
		}}
}
