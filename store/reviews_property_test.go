package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/review"
	"weir/screening"
)

// act is one random thing that somebody does.
type act struct {
	What string
	Who  string
	N    int  // which run and spec
	Own  bool // by who submitted it, where that is what it takes
}

const propertyPolicies = `
policies:
  - {id: violence, match: {terms: ["violent_*"]}, group: legal, quorum: 1, due: 24h, then: lead, endpoints: [one]}
  - {id: general, group: general, quorum: 2, due: 48h, endpoints: [one, two]}
  - {id: lead, group: general, quorum: 1, due: 12h, endpoints: [two]}
default: general
endpoints:
  - {id: one, url: "https://one.example/", secret_env: S}
  - {id: two, url: "https://two.example/", secret_env: S}
`

const propertyPeople = `
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
groups: {general: [ana, bo, chi, dee, eve], legal: [bo, chi, dee, eve]}
`

func acts() *rapid.Generator[[][]act] {
	one := rapid.Custom(func(t *rapid.T) act {
		return act{
			What: rapid.SampledFrom([]string{"submit", "submit", "vote", "vote", "vote", "vote", "block", "ask", "answer", "answer", "claim", "release",
				"comment", "withdraw", "appeal", "appeal", "reopen", "reopen", "waive", "confirm", "time", "time", "sweep"}).Draw(t, "what"),
			Who: rapid.SampledFrom([]string{"ana", "bo", "chi", "dee", "eve"}).Draw(t, "who"),
			N:   rapid.IntRange(0, 5).Draw(t, "n"),
			Own: rapid.SampledFrom([]bool{true, true, false}).Draw(t, "own"),
		}
	})
	return rapid.SliceOfN(rapid.SliceOfN(one, 1, 4), 6, 9)
}

// Whatever people and time do to reviews at once, what is stored is what they
// were told, and nothing that a review promises is broken.
func TestReviewsUnderRandomConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(propertyPeople, propertyPolicies)
	runs, done := 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		p := &playground{world: w, rt: rt, project: fmt.Sprintf("p%d", runs), done: map[string]int{}}
		p.step([]act{{What: "submit", Who: "ana", N: 0}, {What: "submit", Who: "bo", N: 3}})
		switch rapid.SampledFrom([]string{"fresh", "blocked", "expired", "asked"}).Draw(rt, "begin") {
		case "blocked":
			p.step([]act{{What: "block", Who: "eve", N: 0}, {What: "block", Who: "dee", N: 1}})
		case "expired":
			p.weeks()
		case "asked":
			p.step([]act{{What: "ask", Who: "eve", N: 0}, {What: "ask", Who: "chi", N: 1}})
		}
		for _, together := range acts().Draw(rt, "acts") {
			p.step(together)
		}
		p.check()
		p.weeks() // every state has a way out, if only by time
		if n := one[int](w, `select count(*) from review where project = $1 and closed_at is null`, p.project); n != 0 {
			rt.Errorf("%d reviews have no way out", n)
		}
		p.check()
		for what, n := range p.done {
			done[what] += n
		}
	})
	w.checkRecord()
	t.Logf("answered with yes: %v", done)
	for _, what := range []string{"submit", "vote", "ask", "answer", "claim", "comment", "withdraw", "appeal", "reopen", "waive", "sweep"} {
		if done[what] == 0 && runs >= 100 && !t.Failed() {
			t.Errorf("no %s in %d runs was answered with yes; the runs show little", what, runs)
		}
	}
}

// playground is one run: a project of its own in the one database.
type playground struct {
	*world
	rt      *rapid.T
	project string

	mu   sync.Mutex
	done map[string]int // acts that were answered with yes
}

// weeks lets enough time pass for everything to end by itself.
func (p *playground) weeks() {
	for range 3 {
		p.exec(`with p as (update review_panel set due_at = due_at - interval '9 days' where review_id in (select id from review where project = $1)),
			w as (update waiver set created_at = created_at - interval '9 days', confirmed_at = confirmed_at - interval '9 days',
				expires_at = expires_at - interval '9 days' where project = $1)
			update review set opened_at = opened_at - interval '9 days', due_at = due_at - interval '9 days',
				expires_at = expires_at - interval '9 days' where project = $1 and closed_at is null`, p.project)
		p.do(act{What: "sweep"})
	}
}

