package screening

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Vocabulary is the declared harm vocabulary in force: packs compiled together,
// immutable, safe for concurrent use.
type Vocabulary struct {
	packs   []compiledPack // in lexical order of id
	matcher *phraseMatcher // nil when no pack has phrases
	cfg     VocabularyConfig
	hedges  bool      // some term can ask for a hedge
	scratch sync.Pool // *evaluation
}

// VocabularyConfig is how a deployment uses its packs.
type VocabularyConfig struct {
	// AuditOnly admits although no ethics term that decides anything was
	// checkable. Allowed only when every ethics term observes. The floor still decides.
	AuditOnly bool
	// Unratified marks every decision as made with packs that are not in force.
	// For development.
	Unratified bool
}

// PackRef names a pack exactly.
type PackRef struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Layer   Layer     `json:"layer"`
	SHA256  Digest256 `json:"sha256"`
}

type compiledPack struct {
	*Pack
	terms []compiledTerm
}

type compiledTerm struct {
	*Term
	clause    clause
	predicate Predicate
	over      kindSet                               // of Term.Over
	ifStated  kindSet                               // of Term.IfStated
	tags      tagSet                                // that the clause speaks of
	effects   [int(resultOpen) + numCauses]Response // by result; 0 = none
	keeps     bool                                  // its evidence belongs in the record even when it is upheld
	decides   bool                                  // an ethics term with a response other than observe
}

func newCompiledTerm(t *Term, layer Layer) compiledTerm {
	c := compiledTerm{Term: t, decides: layer == Ethics && t.Response != Observe}
	for _, kind := range t.Over {
		c.over |= kindOf(kind)
	}
	for _, kind := range t.IfStated {
		c.ifStated |= kindOf(kind)
	}
	t.ViolatedIf.mentions(func(n *clauseNode) bool {
		for name := range n.Tag {
			if ti, ok := tagIndex[name]; ok {
				c.tags |= 1 << ti
			}
		}
		return false // go on
	})
	c.effects[resultViolated] = t.Response
	for _, cause := range causes {
		c.effects[openFor(cause)] = t.unchecked(cause)
	}
	return c
}

// NewVocabulary compiles packs, in any order. It refuses a set without the
// shipped floor, with two packs or terms of one id, or that hedges without a text.
func NewVocabulary(reg *Registry, cfg VocabularyConfig, packs ...*Pack) (*Vocabulary, error) {
	v := &Vocabulary{cfg: cfg}
	sorted := slices.SortedFunc(slices.Values(packs), func(a, b *Pack) int { return cmp.Compare(a.ID, b.ID) })
	owner := map[string]string{} // term → pack
	floor := false
	var phrases []string
	for i, p := range sorted {
		if i > 0 && sorted[i-1].ID == p.ID {
			return nil, fmt.Errorf("pack %s is given twice", p.ID)
		}
		floor = floor || p.ID == FloorID && p.Layer == Safety
		cp := compiledPack{Pack: p, terms: make([]compiledTerm, len(p.Terms))}
		for j := range p.Terms {
			t := &p.Terms[j]
			if other, dup := owner[t.ID]; dup {
				return nil, fmt.Errorf("term %s is declared by pack %s and pack %s; rename one", t.ID, other, p.ID)
			}
			owner[t.ID] = p.ID
			if p.Layer == Ethics && cfg.AuditOnly && t.Response != Observe {
				return nil, fmt.Errorf("audit-only needs every ethics term to observe, but %s of pack %s has response %s", t.ID, p.ID, t.Response)
			}
			if t.hedges() {
				v.hedges = true
				if p.HedgeText() == "" {
					return nil, fmt.Errorf("pack %s: term %s hedges, but the pack has neither preferred_hedge_soft nor preferred_hedge_strong", p.ID, t.ID)
				}
			}
			ct := newCompiledTerm(t, p.Layer)
			if t.Predicate != "" {
				if ct.predicate = reg.predicates[t.Predicate]; ct.predicate == nil {
					return nil, fmt.Errorf("pack %s: term %s names predicate %s, which is not registered", p.ID, t.ID, t.Predicate)
				}
			}
			if t.ViolatedIf != nil {
				c := compiler{term: t, safety: p.Layer == Safety, phrases: phrases}
				ct.clause = c.compile(t.ViolatedIf, "")
				_, ct.keeps = ct.clause.(recorder)
				phrases = c.phrases
				if err := c.problems.invalid("pack", p.ID, nil); err != nil {
					return nil, err
				}
			}
			cp.terms[j] = ct
		}
		v.packs = append(v.packs, cp)
	}
	if !floor {
		return nil, errors.New("the pack " + FloorID + " is missing; it is always in force")
	}
	if len(phrases) > 0 || v.readsText() {
		m, err := newPhraseMatcher(phrases)
		if err != nil {
			return nil, fmt.Errorf("phrases of the packs: %w", err)
		}
		v.matcher = m
	}
	return v, nil
}

// readsText reports whether any term looks at obfuscation, which needs the texts even without phrases.
func (v *Vocabulary) readsText() bool {
	for _, p := range v.packs {
		for _, t := range p.terms {
			if t.ViolatedIf.mentions(func(n *clauseNode) bool { return n.Obfuscated }) {
				return true
			}
		}
	}
	return false
}

// mentions reports whether the clause or a part of it meets want.
func (n *clauseNode) mentions(want func(*clauseNode) bool) bool {
	if n == nil {
		return false
	}
	part := func(c clauseNode) bool { return c.mentions(want) }
	return want(n) || slices.ContainsFunc(n.All, part) || slices.ContainsFunc(n.Any, part) || n.Not.mentions(want)
}

// Packs names the packs, in lexical order of id.
func (v *Vocabulary) Packs() []PackRef {
	refs := make([]PackRef, len(v.packs))
	for i, p := range v.packs {
		refs[i] = PackRef{p.ID, p.Version, p.Layer, p.SHA256}
	}
	return refs
}

// Pack gives a loaded pack by id.
func (v *Vocabulary) Pack(id string) (*Pack, bool) {
	for _, p := range v.packs {
		if p.ID == id {
			return p.Pack, true
		}
	}
	return nil, false
}

// Term finds the term that a decision or a vote cites as "layer:id".
func (v *Vocabulary) Term(tagged string) (*Term, bool) {
	for _, p := range v.packs {
		for _, t := range p.terms {
			if tagID(p.Layer, t.ID) == tagged {
				return t.Term, true
			}
		}
	}
	return nil, false
}

// Config is how the vocabulary was set up.
func (v *Vocabulary) Config() VocabularyConfig { return v.cfg }

func tagID(layer Layer, term string) string { return string(layer) + ":" + term }
