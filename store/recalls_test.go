package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// steward may recall data, and see everything.
func steward(subject string) review.Principal {
	p := principal(subject)
	p.Scopes = append(p.Scopes, review.ScopePolicy)
	return p
}

// madeOf is spec with other inputs, in YAML.
func madeOf(run, inputs string, states ...string) []byte {
	return []byte(strings.Replace(string(spec(run, "", states...)), "inputs: [{id: d1, kind: dataset}]", "inputs: ["+inputs+"]", 1))
}

// hexOf gives a digest that is as good as any.
func hexOf(what string) string { return screening.Sum([]byte(what)).String() }

// dataset is an input with a digest, a URI and parents; "" leaves one out.
func dataset(id, digest, uri string, parents ...string) string {
	out := "{id: " + id + ", kind: dataset"
	if digest != "" {
		out += ", digests: [{alg: sha256, value: " + hexOf(digest) + "}]"
	}
	if uri != "" {
		out += fmt.Sprintf(", uris: [%q]", uri)
	}
	if len(parents) > 0 {
		out += ", lineage: {derived_from: ["
		for i, p := range parents {
			if i > 0 {
				out += ", "
			}
			out += fmt.Sprintf("{ref: %q}", p)
		}
		out += "]}"
	}
	return out + "}"
}

func bytesOf(digest string) review.RecalledData {
	return review.RecalledData{SHA256: screening.Sum([]byte(digest))}
}

func (w *world) recall(data review.RecalledData) *review.Recall {
	w.Helper()
	r, err := w.desk.Recall(w.Context(), steward("chi"), data, "consent was withdrawn")
	if err != nil || !r.Settled {
		w.Fatalf("recall: %+v, %v", r, err)
	}
	return r
}

func (w *world) stands(s *review.Screening) string {
	w.Helper()
	got, err := w.desk.Screening(w.Context(), steward("chi"), s.ID)
	if err != nil {
		w.Fatal(err)
	}
	return string(got.Status) + " by " + string(got.DecidedBy)
}

func (w *world) want(what string, s *review.Screening, want string) {
	w.Helper()
	if got := w.stands(s); got != want {
		w.Errorf("%s: %s, want %s", what, got, want)
	}
}