func (p *playground) step(together []act) {
	var wg sync.WaitGroup
	for _, a := range together {
		wg.Go(func() { p.do(a) })
	}
	wg.Wait()
}

// target is the screening that an act is about: the latest of a run.
func (p *playground) target(ctx context.Context, n int) *review.Screening {
	list, err := p.store.Screenings(ctx, p.project, review.ListQuery{RunRef: fmt.Sprintf("run-%d", n%2), Limit: 1})
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

// spec is one of six: two runs, each in three forms that escalate differently.
func (p *playground) spec(n int) []byte {
	tags := [][]string{{"personal_data=present", "violent=present"}, {"violent=present"}, {"personal_data=present"}}[n/2]
	return pinned(fmt.Sprintf("run-%d", n%2), fmt.Sprint(n), "a", tags...)
}

func (p *playground) do(a act) {
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	who := review.Principal{Subject: a.Who, Project: p.project, Scopes: []review.Scope{review.ScopeSubmit, review.ScopeReview}}
	what, err := a.What, error(nil)
	sc := p.target(ctx, a.N)
	if sc == nil && what != "submit" && what != "sweep" && what != "time" {
		return
	}
	var r *review.Review
	if sc != nil && sc.Review != nil {
		if r, err = p.store.Review(ctx, p.project, sc.Review.ID); err != nil {
			p.rt.Errorf("review: %v", err)
			return
		}
	} else if slices.Contains([]string{"vote", "block", "ask", "claim", "release", "comment"}, what) {
		return
	}
	if slices.Contains([]string{"answer", "withdraw", "appeal", "reopen"}, what) && a.Own {
		who.Subject = sc.Submitter
	}
	switch what {
	case "submit":
		var existing bool
		_, existing, err = p.desk.Submit(ctx, who, p.spec(a.N), nil)
		if existing {
			return
		}
	case "vote", "block":
		choice := review.VoteAdmit
		if what == "block" {
			choice = review.VoteBlock
		}
		var terms []string
		for _, panel := range r.Panels {
			terms = append(terms, panel.Terms...)
		}
		_, err = p.desk.Vote(ctx, who, r.ID, review.VoteRequest{ExpectedVersion: r.Version, SpecSHA256: sc.SpecSHA256, Choice: choice, Reason: "r", Terms: terms})
		what = "vote"
	case "ask":
		_, err = p.desk.Ask(ctx, who, r.ID, r.Version, "?")
	case "answer":
		_, err = p.desk.Answer(ctx, who, sc.ID, "!")
	case "claim":
		_, err = p.desk.Claim(ctx, who, r.ID, 0)
	case "release":
		_, err = p.desk.Release(ctx, who, r.ID, 0)
	case "comment":
		_, err = p.desk.Comment(ctx, who, r.ID, 0, "c")
	case "withdraw":
		_, err = p.desk.Withdraw(ctx, who, sc.ID, "w")
	case "appeal":
		_, err = p.desk.Appeal(ctx, who, sc.ID, "a")
	case "reopen":
		_, err = p.desk.Reopen(ctx, who, sc.ID, "o")
	case "waive":
		_, err = p.desk.Waive(ctx, who, review.WaiverRequest{ScreeningID: sc.ID, Term: violentTerm, Reason: "r", Ticket: "T", Days: 1 + a.N})
	case "confirm":
		var list []*review.Waiver
		if list, err = p.desk.Waivers(ctx, who, review.WaiverQuery{Limit: 5}); err == nil && len(list) > 0 {
			_, err = p.desk.ConfirmWaiver(ctx, who, list[a.N%len(list)].ID)
		} else {
			return
		}
	case "time": // 13 hours for whatever waits
		_, err = p.pool.Exec(ctx, `with w as (update review_panel set due_at = due_at - interval '13 hours', remind_at = remind_at - interval '13 hours'
				where review_id in (select id from review where project = $1 and closed_at is null))
			update review set opened_at = opened_at - interval '13 hours', due_at = due_at - interval '13 hours', expires_at = expires_at - interval '13 hours',
				asked_at = asked_at - interval '13 hours' where project = $1 and closed_at is null`, p.project)
		if err != nil && strings.Contains(err.Error(), "deadlock") {
			err = nil // it is no part of the program
		}
	case "sweep":
		_, err = p.desk.Expire(ctx)
	}
	var invalid *screening.InvalidError
	var refused *review.VoteError
	switch {
	case err == nil:
		p.mu.Lock()
		p.done[what]++
		p.mu.Unlock()
	case errors.As(err, &invalid), errors.As(err, &refused), errors.Is(err, review.ErrConflict), errors.Is(err, review.ErrRunRefTaken),
		errors.Is(err, review.ErrReviewExpired), errors.Is(err, review.ErrInFlight), errors.Is(err, review.ErrNotFound), errors.Is(err, review.ErrNotAllowed):
	default:
		p.rt.Errorf("%v: %v", a, err)
	}
}

// check holds what must hold at any time.
func (p *playground) check() {
	counts := p.counts(`select type, count(*) from audit_event a join screening s on s.id = a.screening_id where s.project = $1 group by type
		union all select 'alone', count(*) from audit_event a join screening s on s.id = a.screening_id
			where s.project = $1 and a.type = 'review.decided' and a.actor = 'weir'`)
	for what, events := range map[string]string{"submit": "screening.decided", "ask": "review.asked", "answer": "review.answered", "claim": "review.claimed",
		"release": "review.released", "comment": "review.commented", "withdraw": "review.withdrawn", "appeal": "review.appealed",
		"reopen": "review.reopened", "waive": "waiver.requested", "confirm": "waiver.confirmed"} {
		if got := counts[events]; got != p.done[what] {
			p.rt.Errorf("%d %s were answered with yes, the record has %d %s", p.done[what], what, got, events)
		}
	}
	// Carried votes can decide by themselves; such a decision has no new vote.
	if got := counts["review.voted"] + counts["review.decided"] - counts["alone"]; got != p.done["vote"] {
		p.rt.Errorf("%d votes were answered with yes, the record has %d", p.done["vote"], got)
	}
	const about = `(select count(*) from audit_event a where a.screening_id = r.screening_id
		and convert_from(a.body, 'UTF8')::jsonb ->> 'review_id' = r.id::text and a.type = any(string_to_array(%s, ' ')))`
	ends := fmt.Sprintf(about, "'review.decided review.expired review.withdrawn review.superseded screening.superseded'")
	steps := fmt.Sprintf(about, "'review.voted review.decided review.asked review.answered review.overdue review.expired review.withdrawn review.superseded screening.superseded'")
	var all []string
	for what, sql := range map[string]string{
		"reviews without exactly one end":           `select count(*) from review r where project = $1 and ` + ends + ` <> (closed_at is not null)::int`,
		"reviews with a step that is not one event": `select count(*) from review r where project = $1 and version - 1 <> ` + steps,
		"endpoints not told of an opening once": `select count(*) from (select distinct r.id, e, p.due_at is not null and
				not exists (select from review_panel o where o.review_id = r.id and o.next_panel = p.panel) as first
			from review r join review_panel p on p.review_id = r.id, unnest(p.endpoints) e where r.project = $1) x
			where first and 1 <> (select count(*) from delivery d where d.review_id = x.id and d.endpoint = x.e and d.type = 'review.opened')`,
		"endpoints not told of an end once": `select count(*) from (select distinct r.id, e, r.closed_at is not null as closed
			from review r join review_panel p on p.review_id = r.id and p.due_at is not null, unnest(p.endpoints) e where r.project = $1) x
			where closed::int <> (select count(*) from delivery d where d.review_id = x.id and d.endpoint = x.e
				and d.type in ('review.decided', 'review.expired', 'review.superseded', 'review.withdrawn'))`,
		"messages of an overdue panel that are no event": `select count(*) from review r where project = $1 and
			(select count(*) from delivery d where d.review_id = r.id and d.type = 'review.overdue' and d.endpoint = 'two') <> ` + fmt.Sprintf(about, "'review.overdue'"),
		"messages without a change": `select count(*) from delivery d join review r on r.id = d.review_id where r.project = $1 and d.type not in
			('review.opened', 'review.reminder', 'review.overdue', 'review.decided', 'review.expired', 'review.superseded', 'review.withdrawn')`,
		"votes of a party": `select count(*) from vote v join review r on r.id = v.review_id join screening_party sp on sp.screening_id = r.screening_id
			and sp.name = v.person where r.project = $1 and v.cast_at > sp.since`,
		"votes in an appeal of who had blocked": `select count(*) from vote v join review r on r.id = v.review_id and r.kind = 'appeal'
			join review o on o.screening_id = r.screening_id and o.opened_at < r.opened_at join vote b on b.review_id = o.id and b.person = v.person and b.choice = 'block'
			where r.project = $1`,
		"votes by the author of a waiver": `select count(*) from vote v join review r on r.id = v.review_id join finding f on f.screening_id = r.screening_id
			join waiver w on w.project = r.project and w.author = v.person and w.term = f.term and w.finding_sha256 = f.sha256
			join screening s on s.id = r.screening_id and s.spec_sha256 = w.spec_sha256
			where r.project = $1 and v.origin is null and v.cast_at > w.created_at and v.cast_at < w.expires_at`,
		"admits without a panel's quorum": `select count(*) from review r join review_panel p on p.review_id = r.id
			where r.project = $1 and r.outcome = 'admit' and p.due_at is not null and p.passed_at is null
			and not exists (select from waiver w join screening s on s.id = r.screening_id join finding f on f.screening_id = s.id and f.term = w.term and f.sha256 = w.finding_sha256
				where w.project = r.project and w.confirmed_at is not null and p.terms = array[w.term])
			and p.quorum > (select count(distinct v.person) from vote v where v.review_id = r.id and v.panel = p.panel and v.choice = 'admit'
				and not exists (select from screening_party sp where sp.screening_id = r.screening_id and sp.name = v.person and sp.since <= r.closed_at))`,
		"admits against a block":          `select count(*) from review r join vote v on v.review_id = r.id and v.choice = 'block' where r.project = $1 and r.outcome = 'admit'`,
		"decisions after the time was up": `select count(*) from review r where project = $1 and state = 'decided' and closed_at > expires_at`,
		"admissions by nobody": `select count(*) from screening s where project = $1 and status = 'admitted' and outcome <> 'admit'
			and not (decided_by = 'people' and exists (select from review r where r.screening_id = s.id and r.outcome = 'admit'))
			and not (decided_by = 'waiver')`,
		"expired reviews that admit": `select count(*) from review r join screening s on s.id = r.screening_id where r.project = $1 and r.state = 'expired'
			and r.kind <> 'appeal' and s.status = 'admitted' and not exists (select from review n where n.screening_id = s.id and n.outcome = 'admit')`,
		"reviews that nothing will ever end": `select count(*) from review r where project = $1 and closed_at is null and expires_at is null
			and not exists (select from review_panel p where p.review_id = r.id and p.due_at is not null and p.passed_at is null and p.next_panel is not null)`,
		"runs with two alive": `select count(*) from (select run_ref from screening s where project = $1 and screening_status(s, null) in ('pending', 'admitted')
			group by run_ref having count(distinct spec_sha256) > 1) x`,
	} {
		all = append(all, "select '"+strings.ReplaceAll(what, "'", "''")+"', ("+sql+")")
	}
	for what, n := range p.counts(strings.Join(all, " union all ")) {
		if n != 0 {
			p.rt.Errorf("%d %s", n, what)
		}
	}
}

// counts reads names with numbers about the project.
func (p *playground) counts(sql string) map[string]int {
	rows, err := p.pool.Query(p.Context(), sql, p.project)
	if err != nil {
		p.rt.Fatal(err)
	}
	got := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			p.rt.Fatal(err)
		}
		got[name] = n
	}
	if err := rows.Err(); err != nil {
		p.rt.Fatal(err)
	}
	return got
}
