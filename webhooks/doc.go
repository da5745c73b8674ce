// Package webhooks tells declared receivers what happened to a review.
//
// # The model
//
// An [Endpoint] is declared by an operator: a URL, the secrets that sign for it,
// and what its address may be. A [Delivery] is one message to one endpoint. It
// is written by somebody else, in the transaction of the event it reports, and
// its body is frozen there: the bytes that were stored are the bytes that are
// signed and sent, on the first attempt and on the last. An [Attempt] is one
// request and what came of it, an [Outcome] is what follows for the delivery.
//
// The [Dispatcher] moves deliveries from an [Outbox] to their receivers. It
// claims due deliveries under a lease, sends each with no transaction open, and
// writes attempt and outcome back under the token of the claim. A process that
// dies leaves a lease that runs out, and somebody else claims the delivery. So
// a receiver sees every message at least once, in no promised order, and drops
// repetitions by the webhook-id, which never changes.
//
//	claim ── 2xx ──────────────▶ delivered
//	  ▲  ├── anything else ────▶ retry after the schedule's delay, then dead
//	  │  ├── 410 ──────────────▶ held, and the endpoint is to be disabled
//	  └──┴── stopping ─────────▶ released, as if it had not been claimed
//
// A dispatcher claims only for endpoints that it has: during a rolling restart
// another replica may have more. The outbox keeps a [Breaker] for each endpoint,
// because it alone sees the attempts of all replicas, and after a restart. A
// person may send a message again; that begins its schedule anew, and the id of
// the request stands beside the attempt.
//
// # What an answer means
//
// A 2xx says that the receiver has the message, nothing more. The rest of the
// answer is kept, cut to 4 KiB, for whoever looks into the database, and shown to
// nobody else; no part of it is ever a review decision. A redirect is a failure and is never
// followed. A 2xx whose body breaks off or does not end in time is a failure
// too: the receiver may have died before it kept the message, and a second copy
// costs less than a lost one. A 2xx with a body that is merely too long counts.
//
// # Where a request may go
//
// Names and URLs are checked when they are declared, to tell the operator early.
// What protects the network is the check of the address actually dialled, after
// resolution: a name may resolve differently from one moment to the next. Cloud
// metadata, link-local, multicast and reserved addresses are refused whatever
// the declaration says, and so is the database; loopback and private ranges need
// allow_private. Proxies
// from the environment are not used, since behind a proxy the check would see
// the proxy only, and every attempt dials anew, so each one is checked.
//
// # Wire form
//
// Standard Webhooks 1.0: webhook-id, webhook-timestamp (of the attempt) and
// webhook-signature, one signature for each secret that has not expired: v1
// (HMAC-SHA256) by a whsec_ secret, v1a (ed25519) by a whsk_ key. Bodies come in
// three formats, see [Format]; all are signed alike.
package webhooks
