package screening

import (
	"math"
	"sync"
)

// PhraseMatcher finds phrases in a text as terms find theirs in a spec, for
// tools that have a text and no spec. It is safe for concurrent use.
type PhraseMatcher struct{ m *phraseMatcher }

// PhraseConfig says how phrases are looked for.
type PhraseConfig struct {
	// Plain finds phrases only as they are written, in any case and with or
	// without marks: no lookalikes, no digits for letters, no spelled-out words.
	Plain bool
	// AllHits reports every hit. By default, of each phrase the first 64 are.
	AllHits bool
}

// PhraseHit is one occurrence of a phrase. Hits overlap where phrases do.
type PhraseHit struct {
	Phrase     int // index into the phrases of the matcher
	Start, End int // bytes of the text, from the first to the last letter of the phrase
	Form       string
}

// NewPhraseMatcher compiles phrases, each of one to 64 words.
func NewPhraseMatcher(phrases []string, cfg PhraseConfig) (*PhraseMatcher, error) {
	m, err := newPhraseMatcher(phrases)
	if err != nil {
		return nil, err
	}
	if cfg.Plain {
		m.plain, m.scratch = true, sync.Pool{New: m.scratch.New}
	}
	if cfg.AllHits {
		m.hitLimit = math.MaxInt
	}
	return &PhraseMatcher{m}, nil
}

// Find gives the hits in a text in order of start, phrase and end.
func (p *PhraseMatcher) Find(text string) []PhraseHit {
	found := p.m.find([]textField{{text: text}}).hits
	if len(found) == 0 {
		return nil
	}
	hits := make([]PhraseHit, len(found))
	for i, h := range found {
		hits[i] = PhraseHit{h.phrase, h.start, h.end, h.form.String()}
	}
	return hits
}
