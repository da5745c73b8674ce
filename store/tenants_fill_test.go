package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/store/ledger"
	"weir/webhooks"
)

// allOf is somebody with every scope in a project.
func allOf(project, who string) review.Principal {
	return review.Principal{Subject: who, Project: project, Scopes: review.Scopes}
}

// furnished is what furnish left in a project.
type furnished struct {
	project            string
	open, decided      *review.Screening
	openRaw            []byte
	keyID              string
	session, usedLink  screening.Digest256
	waiver, correction string
	delivery           string // of the open review
	recall             string // of data that nothing uses, still to be carried out
}

// furnish does in a project everything that leaves a row anywhere. Two projects
// that are furnished have the same bytes, runs and people.
func (w *world) furnish(project string) *furnished {
	w.Helper()
	f := &furnished{project: project, openRaw: spec("open", "", "personal_data=present")}
	key := screening.Sum([]byte("idempotency"))
	var err error
	if f.open, _, err = w.desk.Submit(w.Context(), allOf(project, "bo"), f.openRaw, &key); err != nil {
		w.Fatal(err)
	}
	if f.decided, _, err = w.desk.Submit(w.Context(), allOf(project, "dee"), madeOf("decided", dataset("d", "set", "s3://set"), "violent=present"), nil); err != nil {
		w.Fatal(err)
	}
	r, err := w.store.Review(w.Context(), project, f.decided.Review.ID)
	w.ok("review", err)
	_, err = w.desk.Vote(w.Context(), allOf(project, "bo"), r.ID, review.VoteRequest{ExpectedVersion: r.Version, SpecSHA256: f.decided.SpecSHA256,
		Choice: review.VoteBlock, Reason: "no", Terms: r.Panels[0].Terms})
	w.ok("vote", err)
	_, err = w.desk.Comment(w.Context(), allOf(project, "chi"), f.open.Review.ID, 1, "a comment")
	w.ok("comment", err)
	waiver, err := w.desk.Waive(w.Context(), allOf(project, "chi"), review.WaiverRequest{ScreeningID: f.open.ID, Term: personalTerm, Reason: "r", Ticket: "T", Days: 1})
	w.ok("waive", err)
	f.waiver = waiver.ID
	c, _, err := w.desk.Correct(w.Context(), allOf(project, "chi"), review.CorrectionRequest{ScreeningID: f.decided.ID, Text: "The clips were removed."})
	w.ok("correct", err)
	f.correction = idOf(c).String()
	_, err = w.desk.Judge(w.Context(), allOf(project, "bo"), idOf(c), review.Coherent, "so it is")
	w.ok("judge", err)
	_, _, err = w.desk.ReportBypass(w.Context(), allOf(project, "bo"), review.Bypass{ID: uuid.NewString(), At: time.Now(), Reason: "down", Spec: spec("passed", "")})
	w.ok("bypass", err)
	_, err = w.desk.Erase(w.Context(), allOf(project, "bo"), review.ErasureRequest{SpecSHA256: screening.Sum(spec("passed", "")), Reason: "asked to"})
	w.ok("erase", err)
	_, err = w.desk.OpenExcerpts(w.Context(), allOf(project, "chi"), f.open, 1)
	w.ok("excerpts", err)

	recall := &review.Recall{Project: project, Data: bytesOf("unused"), Reason: "consent was withdrawn", Actor: "chi"}
	w.ok("recall", w.store.MakeRecall(w.Context(), recall))
	f.recall = recall.ID

	_, k, err := review.NewAPIKey()
	w.ok("key", err)
	f.keyID = k.ID
	w.ok("key", w.store.CreateKey(w.Context(), store.NewKey{ID: k.ID, SecretSHA256: k.SecretSHA256, Project: project, Subject: "bo", Scopes: review.Scopes}))
	f.session, f.usedLink = screening.Sum([]byte("session of "+project)), screening.Sum([]byte("link of "+project))
	w.ok("session", w.store.OpenSession(w.Context(), f.session, allOf(project, "bo"), k.ID))
	w.ok("link", w.store.CreateLoginLink(w.Context(), f.usedLink, allOf(project, "bo")))

	claimed, err := w.store.Outbox().Claim(w.Context(), 100, lease, []string{"one", "two"})
	w.ok("claim", err)
	for _, d := range claimed {
		w.finish(d, 500, webhooks.Outcome{State: webhooks.StateDead})
	}
	f.delivery = one[string](w, `select id::text from delivery where review_id = $1 order by id limit 1`, f.open.Review.ID)
	return f
}

// twoProjects is a world with everything in the projects a and b, and in the log.
func twoProjects(t *testing.T, cfg store.Config) (w *world, a, b *furnished, key ledger.Key) {
	t.Helper()
	w = newWorldWith(t, cfg)
	w.declare("one", "two")
	a, b = w.furnish("a"), w.furnish("b")
	key = signingKey(t)
	w.sequenceAll(1000, key)
	return w, a, b, key
}
