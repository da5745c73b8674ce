package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"weir/review"
	"weir/screening"
)

// maxMessage bounds status.message in bytes: it is printed in terminals, events and logs.
const maxMessage = 400

const speaker = "weir: "

// refusal is a reason that may be told as it is: it echoes nothing of the object.
type refusal string

func (r refusal) Error() string { return string(r) }

func invalid(message string) answer { return answer{result: Invalid, message: message} }

func unavailable() answer {
	return answer{result: Unavailable, message: "no answer: nothing is known about this run, so it may not start; try again"}
}

// refuse turns any error into a refusal. One that is not known, or says that nothing
// is known, goes to the log and not to the caller.
func refuse(err error) answer {
	var said refusal
	var bad *screening.InvalidError
	switch {
	case errors.As(err, &said):
		return invalid(string(said))
	case errors.As(err, &bad):
		return invalid(invalidWords(bad, false)) // lines would be those of the form that is screened
	case errors.Is(err, review.ErrRunRefTaken):
		return answer{result: Closed, message: "the run_ref of the training spec belongs to a run of somebody else that is open or admitted; use another"}
	case errors.Is(err, review.ErrReviewExpired):
		return answer{result: Closed, message: "the review of this run expired; a reviewer has to reopen it, or change the training spec"}
	case errors.Is(err, review.ErrNotAllowed):
		return answer{result: Closed, message: "the service of this hook may not submit; see --hooks-service and people.yaml of the gate"}
	}
	a := unavailable()
	a.err = err
	return a
}

// invalidWords names the first problem. The details of problems never hold
// submitted values; pointers may, and then are left out.
func invalidWords(e *screening.InvalidError, lines bool) string {
	var b strings.Builder
	b.WriteString("the training spec in the annotation " + SpecAnnotation + " is not valid")
	for i, p := range e.Problems {
		if i == 2 {
			fmt.Fprintf(&b, "; and %d more, see weir check --offline", len(e.Problems)-i)
			break
		}
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		if plainPointer(p.Pointer) {
			b.WriteString(p.Pointer + " ")
		}
		b.WriteString(cut(p.Detail, 120))
		if lines && p.Line > 0 {
			fmt.Fprintf(&b, " (line %d)", p.Line)
		}
	}
	return b.String()
}

// plainPointer reports whether a pointer can be shown: short, and of letters that do nothing.
func plainPointer(p string) bool {
	if p == "" || len(p) > 80 {
		return false
	}
	for i := range len(p) {
		c := p[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/_-~", c) >= 0) {
			return false
		}
	}
	return true
}

// gateAnswer tells of a kept screening.
func (h *Handler) gateAnswer(gate review.Answer) answer {
	s := gate.Screening
	a := answer{screening: s.ID, spec: s.SpecSHA256}
	if gate.Open() && s.AdmittedUntil != nil {
		a.allowed, a.result = true, Admitted
		return a
	}
	var d screening.Decision
	if err := json.Unmarshal(s.Decision, &d); err != nil {
		d = screening.Decision{} // the status says enough
	}
	switch gate.Status {
	case review.StatusBlocked:
		a.result = Blocked
		a.message = "blocked" + causes(&d, review.StatusBlocked, s.DecidedBy)
	case review.StatusPending:
		a.result = Pending
		a.message = "people have to decide first" + causes(&d, review.StatusPending, "") + missing(&d)
		if s.Review != nil {
			a.message += ". Due " + s.Review.DueAt.UTC().Format("2006-01-02 15:04") + " UTC; create it again when they have decided"
		}
	default:
		a.result = Closed
		a.message = "not admitted: " + string(gate.Status)
	}
	if s.DecidedBy == review.ByRecall {
		a.message = string(gate.Status) + recalled(s.Recall)
	}
	where := h.where(s.ID) // the last thing to be cut off
	a.message = cut(a.message, maxMessage-len(where)-len(speaker)) + where
	return a
}

// recalled says which recall stands in the way. Its reason is for who may read it.
func recalled(r *review.RecallRef) string {
	said := ": data that this run comes from was recalled"
	if r != nil {
		said += " (recall " + r.ID + ")"
	}
	return said
}

