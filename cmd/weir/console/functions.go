package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"weir/review"
	"weir/screening"
)

// functions are what templates can do beside showing.
var functions = template.FuncMap{
	"visible": visible,
	"cut":     cut,
	"count":   count,
	"grouped": grouped,
	"short":   func(id string) string { return id[:min(8, len(id))] },
	"time":    func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"span":    span,
	"until":   func(t, now time.Time) string { return span(t.Sub(now)) },
	"soon":    func(t, now time.Time) bool { return t.Sub(now) < 24*time.Hour },
	"bare":    func(tagged string) string { _, id, _ := strings.Cut(tagged, ":"); return id },
	"layer":   func(tagged string) string { layer, _, _ := strings.Cut(tagged, ":"); return layer },
	"termURL": termURL,
	"status":  statusWord,
	"state":   stateWord,
	"join":    strings.Join,
	"way":     way,
	"add":     func(a, b int) int { return a + b },
	"minus":   func(n int) int { return -n },
	"max":     func(a, b int) int { return max(a, b) },
	// SVG text holds no elements; what cannot be seen is escaped instead.
	"visibleText": func(s string) string { return strings.Trim(strconv.QuoteToGraphic(s), `"`) },
	"menu": func(here, url, name string) choice {
		return choice{name, url, here == url || strings.HasPrefix(here, url+"/")}
	},
}

func termURL(tagged string) string {
	layer, id, _ := strings.Cut(tagged, ":")
	return "/console/vocabulary/" + layer + "/" + id
}

// span says a duration roughly: the two units that matter.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return span(-d) + " ago"
	case d < time.Minute:
		return "under 1 min"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if m == 0 || h >= 6 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	}
	days, h := int(d.Hours())/24, int(d.Hours())%24
	if h == 0 || days >= 3 {
		return count(days, "day", "days")
	}
	return fmt.Sprintf("%s %d h", count(days, "day", "days"), h)
}

// statusWord is a screening's status as people say it.
func statusWord(s review.Status) string {
	if s == review.StatusPending {
		return "escalated"
	}
	return string(s)
}

// stateWord is how a review stands, with its outcome.
func stateWord(s review.State, outcome review.Choice) string {
	switch {
	case outcome == review.VoteAdmit:
		return "admitted"
	case outcome == review.VoteBlock:
		return "blocked"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

var causeWords = map[screening.Cause]string{
	screening.CauseNoEvidence:  "not stated",
	screening.CauseHint:        "hinted at",
	screening.CauseStructural:  "not visible in a spec",
	screening.CauseNoPredicate: "nothing checks it",
	screening.CauseError:       "the check failed",
}
