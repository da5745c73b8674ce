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
	refs    []PackRef      // of packs
	matcher *phraseMatcher // nil when no pack has phrases
	cfg     VocabularyConfig
	hedges  bool      // some term can ask for a hedge
	dated   bool      // some term is in force on some days only
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
	plain []*Finding // of terms
}

type compiledTerm struct {
	*Term
	clause    clause
	predicate Predicate
	over      kindSet  // of Term.Over
	ifStated  kindSet  // of Term.IfStated
	tags      tagSet   // that the clause speaks of
	effects   effects  // by result
	raising   *raising // by profiles; nil when none raises it
	hedger    *Pack    // whose text it hedges with; nil when it never does
	keeps     bool     // its evidence belongs in the record even when it is upheld
	decides   bool     // an ethics term with a response other than observe, by what its own pack says; a profile that adds to a pledge is none
	plain     *Finding // of an answer with nothing to show
}

// effects are what a term leads to, by result; 0 = nothing.
type effects [int(resultOpen) + numCauses]Response

func effectsOf(t *Term) (e effects) {
	e[resultViolated] = t.Response
	for _, cause := range causes {
		e[openFor(cause)] = t.unchecked(cause)
	}
	return e
}

// newCompiledTerm compiles all of a term but its predicate. by is how profiles raise it.
func newCompiledTerm(p *Pack, t *Term, by []raisedTerm) compiledTerm {
	c := compiledTerm{Term: t, decides: p.Layer == Ethics && t.Response != Observe && len(p.Extends) == 0}
	if len(by) > 0 {
		c.Term, c.raising = raise(t, by)
	}
	if c.hedges() || t.hedges() {
		c.hedger = p
		for i := 0; i < len(by) && c.hedger.HedgeText() == ""; i++ {
			c.hedger = by[i].profile
		}
	}
	c.effects = effectsOf(c.Term)
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
	return c
}

// NewVocabulary compiles packs, in any order. It refuses a set without the
// shipped floor, with two packs or terms of one id, that hedges without a text, or
// with a profile whose base is missing, another, or not only made stricter.
func NewVocabulary(reg *Registry, cfg VocabularyConfig, packs ...*Pack) (*Vocabulary, error) {
	v := &Vocabulary{cfg: cfg}
	sorted := slices.SortedFunc(slices.Values(packs), func(a, b *Pack) int { return cmp.Compare(a.ID, b.ID) })
	owner := map[string]string{} // term → pack
	floor := false
	var phrases []string
	raised, err := raises(sorted)
	if err != nil {
		return nil, err
	}
	for i, p := range sorted {
		if i > 0 && sorted[i-1].ID == p.ID {
			return nil, fmt.Errorf("pack %s is given twice", p.ID)
		}
		floor = floor || p.ID == FloorID && p.Layer == Safety
		cp := compiledPack{Pack: p, terms: make([]compiledTerm, len(p.Terms)), plain: make([]*Finding, len(p.Terms))}
		for j := range p.Terms {
			ct := newCompiledTerm(p, &p.Terms[j], raised[p.Terms[j].ID])
			t := ct.Term
			if other, dup := owner[t.ID]; dup {
				return nil, fmt.Errorf("term %s is declared by pack %s and pack %s; rename one", t.ID, other, p.ID)
			}
			owner[t.ID] = p.ID
			v.dated = v.dated || t.dated()
			if p.Layer == Ethics && cfg.AuditOnly && t.Response != Observe {
				return nil, fmt.Errorf("audit-only needs every ethics term to observe, but %s of pack %s has response %s", t.ID, p.ID, t.Response)
			}
			if ct.hedger != nil {
				v.hedges = true
				if ct.hedger.HedgeText() == "" {
					return nil, fmt.Errorf("pack %s: term %s hedges, but the pack has neither preferred_hedge_soft nor preferred_hedge_strong", p.ID, t.ID)
				}
			}
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
			ct.plain = ct.plainFinding()
			cp.terms[j], cp.plain[j] = ct, ct.plain
		}
		v.packs = append(v.packs, cp)
		v.refs = append(v.refs, PackRef{p.ID, p.Version, p.Layer, p.SHA256})
	}
	if !floor {
		return nil, errors.New("the pack " + FloorID + " is missing; it is always in force")
	}
	v.refs = slices.Clip(v.refs) // decisions share it
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
func (v *Vocabulary) Packs() []PackRef { return slices.Clone(v.refs) }

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

// Tags names the disclosure tags that a term asks about, by its tagged id.
func (v *Vocabulary) Tags(tagged string) (names []string) {
	for i := range v.packs {
		for j := range v.packs[i].terms {
			t := &v.packs[i].terms[j]
			if tagID(v.packs[i].Layer, t.ID) != tagged {
				continue
			}
			for ti := range tags {
				if t.tags&(1<<ti) != 0 {
					names = append(names, tags[ti].name)
				}
			}
		}
	}
	return names
}

// IsTag reports whether name is a disclosure tag.
func IsTag(name string) bool {
	_, ok := tagIndex[name]
	return ok
}

// Config is how the vocabulary was set up.
func (v *Vocabulary) Config() VocabularyConfig { return v.cfg }

func tagID(layer Layer, term string) string { return string(layer) + ":" + term }
