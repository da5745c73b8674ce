package console

import (
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
	"weir/screening"
)

// subject is a screening laid out for a page.
type subject struct {
	S        *review.Screening
	D        *screening.Decision
	Spec     *screening.ParsedSpec
	View     *specView
	Part     specPage
	Findings []finding // that decided, the weightiest first
	Beside   []finding // that are not upheld and did not decide
	MoreHere int       // findings that the page leaves out
	Graph    *graph
	Purpose  *specLine // nil when the spec states none
	Reveal   bool
	Exposure review.Exposure
}

// finding is one finding with its place in the spec and what would change it.
type finding struct {
	Term, Title, Severity string
	Effect                string
	What                  string // violated, or not checkable and why
	Bad                   bool   // violated
	Reason, Remedy        string
	Changes               []change // of the spec, all of which would make it pass
	MoreChanges           int
	Places                []place
	MorePlaces            int
}

type change struct {
	Pointer, Say string
	Line         int
}

type place struct {
	Pointer, Name, Value string
	Line                 int
	Harm                 bool // the value is held back
}

const (
	mostFindings = 24
	mostBeside   = 40
	mostPlaces   = 4
	mostChanges  = 6
	textLimit    = 400 // of reasons, remedies and values, in runes
)

// lay reads a screening's decision and spec and arranges them. from is the line
// at which the shown part of the spec begins.
func (c *Console) lay(r *http.Request, v *visit, s *review.Screening, from int, reveal bool) (*subject, error) {
	if s.Erased != nil {
		return nil, &review.ErasedError{Erased: *s.Erased}
	}
	x := &subject{S: s, D: &screening.Decision{}, Reveal: reveal}
	if err := json.Unmarshal(s.Decision, x.D); err != nil {
		return nil, err
	}
	raw, err := c.desk.SpecBytes(r.Context(), v.Principal, s.ID)
	if err != nil {
		return nil, err
	}
	if x.Spec, err = screening.ParseSpec(raw); err != nil {
		return nil, err
	}
	if x.View, err = newSpecView(x.Spec.JSON(), x.D); err != nil {
		return nil, err
	}
	x.Part = x.View.page(from, reveal)
	if i, ok := x.View.at["/objective/purpose"]; ok && x.View.Lines[i].Text != "" {
		x.Purpose = &x.View.Lines[i]
	}
	x.findings()
	states := map[string]screening.State{}
	for _, cause := range x.D.Causes {
		if f, ok := x.D.Finding(cause.Term); ok && cause.Effect >= screening.Escalate {
			for _, in := range f.Inputs {
				if states[in.ID] != screening.Violated {
					states[in.ID] = in.State
				}
			}
		}
	}
	x.Graph = newGraph(x.Spec.Spec, states, x.held)
	if x.Exposure, err = c.desk.Exposure(r.Context(), v.Principal); err != nil {
		return nil, err
	}
	return x, nil
}

// findings arranges what is not upheld: first what decided, the weightiest first.
func (x *subject) findings() {
	decided := map[string]bool{}
	for _, cause := range x.D.Causes {
		decided[cause.Term] = true
		f, ok := x.D.Finding(cause.Term)
		if !ok {
			continue
		}
		if len(x.Findings) == mostFindings {
			x.MoreHere++
			continue
		}
		one := x.finding(f)
		one.Term, one.Title, one.Severity, one.Effect = cause.Term, cause.Title, cause.Severity, cause.Effect.String()
		one.Remedy = cut(textLimit, cause.Remedy)
		x.Findings = append(x.Findings, one)
	}
	beside := func(layer screening.Layer, list []*screening.Finding) {
		for _, f := range list {
			if id := string(layer) + ":" + f.Term; f.State != screening.Upheld && !decided[id] && len(x.Beside) < mostBeside {
				one := x.finding(f)
				one.Term, one.Places = id, nil
				one.Reason = cut(160, f.Reason)
				x.Beside = append(x.Beside, one)
			}
		}
	}
	for _, verdict := range x.D.Safety {
		beside(screening.Safety, verdict.Findings)
	}
	for _, verdict := range x.D.Ethics {
		beside(screening.Ethics, verdict.Findings)
	}
}

func (x *subject) finding(f *screening.Finding) finding {
	one := finding{Bad: f.State == screening.Violated, What: "violated", Reason: cut(textLimit, f.Reason)}
	if !one.Bad {
		one.What = "not checkable: " + causeWords[f.Cause]
	}
	for _, ev := range f.Evidence {
		if ev.Pointer == "" {
			continue
		}
		if len(one.Places) == mostPlaces {
			one.MorePlaces++
			continue
		}
		one.Places = append(one.Places, place{Pointer: cut(200, ev.Pointer), Name: cut(80, ev.Name), Value: cut(textLimit, ev.Value),
			Line: x.View.line(ev.Pointer), Harm: x.held(ev.Pointer) || ev.Name == "phrase" && !x.Reveal})
	}
	return one
}

