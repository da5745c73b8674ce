package screening

import (
	"slices"
	"strings"

	"golang.org/x/text/cases"
)

const refusalPrefix = "I cannot proceed — boundary violated: "

// Refusal is the typed refusal for the source-tagged ids of the violated block
// terms ("safety:<id>", "ethics:<id>"), "" when there are none.
func Refusal(tagged []string) string {
	if len(tagged) == 0 {
		return ""
	}
	return refusalPrefix + strings.Join(slices.Sorted(slices.Values(tagged)), ", ")
}

// InjectHedge puts hedge before a statement, once: a statement that starts with
// it already, compared after full case folding, stays as it is.
func InjectHedge(hedge, statement string) string {
	fold := cases.Fold()
	if hedge == "" || statement == "" || strings.HasPrefix(fold.String(statement), fold.String(hedge)) {
		return statement
	}
	return hedge + " " + statement
}
