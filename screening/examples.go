package screening

import (
	"fmt"
	"strconv"
)

// defaultMaxHitShare is the share of training examples that may look like an
// identity override before a person has to look: rulesets are not perfect.
const defaultMaxHitShare = 0.005

// examplesNode is {examples: {max_hit_share: 0.005}}: too large a share of the
// training examples tries to change who the model is.
type examplesNode struct {
	MaxHitShare *float64 `json:"max_hit_share"` // between 0 and 1; default 0.005
}

// examplesClause reads what the submitter says the screening of the examples
// gave. The counts are the submitter's claim, and the evidence says so.
type examplesClause struct{ maxShare float64 }

func (c *compiler) examples(n *examplesNode, at string) clause {
	share := defaultMaxHitShare
	if n.MaxHitShare != nil {
		share = *n.MaxHitShare
	}
	if share < 0 || share >= 1 {
		return c.bad(at+"/max_hit_share", "must be at least 0 and below 1")
	}
	if !c.perSpec() {
		return c.bad(at, "belongs to the spec as a whole; leave out over")
	}
	return examplesClause{share}
}

func (c examplesClause) value(e *evaluation, _ int) value {
	switch x := e.spec.Evidence.Examples; {
	case x == nil || x.Count == 0:
		return silent
	case float64(x.Hits) > c.maxShare*float64(x.Count):
		return yesValue
	}
	return no
}

func (c examplesClause) explain(e *evaluation, input int, x *explanation) {
	const at = "/evidence/examples"
	v := e.spec.Evidence.Examples
	if v == nil || v.Count == 0 {
		x.because("the training examples were not screened")
		x.open = [][]Statement{{{Pointer: at, Say: "weir check --examples FILE fills it in"}}}
		return
	}
	why := fmt.Sprintf("%d of %d training examples look like an identity override, by the submitter's count", v.Hits, v.Count)
	if c.value(e, input) == yesValue {
		why += fmt.Sprintf("; that is more than %s %%", strconv.FormatFloat(c.maxShare*100, 'g', 4, 64))
	}
	x.because(why,
		Evidence{Name: "examples.hits (claimed)", Value: strconv.FormatInt(v.Hits, 10), Pointer: at + "/hits"},
		Evidence{Name: "examples.count (claimed)", Value: strconv.FormatInt(v.Count, 10), Pointer: at + "/count"},
		Evidence{Name: "examples.sha256 (claimed)", Value: v.SHA256, Pointer: at + "/sha256"})
}

// records: hits below the share are kept with the finding all the same.
func (c examplesClause) records() {}
