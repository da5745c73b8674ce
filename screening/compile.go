package screening

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// clauseNode is a clause as a pack writes it: exactly one of its forms.
type clauseNode struct {
	All        []clauseNode      `json:"all,omitzero"`
	Any        []clauseNode      `json:"any,omitzero"`
	Not        *clauseNode       `json:"not,omitzero"`
	Tag        map[string]string `json:"tag,omitzero"`        // tag → present or absent; several = all of them
	Fact       string            `json:"fact,omitzero"`       // with has or any_of
	Has        string            `json:"has,omitzero"`        // the fact has this value
	AnyOf      []string          `json:"any_of,omitzero"`     // the fact has one of these values
	Phrases    []string          `json:"phrases,omitzero"`    // a text of the spec names one of these
	Obfuscated bool              `json:"obfuscated,omitzero"` // a text hides itself from matching
	Examples   *examplesNode     `json:"examples,omitzero"`   // the screening of the training examples
	CEL        string            `json:"cel,omitzero"`
}

// compiler turns the clauses of one term into code and collects what is wrong.
type compiler struct {
	term     *Term
	safety   bool
	phrases  []string // all phrases met so far, over all terms
	problems problems
}

func (c *compiler) bad(at, format string, args ...any) clause {
	c.problems.add(at, "term %s: %s", c.term.ID, fmt.Sprintf(format, args...))
	return allOf{}
}

func (c *compiler) perSpec() bool { return len(c.term.Over) == 0 }

func (c *compiler) compile(n *clauseNode, at string) clause {
	forms := 0
	for _, given := range []bool{n.All != nil, n.Any != nil, n.Not != nil, n.Tag != nil, n.Fact != "", n.Phrases != nil, n.Obfuscated, n.Examples != nil, n.CEL != ""} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		return c.bad(at, "a clause is exactly one of all, any, not, tag, fact, phrases, obfuscated, examples, cel")
	}
	if n.Fact == "" && (n.Has != "" || n.AnyOf != nil) {
		return c.bad(at, "has and any_of go with fact")
	}
	switch {
	case n.All != nil:
		return allOf(c.parts(n.All, at+"/all"))
	case n.Any != nil:
		return anyOf(c.parts(n.Any, at+"/any"))
	case n.Not != nil:
		if c.safety && n.Not.mentions(func(n *clauseNode) bool { return n.Phrases != nil || n.Obfuscated }) {
			return c.bad(at+"/not", "what no text says is not a structured fact, and only those violate a safety term")
		}
		return notOf{c.compile(n.Not, at+"/not")}
	case n.Tag != nil:
		return c.tag(n.Tag, at+"/tag")
	case n.Fact != "":
		return c.fact(n, at)
	case n.Phrases != nil:
		return c.phrase(n.Phrases, at+"/phrases")
	case n.Examples != nil:
		return c.examples(n.Examples, at+"/examples")
	case n.Obfuscated:
		return obfuscationClause{safety: c.safety}
	default:
		compiled, err := compileCEL(n.CEL, c.perSpec())
		if err != nil {
			return c.bad(at+"/cel", "the expression %v", err)
		}
		return compiled
	}
}

func (c *compiler) parts(nodes []clauseNode, at string) []clause {
	if len(nodes) == 0 {
		c.bad(at, "must not be empty")
	}
	parts := make([]clause, len(nodes))
	for i := range nodes {
		parts[i] = c.compile(&nodes[i], at+"/"+strconv.Itoa(i))
	}
	return parts
}

func (c *compiler) tag(wanted map[string]string, at string) clause {
	if len(wanted) == 0 {
		return c.bad(at, "must name a tag")
	}
	var parts allOf
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		ti, ok := tagIndex[name]
		if !ok {
			return c.bad(at+"/"+escapePointer(name), "is not a disclosure tag; see docs/spec.md for the list")
		}
		state := stateOf(wanted[name])
		if wanted[name] != "present" && wanted[name] != "absent" {
			return c.bad(at+"/"+name, "must be present or absent: what is not known is never a violation")
		}
		parts = append(parts, tagClause{tag: ti, want: state})
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return parts
}

func (c *compiler) fact(n *clauseNode, at string) clause {
	col, ok := resolveFact(n.Fact, c.perSpec())
	if !ok {
		if c.perSpec() {
			return c.bad(at+"/fact", "is not a fact of the spec; name the input kinds in over to use facts of inputs, and see docs/packs.md for the list")
		}
		return c.bad(at+"/fact", "is not a fact of an input; facts of the spec are written spec.NAME, see docs/packs.md for the list")
	}
	want := n.AnyOf
	if n.Has != "" {
		if want != nil {
			return c.bad(at, "give has or any_of, not both")
		}
		want = []string{n.Has}
	}
	if len(want) == 0 {
		return c.bad(at, "a fact needs has or any_of")
	}
	def := &factDefs[col]
	for _, w := range want {
		if def.codes != nil && !slices.Contains(def.codes, w) {
			return c.bad(at, "asks %s for a value it never has; it has %s", n.Fact, oneOf(def.codes))
		}
	}
	return factClause{col: col, want: want, codes: codesOf(def.codes, want...)}
}

func (c *compiler) phrase(texts []string, at string) clause {
	if len(texts) == 0 {
		return c.bad(at, "must not be empty")
	}
	for i, text := range texts {
		if _, err := newPhraseMatcher([]string{text}); err != nil {
			return c.bad(at+"/"+strconv.Itoa(i), "cannot be matched: %v", err)
		}
	}
	first := len(c.phrases)
	c.phrases = append(c.phrases, texts...)
	return phraseClause{texts: texts, first: first, safety: c.safety}
}