// held reports whether the text at a place is held back, wherever it is shown.
func (x *subject) held(pointer string) bool {
	i, ok := x.View.at[pointer]
	return ok && x.View.Lines[i].harm() && !x.Reveal
}

// changeWords say of a change that it has to be true, not only stated.
var changeWords = map[string]string{screening.DoState: "if it is so, state ", screening.DoReplace: "would have to be otherwise: "}

// explain adds the smallest change by which each finding that decided would pass,
// where the packs in force are those that decided.
func (c *Console) explain(r *http.Request, v *visit, x *subject) error {
	said, err := c.desk.Explain(r.Context(), v.Principal, x.S)
	if err != nil || said == nil {
		return err
	}
	flips := map[string]screening.Flip{}
	for _, f := range said.Flips {
		flips[f.Term] = f
	}
	for i := range x.Findings {
		one := &x.Findings[i]
		for n, ch := range flips[one.Term].Changes {
			if n == mostChanges {
				one.MoreChanges = len(flips[one.Term].Changes) - n
				break
			}
			one.Changes = append(one.Changes, change{cut(200, ch.Pointer), changeWords[ch.Do] + cut(200, ch.Say), x.View.line(ch.Pointer)})
		}
	}
	return nil
}

// Headline is the outcome, said first.
func (x *subject) Headline() string {
	if x.S.DecidedBy == review.ByRecall {
		return "Data that this comes from was recalled."
	}
	n := 0
	for _, cause := range x.D.Causes {
		if cause.Effect >= screening.Escalate {
			n++
		}
	}
	switch {
	case n == 0 && x.D.NoPolicyMatched:
		return "No ethics term could be checked, so nothing was shown to be harmless."
	case x.D.Outcome == screening.OutcomeBlock:
		return count(n, "finding blocks", "findings block") + " this run."
	case x.D.Outcome == screening.OutcomeEscalate:
		return count(n, "finding needs", "findings need") + " a person."
	case x.D.Hedge != nil:
		return "Admitted with a hedge, for " + count(len(x.D.Hedge.Terms), "finding", "findings") + "."
	}
	return "Every term that decides was checked and upheld."
}

type reviewData struct {
	*subject
	R         *review.Review
	Closed    bool
	WhyNot    string // why the reader cannot vote at all
	WhyAdmit  string // why they cannot vote admit
	Form      voteForm
	Events    []event
	MoreLog   bool
	Old       *review.Screening // the submission that this one took the place of
	Action    string            // where the excerpts form goes
	Here      string            // this page without a part
	Notice    string
	MayAsk    bool
	Claimed   bool   // by the reader
	Floor     string // what an admit has to state facts for
	CiteTerms []screening.EffectiveFinding
}

// voteForm is what was typed, kept over an error.
type voteForm struct {
	Vote, Reason string
	Facts        string // one per line: a pointer and its value
	Note, About  string // a comment or question, and which of the two
	Terms        []string
	Errors       []formError
}

// formError says what is wrong with a field of a form.
type formError struct{ Field, Say string }

// For gives what is wrong with one field.
func (f voteForm) For(field string) string {
	for _, e := range f.Errors {
		if e.Field == field {
			return e.Say
		}
	}
	return ""
}

// Cites reports whether a term was ticked.
func (f voteForm) Cites(term string) bool { return slices.Contains(f.Terms, term) }

func (c *Console) review(w http.ResponseWriter, r *http.Request, v *visit) error {
	notice := notices[r.URL.Query().Get("done")]
	return c.showReview(w, r, v, http.StatusOK, voteForm{}, notice, false)
}

func (c *Console) reviewExcerpts(w http.ResponseWriter, r *http.Request, v *visit) error {
	return c.showReview(w, r, v, http.StatusOK, voteForm{}, "", true)
}

