package api

import (
	"weir/cmd/weir/openapi"
	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// operation is what the OpenAPI document says of a route beyond what routes says.
type operation struct {
	id, says string
	// body is the zero value that the body is read into, a schema, or an either, a
	// needs or a media of them. nil: none.
	body     any
	optional bool // the body may be left out
	// answers by status below 300: a zero value of what is written, or a media.
	answers map[int]any
	// problems are rows of problemTable, by name, that a route of its kind does not
	// have anyway, see problemsOf; with a status, if that is not the row's.
	problems []string
	headers  []openapi.Parameter
}

// media is an answer or a body that is not plain JSON. each tells what a line or the whole
// holds, if that is JSON.
type media struct {
	types []string
	each  any
}

// envelope is a signed statement, as the library that signs it writes it.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     string `json:"payload"` // base64
	Signatures  []struct {
		KeyID string `json:"keyid"`
		Sig   string `json:"sig"` // base64
	} `json:"signatures"`
}

// digestBody is the other body of gate/check.
type digestBody struct {
	SpecSHA256 screening.Digest256 `json:"spec_sha256" validate:"required"`
}

var (
	signed      = media{types: []string{envelopeType}, each: envelope{}}
	htmlPage    = media{types: []string{"text/html"}}
	idempotency = openapi.Parameter{Name: "Idempotency-Key", In: "header", Description: "The same key with the same bytes gives the same screening.",
		Schema: openapi.Schema{"type": "string", "pattern": "^[!-~]{1,255}$"}}
	gateStatuses = []string{"gate-blocked", "gate-pending", "gate-expired", "gate-superseded", "gate-withdrawn", "gate-revoked"}
	gateProblems = append([]string{"erased 409"}, gateStatuses...)
)

// describedRoute is an entry of operations; route is "METHOD /path".
type describedRoute struct {
	route string
	operation
}

