package store_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
)

// The screenings of a status are those of the whole list that have it, by whatever
// they came there: by time, by a waiver, by a recall that is carried out and by one
// that is not yet.
func TestListByStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := dataset("d", "bad", "")
	w.submit("bo", spec("admitted", ""))
	w.ended(w.submit("bo", spec("ran-out", "")).ID)
	w.submit("dee", spec("pending", "", "violent=present"))
	w.overdue(w.submit("dee", spec("overdue", "", "violent=present")))
	w.ok("vote", w.vote("bo", w.submit("dee", spec("blocked", "", "violent=present")), review.VoteBlock))
	_, err := w.desk.Withdraw(t.Context(), principal("dee"), w.submit("dee", spec("withdrawn", "", "violent=present")).ID, "no")
	w.ok("withdraw", err)
	w.submit("dee", spec("superseded", ""))
	w.submit("dee", spec("superseded", "by this"))
	w.submit("bo", madeOf("to-revoke", data))
	w.submit("dee", madeOf("to-block", data, "violent=present"))
	for run, inputs := range map[string]string{"waived": "{id: d1, kind: dataset}", "waived-to-revoke": data} {
		w.waive(w.submit("dee", madeOf("pending-"+run, inputs, "violent=present")), violentTerm, "bo")
	}
	w.strict()
	w.submit("dee", spec("blocked-by-packs", "", "violent=present"))
	for run, inputs := range map[string]string{"waived": "{id: d1, kind: dataset}", "waived-to-revoke": data} {
		w.waive(w.submit("dee", madeOf("blocked-"+run, inputs, "violent=present")), violentTerm, "bo")
	}

	agree := func(when string, want map[review.Status]int) {
		t.Helper()
		all, err := w.store.Screenings(t.Context(), "default", review.ListQuery{Limit: 100})
		w.ok("list", err)
		of := map[review.Status][]string{}
		for _, s := range all {
			of[s.Status] = append(of[s.Status], s.RunRef)
		}
		counted := map[review.Status]int{}
		for status := range maps.Keys(want) {
			list, err := w.store.Screenings(t.Context(), "default", review.ListQuery{Limit: 100, Status: status})
			w.ok("list", err)
			var runs []string
			for _, s := range list {
				runs = append(runs, s.RunRef)
			}
			if !slices.Equal(runs, of[status]) {
				t.Errorf("%s, %s: %q, want %q", when, status, runs, of[status])
			}
			counted[status] = len(runs)
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want := map[review.Status]int{review.StatusAdmitted: 7, review.StatusPending: 2, review.StatusBlocked: 2, review.StatusExpired: 2,
		review.StatusSuperseded: 1, review.StatusWithdrawn: 1, review.StatusRevoked: 0}
	agree("before the recall", want)
	r := &review.Recall{Project: "default", Data: bytesOf("bad"), Reason: "abuse", Actor: "chi"}
	w.ok("recall", w.store.MakeRecall(t.Context(), r))
	want[review.StatusAdmitted], want[review.StatusRevoked] = 4, 3
	want[review.StatusPending], want[review.StatusBlocked] = 1, 3
	agree("kept, and not carried out", want)
	_, err = w.store.SettleRecalls(t.Context())
	w.ok("settle", err)
	agree("carried out", want)
	w.sweep()
	agree("swept", want)
}