func (c *Console) showReview(w http.ResponseWriter, r *http.Request, v *visit, status int, form voteForm, notice string, reveal bool) error {
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	rv, err := c.desk.Review(r.Context(), v.Principal, id)
	if err != nil {
		return err
	}
	from, err := number(r, "from")
	if err != nil {
		return err
	}
	x, err := c.lay(r, v, rv.Screening, from, reveal)
	if err == nil {
		err = c.explain(r, v, x)
	}
	if err != nil {
		return err
	}
	if reveal {
		if err := c.openExcerpts(r, v, x); err != nil {
			return err
		}
	}
	d := reviewData{subject: x, R: rv, Closed: rv.ClosedAt != nil || rv.State == review.Expired, Form: form, Notice: notice,
		Here: "/console/reviews/" + id, Action: "/console/reviews/" + id + "/excerpts"}
	ballot, err := c.desk.Ballot(r.Context(), v.Principal, rv)
	if err != nil {
		return err
	}
	d.MayAsk = ballot.Ask == nil
	if ballot.Floor != nil {
		d.Floor = whyNot(ballot.Floor)
	}
	for _, p := range rv.Panels {
		d.Claimed = d.Claimed || p.ClaimedBy == v.person
	}
	if ballot.Block != nil {
		d.WhyNot = whyNot(ballot.Block)
	} else if ballot.Admit != nil {
		d.WhyAdmit = whyNot(ballot.Admit)
	}
	for _, cause := range x.D.Causes {
		if cause.Effect >= screening.Escalate && len(d.CiteTerms) < 2*mostFindings {
			d.CiteTerms = append(d.CiteTerms, cause)
		}
	}
	if len(d.CiteTerms) == 1 && form.Vote == "" {
		d.Form.Terms = []string{d.CiteTerms[0].Term}
	}
	if d.Events, d.MoreLog, err = c.events(r, v, rv.Screening.ID, 0, 12); err != nil {
		return err
	}
	d.Old, err = c.desk.Superseded(r.Context(), v.Principal, rv.Screening)
	if err != nil && !errors.Is(err, review.ErrNotFound) {
		return err
	}
	return c.render(w, r, v, status, "review", "Review of "+cut(60, rv.Screening.RunRef), d)
}

// openExcerpts counts that excerpts are shown, before they are.
func (c *Console) openExcerpts(r *http.Request, v *visit, x *subject) (err error) {
	if x.View.Harm == 0 {
		return nil
	}
	x.Exposure, err = c.desk.OpenExcerpts(r.Context(), v.Principal, x.S, x.View.Harm)
	return err
}

// whyNot says why somebody cannot vote.
func whyNot(err error) string {
	var refused *review.VoteError
	switch {
	case errors.As(err, &refused):
		return sentence(refused.Reason)
	case errors.Is(err, review.ErrNotAllowed):
		return "Your session may read reviews and not vote: it lacks the scope review."
	}
	return "A vote is not possible now."
}

// sentence makes a reason of the Desk the beginning of one.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// vote casts what the form says. What is wrong is said in the form, which keeps what was typed.
func (c *Console) vote(w http.ResponseWriter, r *http.Request, v *visit) error {
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	form := voteForm{Vote: r.PostForm.Get("vote"), Reason: r.PostForm.Get("reason"), Terms: r.PostForm["terms"],
		Facts: r.PostForm.Get("facts")}
	version, err := strconv.Atoi(r.PostForm.Get("expected_version"))
	if err != nil {
		return errForm
	}
	digest, err := screening.ParseDigest256(r.PostForm.Get("spec_sha256"))
	if err != nil {
		return errForm
	}
	stated, ok := statedFacts(form.Facts)
	if !ok {
		form.Errors = []formError{{"facts", "Write one fact per line: a place of the spec, a space, and a JSON value."}}
		return c.showReview(w, r, v, http.StatusUnprocessableEntity, form, "", false)
	}
	form.Reason = strings.ReplaceAll(form.Reason, "\r\n", "\n") // as it was typed, not as forms send it
	_, err = c.desk.Vote(r.Context(), v.Principal, id, review.VoteRequest{ExpectedVersion: version, SpecSHA256: digest,
		Choice: review.Choice(form.Vote), Reason: form.Reason, Terms: form.Terms, Facts: stated})
	return c.answered(w, r, v, form, err, "vote")
}

// answered leads on when an act was kept; else it says what was wrong in the form.
func (c *Console) answered(w http.ResponseWriter, r *http.Request, v *visit, form voteForm, err error, done string) error {
	var invalid *screening.InvalidError
	var refused *review.VoteError
	status := http.StatusSeeOther
	switch {
	case err == nil:
		return seeOther(w, r, "/console/reviews/"+r.PathValue("id")+"?done="+done)
	case errors.As(err, &invalid):
		status = http.StatusUnprocessableEntity
		for _, p := range invalid.Problems {
			form.Errors = append(form.Errors, fieldError(p))
		}
	case errors.As(err, &refused) && errors.Is(err, review.ErrNotAllowed):
		status = http.StatusForbidden
		form.Errors = []formError{{"", sentence(refused.Reason)}}
	case errors.As(err, &refused):
		status = http.StatusConflict
		form.Errors = []formError{{"", sentence(refused.Reason) + " This page shows it as it is now; what you typed is kept below."}}
	default:
		return err
	}
	return c.showReview(w, r, v, status, form, "", false)
}