// What used the data, and what comes from it by what other specs say, is ended; the
// rest is not.
func TestRecall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "all", Host: "all.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	uses := w.submit("bo", madeOf("uses", dataset("d", "bad", "")))
	says := w.submit("bo", madeOf("says", dataset("clean", "clean", "s3://data/Clean/", "sha256:"+hexOf("bad"))))
	derived := w.submit("bo", madeOf("derived", dataset("d", "", "S3://Data/Clean"))) // by what says says
	deeper := w.submit("bo", madeOf("deeper", dataset("m", "", "", "p")+", "+dataset("p", "p", "", "s3://data/Clean")))
	pending := w.submit("dee", madeOf("pending", dataset("d", "bad", ""), "violent=present"))
	appealed := w.submit("dee", madeOf("appealed", dataset("d", "bad", ""), "violent=present"))
	if err := w.vote("bo", appealed, review.VoteBlock); err != nil {
		t.Fatal(err)
	}
	appealed, err := w.desk.Appeal(t.Context(), principal("dee"), appealed.ID, "look again")
	w.ok("appeal", err)
	expired := w.submit("dee", madeOf("expired", dataset("d", "bad", ""), "violent=present"))
	w.overdue(expired)
	w.sweep()
	waived := w.submit("dee", madeOf("waived", dataset("d", "bad", ""), "violent=present"))
	w.waive(waived, violentTerm, "bo")
	unconfirmed := w.submit("dee", madeOf("unconfirmed", dataset("d", "clean", ""), "violent=present"))
	asked, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: unconfirmed.ID, Term: violentTerm, Reason: "agreed", Ticket: "T", Days: 3})
	w.ok("waive", err)
	other := w.submit("bo", madeOf("other", dataset("d", "good", "s3://data/clean"))) // another case of the path
	w.checkRecord()
	w.want("before", uses, "admitted by packs")
	w.want("before", waived, "admitted by waiver")

	r := w.recall(bytesOf("bad"))
	for name, s := range map[string]*review.Screening{"uses": uses, "says": says, "derived": derived, "deeper": deeper, "waived": waived} {
		w.want(name, s, "revoked by recall")
	}
	w.want("pending", pending, "blocked by recall")
	w.want("unconfirmed", unconfirmed, "blocked by recall")
	w.want("appealed", appealed, "blocked by people")
	w.want("expired", expired, "expired by packs")
	w.want("other", other, "admitted by packs")
	if r.Revoked != 5 || r.Blocked != 2 {
		t.Errorf("%d revoked and %d blocked, want 5 and 2", r.Revoked, r.Blocked)
	}
	for _, s := range []*review.Screening{pending, appealed, unconfirmed, waived} {
		got, err := w.store.Review(t.Context(), "default", s.Review.ID)
		if err != nil || got.State != review.Decided || got.Outcome != review.VoteBlock {
			t.Errorf("review of %s: %s, %s, %v", s.RunRef, got.State, got.Outcome, err)
		}
	}
	told := w.revocations("all")
	slices.Sort(told)
	want := []string{uses.ID, says.ID, derived.ID, deeper.ID, waived.ID}
	slices.Sort(want)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("admission.revoked (-want +got):\n%s", diff)
	}
	body := one[string](w, `select convert_from(body, 'UTF8') from delivery where type = 'admission.revoked' and screening_id = $1`, uses.ID)
	for _, member := range []string{`"recall_id": "` + r.ID, `"reason": "consent was withdrawn"`, `"by": "chi"`} {
		if !strings.Contains(body, member) {
			t.Errorf("the message does not say %s: %s", member, body)
		}
	}
	list, _, err := w.store.Revoked(t.Context(), "default")
	w.ok("revoked", err)
	var listed []string
	for _, l := range list {
		if l.Reason == "revoked" {
			listed = append(listed, l.ScreeningID)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("list of revocations (-want +got):\n%s", diff)
	}
	for kind, n := range map[string]int{"recall.made": 1, "screening.recalled": 8, "recall.lifted": 0} {
		if got := one[int](w, `select count(*) from audit_event where type = $1`, kind); got != n {
			t.Errorf("%d events %s, want %d", got, kind, n)
		}
	}
	w.checkRecord()

	conflict := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, review.ErrConflict) || !strings.Contains(err.Error(), r.ID) {
			t.Errorf("%s: %v, want a conflict that names the recall", what, err)
		}
	}
	conflict("vote", w.vote("bo", pending, review.VoteAdmit))
	conflict("block", w.vote("bo", pending, review.VoteBlock))
	_, err = w.desk.Appeal(t.Context(), principal("dee"), pending.ID, "please")
	conflict("appeal", err)
	_, err = w.desk.Reopen(t.Context(), principal("dee"), expired.ID, "please")
	conflict("reopen", err)
	_, err = w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: expired.ID, Term: violentTerm, Reason: "agreed", Ticket: "T", Days: 3})
	conflict("waive", err)
	_, err = w.desk.ConfirmWaiver(t.Context(), principal("bo"), asked.ID)
	conflict("confirm", err)
	var closed *review.ClosedError
	if _, err := w.desk.Admission(t.Context(), principal("bo"), uses.ID); !errors.As(err, &closed) || closed.Answer.Status != review.StatusRevoked {
		t.Errorf("admission: %v", err)
	}

	// New submissions: the same bytes, the same data, data that comes from it.
	for name, raw := range map[string][]byte{
		"same bytes":  madeOf("uses", dataset("d", "bad", "")),
		"same data":   madeOf("new", dataset("d", "bad", "")),
		"derived":     madeOf("new2", dataset("d", "", "s3://data/Clean#part")),
		"by own word": madeOf("new3", dataset("d", "", "", "registry.example/x@sha256:"+hexOf("bad"))),
		"pending":     madeOf("new4", dataset("d", "bad", ""), "violent=present"),
		"waived":      madeOf("waived", dataset("d", "bad", ""), "violent=present"),
	} {
		s := w.submit("dee", raw)
		w.want(name, s, "blocked by recall")
		if s.Recall == nil || s.Recall.ID != r.ID || s.Review != nil || w.gate(raw) != review.StatusBlocked {
			t.Errorf("%s: %+v, review %v, gate %s", name, s.Recall, s.Review, w.gate(raw))
		}
	}
	floor := w.submit("dee", madeOf("floor", dataset("d", "bad", ""), "minors=present", "sexual_content=present"))
	w.want("blocked anyway", floor, "blocked by packs")
	w.checkRecord()

	if _, err := w.desk.Recall(t.Context(), steward("bo"), bytesOf("bad"), "again"); !errors.Is(err, review.ErrConflict) {
		t.Errorf("the same recall twice: %v", err)
	}

	lifted, err := w.desk.LiftRecall(t.Context(), steward("bo"), r.ID, "it was another dataset")
	w.ok("lift", err)
	if lifted.LiftedAt == nil || lifted.LiftedBy != "bo" {
		t.Errorf("lifted: %+v", lifted)
	}
	// What ended stays so; submitted again it is decided anew.
	w.want("lifted", derived, "revoked by recall")
	w.want("lifted", pending, "blocked by recall")
	w.want("lifted", waived, "revoked by recall")
	again := w.submit("bo", madeOf("derived", dataset("d", "", "S3://Data/Clean")))
	w.want("submitted again", again, "admitted by packs")
	if again.ID == derived.ID {
		t.Error("the revoked screening came back to life")
	}
	_, err = w.desk.Reopen(t.Context(), principal("dee"), expired.ID, "it is lifted")
	w.ok("reopen after the lift", err)
	if _, err := w.desk.LiftRecall(t.Context(), steward("bo"), r.ID, "again"); !errors.Is(err, review.ErrConflict) {
		t.Errorf("lifted twice: %v", err)
	}
	w.checkRecord()
}
