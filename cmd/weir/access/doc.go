// Package access tells whom a bearer token speaks for: persons by their identity
// provider, services by a workload identity like a Kubernetes service account.
//
// access.yaml declares the issuers that are trusted, each for one audience, and
// what is granted to the persons, services and groups of people.yaml. A token
// counts when its issuer is declared, letter for letter; one of the issuer's keys
// signed it, with an algorithm that the issuer may use; it is for our audience and
// in time; and people.yaml gives its issuer and subject to somebody. What it may do
// is in the grants. Nothing granted is nothing allowed.
//
// The keys of an issuer are fetched when a token first needs them, and kept. An
// issuer that is away is asked again at most every ten seconds: tokens whose key is
// known go on being good, for others it is not known whether they are
// ([review.ErrIssuerAway]), and a token that cannot be good is refused.
//
// The same issuers can sign people in to the console, by the code flow of OpenID
// Connect.
package access