func (h *Handler) previewAnswer(d *screening.Decision) answer {
	a := answer{spec: d.SpecSHA256}
	switch d.Outcome {
	case screening.OutcomeAdmit:
		a.allowed, a.result = true, Admitted
	case screening.OutcomeBlock:
		a.result, a.message = Blocked, "would be blocked"+causes(d, review.StatusBlocked, review.ByPacks)
	default:
		a.result, a.message = Pending, "people would have to decide first"+causes(d, review.StatusPending, "")+missing(d)
	}
	return a
}

// causes names the terms that decided; their ids are the packs', not the submitter's.
func causes(d *screening.Decision, status review.Status, by review.Decider) string {
	if status == review.StatusBlocked && by == review.ByPeople {
		return " by a reviewer"
	}
	const most = 4
	var terms []string
	for _, c := range d.Causes {
		if status == review.StatusBlocked && c.Effect == screening.Block || status != review.StatusBlocked && c.Effect == screening.Escalate {
			terms = append(terms, c.Term)
		}
	}
	switch {
	case len(terms) == 0 && d.NoPolicyMatched:
		return ": no policy matched"
	case len(terms) == 0:
		return ""
	case len(terms) > most:
		return fmt.Sprintf(": %s and %d more", strings.Join(terms[:most], ", "), len(terms)-most)
	}
	return ": " + strings.Join(terms, ", ")
}

// missing names where a statement would decide what is open.
func missing(d *screening.Decision) string {
	const most = 3
	var at []string
	for _, m := range d.Missing {
		if plainPointer(m.Pointer) {
			at = append(at, m.Pointer)
		}
	}
	switch {
	case len(at) == 0:
		return ""
	case len(d.Missing) > most:
		return fmt.Sprintf(". Not stated: %s and %d more", strings.Join(at[:min(most, len(at))], ", "), len(d.Missing)-min(most, len(at)))
	}
	return ". Not stated: " + strings.Join(at, ", ")
}

// where says where the whole answer is.
func (h *Handler) where(id string) string {
	if h.cfg.BaseURL != "" {
		return ". See weir explain " + id + " or " + strings.TrimSuffix(h.cfg.BaseURL, "/") + "/v1/screenings/" + id
	}
	return ". See weir explain " + id
}

// warnings tell, beside the answer, what the answer does not cover.
func warnings(o *object) (w []string) {
	loose := 0
	for _, p := range o.programs {
		if _, pinned := imageDigest(p.Image); p.Image != "" && !pinned {
			loose++
		}
	}
	if loose > 0 {
		w = append(w, fmt.Sprintf("weir: %d of this object's images have no @sha256 digest: what runs may be another image than was screened", loose))
	}
	for _, at := range o.elsewhere {
		w = append(w, "weir: "+cut(at, 60)+" names something that runs and that was not screened with this object")
	}
	return w
}

// response is the answer on the wire.
func (a *answer) response(uid string) *admissionResponse {
	r := &admissionResponse{UID: uid, Allowed: a.allowed, Warnings: a.warnings, AuditAnnotations: map[string]string{"result": string(a.result)}}
	if a.screening != "" {
		r.AuditAnnotations["screening"] = a.screening
	}
	if !a.spec.IsZero() {
		r.AuditAnnotations["spec-sha256"] = a.spec.String()
	}
	if a.allowed {
		return r
	}
	// Not 409 for what people have to decide: clients repeat a Conflict by themselves.
	code, reason := http.StatusForbidden, "Forbidden"
	switch a.result {
	case Invalid:
		code, reason = http.StatusUnprocessableEntity, "Invalid"
	case Blocked, Pending, Closed:
	default:
		code, reason = http.StatusServiceUnavailable, "ServiceUnavailable"
	}
	r.Status = &wireStatus{Status: "Failure", Message: cut(speaker+a.message, maxMessage), Reason: reason, Code: code}
	return r
}

// cut shortens a text to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	n -= len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}
