package store_test

import (
	"errors"
	"testing"
	"time"

	"weir/review"
	"weir/screening"
)

func TestVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present") // general: quorum 2 of ana, bo, chi, dee; ana owns it
	s := w.submit("bo", raw)
	for _, who := range []string{"ana", "bo"} {
		if err := w.vote(who, s, review.VoteAdmit); !errors.Is(err, review.ErrNotAllowed) {
			t.Errorf("%s, owner or submitter: %v, want ErrNotAllowed", who, err)
		}
	}
	if err := w.vote("nobody", s, review.VoteAdmit); !errors.Is(err, review.ErrNotAllowed) {
		t.Errorf("undeclared person: %v, want ErrNotAllowed", err)
	}
	if err := w.vote("chi", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	if err := w.vote("chi", s, review.VoteAdmit); !errors.Is(err, review.ErrConflict) {
		t.Errorf("second vote of one person: %v, want ErrConflict", err)
	}
	if got := w.gate(raw); got != review.StatusPending {
		t.Errorf("one vote of two: %s, want pending", got)
	}
	if err := w.vote("dee", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("quorum: %s, want admitted", got)
	}
	w.checkRecord()
}

func TestEveryPanelNeedsItsQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present", "violent=present") // legal: bo or chi; general: two
	s := w.submit("airflow", withOnBehalf(raw))
	if s == nil {
		t.Fatal("not kept")
	}
	if err := w.vote("dee", s, review.VoteAdmit); err != nil { // general only
		t.Fatal(err)
	}
	if err := w.vote("bo", s, review.VoteAdmit); err != nil { // legal and general
		t.Fatal(err)
	}
	if got := w.gate(withOnBehalf(raw)); got != review.StatusAdmitted {
		t.Errorf("%s, want admitted", got)
	}
	w.checkRecord()
}

func withOnBehalf(raw []byte) []byte {
	return append(raw[:len(raw):len(raw)], "on_behalf_of: ana\n"...)
}

func TestVoteMustFitWhatItAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	good := review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256, Choice: review.VoteAdmit, Reason: "fine",
		Terms: []string{"ethics:personal_data_inside"}}
	tests := map[string]struct {
		change func(*review.VoteRequest)
		want   error
	}{
		"old version":      {func(v *review.VoteRequest) { v.ExpectedVersion = 9 }, review.ErrConflict},
		"other bytes":      {func(v *review.VoteRequest) { v.SpecSHA256 = screening.Sum(nil) }, review.ErrConflict},
		"blank reason":     {func(v *review.VoteRequest) { v.Reason = " \u200b\u2060\t" }, nil},
		"no terms":         {func(v *review.VoteRequest) { v.Terms = nil }, nil},
		"unrelated term":   {func(v *review.VoteRequest) { v.Terms = []string{"ethics:violent_inside"} }, nil},
		"no such choice":   {func(v *review.VoteRequest) { v.Choice = "approve" }, nil},
		"nothing said":     {func(v *review.VoteRequest) { *v = review.VoteRequest{} }, nil},
		"missing digest":   {func(v *review.VoteRequest) { v.SpecSHA256 = screening.Digest256{} }, nil},
		"negative version": {func(v *review.VoteRequest) { v.ExpectedVersion = -1 }, nil},
	}
	for name, tt := range tests {
		req := good
		tt.change(&req)
		_, err := w.desk.Vote(t.Context(), principal("chi"), s.Review.ID, req)
		var invalid *screening.InvalidError
		if tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := one[int](w, `select count(*) from vote`); n != 0 {
		t.Errorf("%d votes kept, want none", n)
	}
}

func TestNobodyAdmitsOverAnUncheckedFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "minors=unknown", "sexual_content=present"))
	if s.Status != review.StatusPending {
		t.Fatalf("status %s, want pending", s.Status)
	}
	if err := w.vote("chi", s, review.VoteAdmit); !errors.Is(err, review.ErrConflict) {
		t.Errorf("admit: %v, want it refused", err)
	}
	if err := w.vote("chi", s, review.VoteBlock); err != nil {
		t.Errorf("block: %v", err)
	}
}

func TestWaitEndsWithTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("dee", spec("r", "", "violent=present"))
	got := make(chan review.Status, 1)
	go func() {
		sc, err := w.desk.Wait(t.Context(), principal("dee"), s.ID, 30*time.Second, nil)
		if err != nil {
			t.Error(err)
			got <- ""
			return
		}
		got <- sc.Status
	}()
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	if status := <-got; status != review.StatusAdmitted {
		t.Errorf("waited for %s, want admitted", status)
	}
}

func TestSubmittersSeeTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", ""))
	submitter := review.Principal{Subject: "chi", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}
	if _, err := w.desk.Screening(t.Context(), submitter, s.ID); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("somebody else's screening: %v, want ErrNotFound", err)
	}
	list, err := w.desk.Screenings(t.Context(), submitter, review.ListQuery{Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("%d listed (%v), want none", len(list), err)
	}
	if _, err := w.desk.Reviews(t.Context(), submitter, review.ReviewQuery{Limit: 10}); !errors.Is(err, review.ErrNotAllowed) {
		t.Errorf("reviews: %v, want ErrNotAllowed", err)
	}
}
