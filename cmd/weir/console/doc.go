// Package console serves the reviewers' pages under /console: the queue, one
// review with its findings and its vote form, screenings, the vocabulary and a
// dashboard.
//
// Pages are made on the server with html/template and work without script. A
// page does one of two things: it shows what a [review.Desk] answers, or it takes
// a form, asks the Desk, and shows the answer. It decides nothing itself; who may
// vote, and whether a vote counts, is asked of the Desk for the sentence on the
// page and again for the vote.
//
// # Who is there
//
// A person logs in with a one-time link or an API key and gets a session: a
// random id in a cookie, whose digest is a row with the person, project and
// scopes. The API does not know the cookie, and an API key opens no session by
// being sent. Forms are accepted from this site only.
//
// # What is shown
//
// Text of a spec is somebody else's. It is escaped, isolated in its direction,
// and what cannot be seen in it is spelled out ([visible]). Values with a hit of
// a phrase in them may be hard to look at: they are left out of a page until
// somebody asks for them, which is counted. A page stays below 100 KB whatever
// the spec holds: long values are cut around their marks, long lists are paged.
package console