// operations has an entry for every route, under its method and path as routes has
// them. To add one: a line here, and in the tests a request for each of its answers.
var operations = []describedRoute{
	{"POST /v1/screenings", operation{id: "submit", says: "Screen a spec. 201 decided, 202 escalated, 200 an earlier screening answers, or nothing was stored.",
		body: specBody, headers: []openapi.Parameter{idempotency},
		answers:  map[int]any{200: either{wireScreening{}, wirePreview{}, openGate{}, reportedGate{}}, 201: wireScreening{}, 202: wireScreening{}},
		problems: append([]string{"header", "dry-run-gate", "idempotency-key-reused", "in-flight", "run-ref-taken", "review-expired"}, gateProblems...)}},
	{"POST /v1/screenings/batch", operation{id: "submitBatch", says: "Screen a spec a line, with a result a line, in order. The last line says whether the answer is whole.",
		body: batchBody, headers: []openapi.Parameter{idempotency},
		answers:  map[int]any{200: media{[]string{batchMedia}, either{batchResult{}, batchLast{}}}},
		problems: []string{"header"}}},
	{"GET /v1/screenings", operation{id: "listScreenings", says: "Screenings, newest first, without their decisions.", answers: map[int]any{200: screeningList{}}}},
	{"GET /v1/screenings/:id", operation{id: "getScreening", says: "A screening with its decision; with wait, as soon as its status is final.",
		answers: map[int]any{200: wireScreening{}}}},
	{"GET /v1/screenings/:id/admission", operation{id: "getAdmission", says: "The signed statement that these bytes may train, while they may.",
		answers: map[int]any{200: signed}, problems: append([]string{"no-signing-key", "not-in-log", "erased"}, gateStatuses...)}},
	{"GET /v1/admissions/revoked", operation{id: "listRevoked", says: "The signed list of admissions that ended early.",
		answers: map[int]any{200: signed}, problems: []string{"no-signing-key"}}},
	{"GET /v1/admissions/drift", operation{id: "listDrift", says: "A page of live admissions that the packs in force would not give now. Nothing is stored or ended.",
		answers: map[int]any{200: driftAnswer{}}}},
	{"GET /v1/screenings/:id/spec", operation{id: "getSpec", says: "The bytes of the spec as they were received.",
		answers: map[int]any{200: media{types: []string{"application/octet-stream"}}}, problems: []string{"erased"}}},
	{"POST /v1/screenings/:id/answer", operation{id: "answer", says: "Answer the reviewers' question, so that the review goes on.",
		body: noteBody{}, answers: map[int]any{200: wireScreening{}}, problems: []string{"conflict"}}},
	{"POST /v1/screenings/:id/withdraw", operation{id: "withdraw", says: "Take a screening back from review.",
		body: reasonBody{}, answers: map[int]any{200: wireScreening{}}, problems: []string{"conflict"}}},
	{"POST /v1/screenings/:id/appeal", operation{id: "appeal", says: "Ask other people to look at a block again.",
		body: reasonBody{}, answers: map[int]any{200: wireScreening{}}, problems: []string{"conflict", "floor", "run-ref-taken", "erased"}}},
	{"POST /v1/screenings/:id/reopen", operation{id: "reopen", says: "Go on with a review that expired.",
		body: reasonBody{}, answers: map[int]any{200: wireScreening{}}, problems: []string{"conflict", "run-ref-taken", "erased"}}},
	{"POST /v1/gate/check", operation{id: "checkGate", says: "May exactly these bytes train now? 200 only if they are admitted, or in report mode.",
		body: gateBody, answers: map[int]any{200: either{openGate{}, reportedGate{}}}, problems: append([]string{"not-found"}, gateProblems...)}},
	{"POST /v1/bypasses", operation{id: "reportBypass", says: "Report a run that started without an answer. 200 when it was kept before.",
		body: bypassBody{}, answers: map[int]any{200: wireBypass{}, 201: wireBypass{}}, problems: []string{"conflict"}}},
	{"GET /v1/bypasses", operation{id: "listBypasses", says: "Such reports, latest first.", answers: map[int]any{200: bypassList{}}}},

	{"GET /v1/reviews", operation{id: "listReviews", says: "What waits for people, by due time; with all, everything, newest first.", answers: map[int]any{200: reviewList{}}}},
	{"GET /v1/reviews/:id", operation{id: "getReview", says: "A review with panels, votes, notes and the decision.", answers: map[int]any{200: wireReview{}}}},
	{"POST /v1/reviews/:id/votes", operation{id: "vote", says: "Vote on a review.", body: voteBody{}, answers: map[int]any{200: wireReview{}}, problems: []string{"conflict", "floor"}}},
	{"POST /v1/reviews/:id/claim", operation{id: "claim", says: "Show for 30 minutes that you look at a review. No vote needs it.", body: versionBody{}, optional: true, answers: map[int]any{200: wireReview{}}, problems: []string{"conflict"}}},
	{"POST /v1/reviews/:id/release", operation{id: "release", says: "Give a claim back.", body: versionBody{}, optional: true, answers: map[int]any{200: wireReview{}}, problems: []string{"conflict"}}},
	{"POST /v1/reviews/:id/needs-evidence", operation{id: "ask", says: "Ask the submitter for evidence.", body: askBody{}, answers: map[int]any{200: wireReview{}}, problems: []string{"conflict"}}},
	{"POST /v1/reviews/:id/comments", operation{id: "comment", says: "Comment on a review, also on a closed one.", body: commentBody{}, answers: map[int]any{201: wireReview{}}, problems: []string{"conflict"}}},
	{"POST /v1/reviews/:id/corrections", operation{id: "correctReview", says: "Correct the decision that a review is about.", body: reviewCorrectionBody{},
		answers: map[int]any{200: wireCorrection{}, 201: wireCorrection{}}, problems: []string{"conflict"}}},

	{"POST /v1/waivers", operation{id: "waive", says: "Ask for a waiver. It is in force when a second person confirms it.", body: waiverBody{}, answers: map[int]any{201: wireWaiver{}}, problems: []string{"not-found", "conflict", "floor", "erased"}}},
	{"GET /v1/waivers", operation{id: "listWaivers", says: "Waivers, newest first.", answers: map[int]any{200: waiverList{}}}},
	{"GET /v1/waivers/:id", operation{id: "getWaiver", says: "A waiver.", answers: map[int]any{200: wireWaiver{}}}},
	{"POST /v1/waivers/:id/confirm", operation{id: "confirmWaiver", says: "Confirm another person's waiver.", body: struct{}{}, optional: true, answers: map[int]any{200: wireWaiver{}}, problems: []string{"conflict"}}},

	{"POST /v1/corrections", operation{id: "correct", says: "Pass a correction through the review gate. 201 kept with whatever outcome, 200 kept before.", body: correctionBody{},
		answers: map[int]any{200: wireCorrection{}, 201: wireCorrection{}}, problems: []string{"not-found", "conflict", "erased"}}},
	{"GET /v1/corrections", operation{id: "listCorrections", says: "Corrections, newest first.", answers: map[int]any{200: correctionList{}}}},
	{"GET /v1/corrections/:id", operation{id: "getCorrection", says: "A correction with its history.", answers: map[int]any{200: wireCorrection{}}}},
	{"POST /v1/corrections/:id/status", operation{id: "judge", says: "Give a correction its epistemic status.", body: judgementBody{}, answers: map[int]any{200: wireCorrection{}}, problems: []string{"conflict"}}},

	{"GET /v1/packs", operation{id: "listPacks", says: "The packs in use.", answers: map[int]any{200: packList{}}}},
	{"GET /v1/packs/:id", operation{id: "getPack", says: "A pack in use.", answers: map[int]any{200: wirePack{}}}},
	{"POST /v1/packs/replay", operation{id: "replay", says: "A page of what other packs would have decided. Nothing is stored.", body: needs{replayBody{}, []string{"since", "cursor"}}, answers: map[int]any{200: replayAnswer{}}}},

	{"GET /v1/audit/checkpoint", operation{id: "getCheckpoint", says: "The latest signed state of the log, with what witnesses added; with cosigned, the latest that has any of theirs.", answers: map[int]any{200: media{types: []string{"text/plain"}}}, problems: []string{"not-found"}}},
	{"GET /v1/audit/entries", operation{id: "listEntries", says: "A page of the log.", answers: map[int]any{200: leafList{}}}},
	{"GET /v1/audit/proof", operation{id: "getProof", says: "The proof that an event is in the log, or that one state of it begins with another.",
		answers: map[int]any{200: proofAnswer{}}, problems: []string{"not-found", "not-in-log"}}},
	{"GET /v1/exports", operation{id: "export", says: "Records with their proofs as a bundle, or decisions alone.",
		answers:  map[int]any{200: media{types: []string{"application/zip", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"}}},
		problems: []string{"no-signing-key", "nothing-to-export"}}},
	{"POST /v1/erasures", operation{id: "erase", says: "Erase the bytes of a spec and of all decisions of it.", body: needs{erasureBody{}, []string{"screening", "spec_sha256"}},
		answers: map[int]any{201: erasureAnswer{}}, problems: []string{"not-found", "conflict"}}},

	{"POST /v1/recalls", operation{id: "recall", says: "Take data out of use, with all that comes from it. 201: it is in force.", body: needs{recallBody{}, []string{"sha256", "uri"}},
		answers: map[int]any{201: wireRecall{}}, problems: []string{"conflict"}}},
	{"GET /v1/recalls", operation{id: "listRecalls", says: "Recalls, newest first.", answers: map[int]any{200: recallList{}}}},
	{"GET /v1/recalls/:id", operation{id: "getRecall", says: "A recall with a page of the screenings that fall under it, and how.", answers: map[int]any{200: recallReport{}}}},
	{"POST /v1/recalls/:id/lift", operation{id: "liftRecall", says: "Let recalled data be used again. What the recall ended stays ended.", body: reasonBody{},
		answers: map[int]any{200: wireRecall{}}, problems: []string{"conflict"}}},

	{"GET /v1/endpoints", operation{id: "listEndpoints", says: "Webhook endpoints and how they are.", answers: map[int]any{200: endpointList{}}}},
	{"GET /v1/endpoints/:id", operation{id: "getEndpoint", says: "An endpoint, with what was done to it.", answers: map[int]any{200: wireEndpoint{}}}},
	{"POST /v1/endpoints/:id/enable", operation{id: "enableEndpoint", says: "Send to an endpoint again, also what was held.", body: reasonBody{}, answers: map[int]any{200: wireEndpoint{}}}},
	{"POST /v1/endpoints/:id/disable", operation{id: "disableEndpoint", says: "Hold what is for an endpoint.", body: reasonBody{}, answers: map[int]any{200: wireEndpoint{}}}},
	{"POST /v1/endpoints/:id/ping", operation{id: "pingEndpoint", says: "Send a test message.", answers: map[int]any{202: pingAnswer{}}}},
	{"POST /v1/endpoints/:id/redeliver", operation{id: "redeliverFailed", says: "Send again what failed since a time.", body: sinceBody{}, answers: map[int]any{202: redeliveriesAnswer{}}, problems: []string{"endpoint-disabled"}}},
	{"GET /v1/deliveries", operation{id: "listDeliveries", says: "Messages to endpoints, newest first.", answers: map[int]any{200: deliveryList{}}}},
	{"GET /v1/deliveries/:id", operation{id: "getDelivery", says: "A message with every attempt and its body.", answers: map[int]any{200: wireDelivery{}}}},
	{"POST /v1/deliveries/:id/redeliver", operation{id: "redeliver", says: "Send a message again.", answers: map[int]any{202: redeliveryAnswer{}},
		problems: []string{"under-way", "endpoint-disabled"}}},

	{"GET /console", operation{id: "console", says: "The reviewers' pages, for browsers.", answers: map[int]any{303: htmlPage}, problems: []string{"busy"}}},
	{"GET /console/*", operation{id: "consolePage", says: "A page of the console, or a file that pages use.",
		answers: map[int]any{200: media{types: []string{"text/html", "text/css", "text/javascript", "image/svg+xml", "text/plain"}}, 303: htmlPage, 4: htmlPage}, problems: []string{"busy"}}},
	{"POST /console/*", operation{id: "consoleForm", says: "A form of the console.", answers: map[int]any{200: htmlPage, 303: htmlPage, 4: htmlPage}, problems: []string{"busy"}}},
	{"GET /schemas/:name", operation{id: "getSchema", says: "A JSON Schema of a file that people write.", answers: map[int]any{200: media{[]string{"application/schema+json"}, anything}}}},
	{"GET /openapi.json", operation{id: "openapi", says: "This document.", answers: map[int]any{200: anything}}},
	{"GET /openapi", operation{id: "openapiPage", says: "This document as a page.", answers: map[int]any{200: htmlPage}}},
	{"GET /livez", operation{id: "livez", says: "The process runs.", answers: map[int]any{200: aliveAnswer{}}}},
	{"GET /readyz", operation{id: "readyz", says: "The gate can be trusted with a question. 503 with the reasons when it cannot.", answers: map[int]any{200: readyAnswer{}, 503: notReadyAnswer{}}}},
	{"GET /metrics", operation{id: "metrics", says: "Prometheus metrics.", answers: map[int]any{200: media{types: []string{"text/plain"}}}}},
}

// parameters describes query parameters by name, or by route and name where one
// name has two meanings.
var parameters = map[string]openapi.Parameter{
	"cosigned":                   flag("The latest that a witness cosigned."),
	"dry_run":                    flag("Decide and store nothing."),
	"gate":                       flag("Answer as gate/check does."),
	"explain":                    flag("Also say what would change the findings."),
	"all":                        flag("Also what is closed."),
	"live":                       flag("Only those in force."),
	"limit":                      {Schema: openapi.Schema{"type": "integer", "minimum": 1, "maximum": maxPage}},
	"cursor":                     text("The next of an earlier page."),
	"wait":                       text("How long to wait for a final status, like 30s; at most 1m."),
	"run_ref":                    text("Of this run."),
	"screening":                  text("The id of a screening."),
	"status":                     {Description: "Only these.", Schema: oneOf(review.Statuses()...)},
	"GET /v1/corrections status": {Description: "Only these.", Schema: oneOf(review.Speculative, review.Coherent, review.Contested, review.Falsified)},

	"GET /v1/audit/entries from": whole("The index of the first entry."),
	"seq":                        whole("The number of the event within the screening, from 1."),
	"size":                       whole("The number of entries of the log."),
	"old":                        whole("That of the older state."),
	"from":                       moment("From this time on."),
	"to":                         moment("Before this time."),
	"since":                      whole("The size of the log at the export before."),
	"skip":                       whole("Bytes of the archive that are there already."),
	"after":                      whole("Go on after the record with this index."),
	"outcome":                    {Description: "Only these.", Schema: oneOf("admit", "escalate", "block")},
	"payloads":                   {Description: "Whether the bytes of specs and decisions are in it.", Schema: oneOf("included", "digests")},
	"format":                     {Description: "A bundle that can be verified, or decisions alone.", Schema: oneOf("bundle", "ndjson", "csv", "parquet")},

	"endpoint": text("Of this endpoint."),
	"state":    {Description: "Only these.", Schema: oneOf(webhooks.States()...)},
	"type":     {Description: "Only these.", Schema: oneOf(append(webhooks.Types(), webhooks.TypePing)...)},
	"review":   text("About this review."),
}

func flag(says string) openapi.Parameter {
	return openapi.Parameter{Description: says, Schema: oneOf("true", "false")}
}

func text(says string) openapi.Parameter {
	return openapi.Parameter{Description: says, Schema: openapi.Schema{"type": "string"}}
}

func whole(says string) openapi.Parameter {
	return openapi.Parameter{Description: says, Schema: openapi.Schema{"type": "integer", "minimum": 0}}
}

func moment(says string) openapi.Parameter {
	return openapi.Parameter{Description: says, Schema: openapi.Schema{"type": "string", "format": "date-time"}}
}

// oneOf is a closed list.
func oneOf[T ~string](list ...T) openapi.Schema {
	enum := make([]string, len(list))
	for i, code := range list {
		enum[i] = string(code)
	}
	return openapi.Schema{"type": "string", "enum": enum}
}