// act takes the small forms of a review: claim, release, comment, ask.
func (c *Console) act(w http.ResponseWriter, r *http.Request, v *visit) error {
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	about := r.PathValue("act")
	form := voteForm{About: about, Note: strings.ReplaceAll(r.PostForm.Get("note"), "\r\n", "\n")}
	var err error
	switch about {
	case "claim":
		_, err = c.desk.Claim(r.Context(), v.Principal, id, 0)
	case "release":
		_, err = c.desk.Release(r.Context(), v.Principal, id, 0)
	case "comment":
		_, err = c.desk.Comment(r.Context(), v.Principal, id, 0, form.Note)
	case "ask":
		version, verr := strconv.Atoi(r.PostForm.Get("expected_version"))
		if verr != nil || version < 1 {
			return errForm
		}
		_, err = c.desk.Ask(r.Context(), v.Principal, id, version, form.Note)
	default:
		return review.ErrNotFound
	}
	return c.answered(w, r, v, form, err, about)
}

// notices say what was kept, after a form.
var notices = map[string]string{"vote": "Your vote is kept.", "claim": "Others see for half an hour that you look at this.",
	"release": "Your claim is given back.", "comment": "Your comment is kept.", "ask": "The submitter is asked; the review waits for the answer."}

// statedFacts reads facts, one per line: a pointer, a space and a JSON value.
func statedFacts(text string) (facts []review.Fact, ok bool) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		pointer, value, found := strings.Cut(line, " ")
		if v := jsontext.Value(strings.TrimSpace(value)); found && strings.HasPrefix(pointer, "/") && v.IsValid() {
			facts = append(facts, review.Fact{Pointer: pointer, Value: v})
		} else {
			return nil, false
		}
	}
	return facts, true
}

func fieldError(p screening.Problem) formError {
	switch {
	case p.Pointer == "/vote":
		return formError{"vote", "Choose admit or block."}
	case p.Pointer == "/reason":
		return formError{"reason", "The reason " + p.Detail + "."}
	case p.Pointer == "/terms":
		return formError{"terms", "The vote " + p.Detail + "."}
	case strings.HasPrefix(p.Pointer, "/terms/"):
		return formError{"terms", "A ticked term " + p.Detail + "."}
	}
	if strings.HasPrefix(p.Pointer, "/facts") {
		return formError{"facts", "A fact " + p.Detail + "."}
	}
	return formError{"", "The text " + p.Detail + "."}
}

// number reads a parameter that counts something; 0 when it is not given.
func number(r *http.Request, name string) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<21 {
		return 0, errAddress
	}
	return n, nil
}

type diffData struct {
	Old, New         *review.Screening
	OldSpec, NewSpec *subject
	Hunks            []shownHunk
	Came, Went       int
	TooMany, Cut     bool
	Back             string
}

type shownHunk struct {
	Skipped int
	Lines   []shownEdit
}

type shownEdit struct {
	Kind string // "same", "gone" or "new"
	Line template.HTML
}

// diff compares the spec under review with the one whose place it took, as the
// gate read them: line breaks and the form of the document do not count.
func (c *Console) diff(w http.ResponseWriter, r *http.Request, v *visit) error {
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	rv, err := c.desk.Review(r.Context(), v.Principal, id)
	if err != nil {
		return err
	}
	old, err := c.desk.Superseded(r.Context(), v.Principal, rv.Screening)
	if err != nil {
		return err
	}
	d := diffData{Old: old, New: rv.Screening, Back: "/console/reviews/" + id}
	if d.OldSpec, err = c.lay(r, v, old, 0, false); err != nil {
		return err
	}
	if d.NewSpec, err = c.lay(r, v, rv.Screening, 0, false); err != nil {
		return err
	}
	edits, ok := diffLines(d.OldSpec.View.Lines, d.NewSpec.View.Lines)
	d.TooMany = !ok
	size := 0
	for _, e := range edits {
		switch e.kind {
		case '+':
			d.Came++
		case '-':
			d.Went++
		}
	}
	for _, h := range hunks(edits, 3) {
		shown := shownHunk{Skipped: h.Skipped}
		for _, e := range h.Edits {
			html := e.line.code(false)
			if size += len(html); size > 2*pageBytes {
				d.Cut = true
				break
			}
			shown.Lines = append(shown.Lines, shownEdit{map[byte]string{' ': "same", '-': "gone", '+': "new"}[e.kind], html})
		}
		if len(shown.Lines) > 0 {
			d.Hunks = append(d.Hunks, shown)
		}
		if d.Cut {
			break
		}
	}
	return c.render(w, r, v, http.StatusOK, "diff", "What changed", d)
}
