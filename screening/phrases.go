package screening

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A phrase matches text in one of these forms. A phrase is a sequence of words, or of characters in scripts without
// spaces; any run of white space and punctuation separates words, but no phrase crosses the end of a sentence.
//
// Words are what they are: whether a text denies, quotes or discusses a phrase is not guessed.
type hitForm uint8

const (
	// Firm forms: the text says the phrase.
	formPlain    hitForm = iota + 1 // in the letters of the phrase, or those without its marks, in any case
	formFolded                      // after width, marks, ligatures or invisible characters were normalised away
	formSkeleton                    // to the eye: letters are replaced by lookalikes

	// Forms for phrases of at least two words and ten letters, all of scripts with an alphabet. They may be accidents
	// of spacing or numbering, so on their own they are obfuscation, which only escalates.
	formLeet     // digits or symbols stand for letters, the words are intact
	formSqueezed // words are run together or split, whatever the letters

	// A loose form for all phrases.
	formReread // where escapes or tags are resolved, or digits and sentence marks beside words are left out
)

// loose tells the forms that are no more than a reason to look.
func (f hitForm) loose() bool { return f >= formLeet }

func (f hitForm) String() string {
	switch f {
	case formPlain:
		return "plain"
	case formFolded:
		return "folded"
	case formSkeleton:
		return "skeleton"
	case formLeet:
		return "leet"
	case formSqueezed:
		return "squeezed"
	case formReread:
		return "reread"
	}
	return fmt.Sprintf("hitForm(%d)", uint8(f))
}

const (
	maxPhraseBytes = 1024
	maxPhraseWords = 64
	// Spelled-out matching needs phrases long enough not to occur by accident.
	minSpelledWords, minSpelledLetters = 2, 10
	// maxHits is how many hits of one phrase one pass over a field reports. A flood of one phrase hides no other.
	maxHits = 64
)

var (
	errPhraseEmpty    = errors.New("has no letters or digits")
	errPhraseEncoding = errors.New("is not valid UTF-8")
	errPhraseLong     = fmt.Errorf("is longer than %d bytes after normalisation or %d words", maxPhraseBytes, maxPhraseWords)
	errPhraseStop     = errors.New("spans the end of a sentence; text is matched within sentences")
)

// phraseError says which phrase a matcher cannot be built with. It does not repeat the phrase.
type phraseError struct {
	index int
	err   error
}

func (e *phraseError) Error() string { return fmt.Sprintf("phrase %d %v", e.index, e.err) }
func (e *phraseError) Unwrap() error { return e.err }

// phraseMatcher finds any number of phrases in one pass. It is immutable and safe for concurrent use.
//
// Phrases are kept as a trie whose nodes are hashes of word sequences, in front of it a Bloom filter over the first two
// words. Text words are hashed once; the next word of a candidate is one probe, whatever the number of phrases. The
// spelled-out forms work alike on letters: a filter over the first ten, then one probe at each word end.
//
// Words that look like a vocabulary word without being it are found by a second table, from skeletons to the words.
// Only words whose skeleton is in it are ever considered in more than one reading.
type phraseMatcher struct {
	texts   []string
	words   []phraseWord
	folds   string   // folded forms of all words
	ids     []uint32 // words of all phrases
	entries []phraseEntry

	trie   hashTable // word sequence → phrase, and whether longer ones go on
	pairs  hashFilter
	single hashFilter
	twins  []uint32 // phrase → next with the same words, +1

	skels skeletonIndex

	spellings  hashTable // letters → phrase, +1
	heads      hashTable // first ten letters → longest phrase that begins so
	headKnown  hashFilter
	speltTwins []uint32

	gate   *phraseGate // nil: every text is searched
	scouts *scoutIndex // nil: every word of a text is

	hasSingle, hasSpelled bool
	reach                 int // tokens a hit may take, and one more
	wordReach             int // the same for hits of whole words
	hitLimit              int
	plain                 bool      // leave out skeletons and spelled-out forms; only measurements do
	scratch               sync.Pool // *phraseFinder
}

type phraseWord struct {
	hash uint64
	fold uint32
	len  uint16
}

type phraseEntry struct {
	first uint32 // in ids
	words uint16
}

// skeletonIndex finds the words that look alike. Lists are numbered from 1.
type skeletonIndex struct {
	known hashFilter
	table hashTable // skeleton → list
	list  []lookalike
	words []phraseWord
	// lengths has a bit for each length of the words that any ASCII word may look like: those with the digits 0 or 1
	// and those of another script that pass for Latin. For all others few ASCII words matter (see suspicious).
	lengths uint64
	// letters has a bit for each letter of ASCII that, as a word, looks like another word.
	letters uint32
}

type lookalike struct{ word, next uint32 }

func newSkeletonIndex(n int) skeletonIndex {
	return skeletonIndex{known: newHashFilter(n), table: newHashTable(n), list: make([]lookalike, 0, n)}
}

func (x *skeletonIndex) add(skeleton uint64, word uint32) {
	x.known.add(skeleton)
	v := x.table.slot(skeleton)
	x.list = append(x.list, lookalike{word, *v})
	*v = uint32(len(x.list))
}

// anyLetter: may an ASCII letter look like a word of the vocabulary other than itself?
func (x *skeletonIndex) anyLetter(c byte) bool { return x.letters&letterBit(c) != 0 }

func letterBit(c byte) uint32 { return 1 << (c & 31) }

// anyOf: may any ASCII word of n letters look like a word of the vocabulary?
func (x *skeletonIndex) anyOf(n int) bool { return x.lengths&lengthBit(n) != 0 }

func lengthBit(n int) uint64 { return 1 << min(n, 63) }

// find gives the list of the words with a skeleton, 0 if there are none but the word with the hash itself.
func (x *skeletonIndex) find(skeleton, word uint64) uint32 {
	if !x.known.has(skeleton) {
		return 0
	}
	list := x.table.get(skeleton)
	if list != 0 {
		if e := &x.list[list-1]; e.next == 0 && x.words[e.word].hash == word {
			return 0
		}
	}
	return list
}

// newPhraseMatcher compiles phrases. Errors are *phraseError, joined: one for each phrase that cannot be used.
// Phrases may repeat; each reports its own hits.
func newPhraseMatcher(phrases []string) (*phraseMatcher, error) {
	m := &phraseMatcher{texts: slices.Clone(phrases), wordReach: 2, hitLimit: maxHits}
	b := phraseBuilder{m: m, ids: make(map[string]uint32)}
	b.scan.setTable(textTable())
	var errs []error
	for i, text := range phrases {
		if err := b.add(text); err != nil {
			errs = append(errs, &phraseError{i, err})
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	b.index()
	m.gate, m.scouts = newPhraseGate(m), newScoutIndex(m)
	m.scratch.New = func() any { return newPhraseFinder(m) }
	return m, nil
}

type phraseBuilder struct {
	m     *phraseMatcher
	scan  textScan
	ids   map[string]uint32
	folds strings.Builder
	buf   []byte
}

// add normalises a phrase the way text is, and takes its words into the vocabulary.
func (b *phraseBuilder) add(text string) error {
	switch {
	case len(text) > maxPhraseBytes:
		return errPhraseLong
	case !utf8.ValidString(text):
		return errPhraseEncoding
	}
	s, m := &b.scan, b.m
	s.reset(text)
	s.fill(maxPhraseBytes)
	entry := phraseEntry{first: uint32(len(m.ids)), words: uint16(len(s.toks))}
	size := 0
	for i := range s.toks {
		t := &s.toks[i]
		if t.hash == 0 {
			return errPhraseStop
		}
		b.buf = s.appendFold(b.buf[:0], t)
		size += len(b.buf) + 1
		id, ok := b.ids[string(b.buf)]
		if !ok {
			id = uint32(len(m.words))
			b.ids[string(b.buf)] = id
			m.words = append(m.words, phraseWord{t.hash, uint32(b.folds.Len()), uint16(len(b.buf))})
			b.folds.Write(b.buf)
		}
		m.ids = append(m.ids, id)
	}
	switch {
	case entry.words == 0:
		return errPhraseEmpty
	case size > maxPhraseBytes+1, entry.words > maxPhraseWords:
		return errPhraseLong
	}
	m.entries = append(m.entries, entry)
	return nil
}

func (b *phraseBuilder) index() {
	m := b.m
	m.folds = b.folds.String()
	m.words, m.ids = slices.Clone(m.words), slices.Clone(m.ids)
	nodes, singles := 0, 0
	for _, e := range m.entries {
		nodes += max(1, int(e.words)-1)
		if e.words == 1 {
			singles++
		}
		m.wordReach = max(m.wordReach, int(e.words)+1)
	}
	m.hasSingle = singles > 0
	m.trie = newHashTable(nodes)
	m.pairs, m.single = newHashFilter(len(m.entries)-singles), newHashFilter(singles)
	m.twins = make([]uint32, len(m.entries))
	for p := range m.entries {
		m.addSequence(p)
	}
	m.reach = m.wordReach
	m.addSkeletons()
	m.addSpellings()
}

// Values of trie: the first of the phrases that end here, +1, shifted; the low bit says that longer ones go on.
const trieMore = 1

func (m *phraseMatcher) addSequence(p int) {
	words := m.phraseWords(p)
	node := firstNode(m.words[words[0]].hash)
	if len(words) == 1 {
		m.single.add(node)
	}
	for i, w := range words[1:] {
		node = nextNode(node, m.words[w].hash)
		if i == 0 {
			m.pairs.add(node)
		}
		if i+2 < len(words) {
			*m.trie.slot(node) |= trieMore
		}
	}
	v := m.trie.slot(node)
	m.twins[p] = *v >> 1
	*v = uint32(p+1)<<1 | *v&trieMore
}

// A node of the trie is the hash of the words that lead to it.
func firstNode(word uint64) uint64      { return word }
func nextNode(node, word uint64) uint64 { return mixHash(bits.RotateLeft64(node, 23), word) }

func (m *phraseMatcher) phraseWords(p int) []uint32 {
	e := m.entries[p]
	return m.ids[e.first : e.first+uint32(e.words)]
}

func (m *phraseMatcher) fold(word uint32) string {
	w := &m.words[word]
	return m.folds[w.fold : w.fold+uint32(w.len)]
}

// addSkeletons enters every word under what it looks like, in lower case and, where that can make a difference (Greek
// nu and its capital), in upper case.
func (m *phraseMatcher) addSkeletons() {
	type entry struct {
		key  uint64
		word uint32
	}
	var keys []entry
	var lengths uint64
	var letters uint32
	var buf, strokes []byte
	for w := range uint32(len(m.words)) {
		fold := m.fold(w)
		if strings.IndexFunc(fold, unicode.IsLetter) < 0 {
			continue
		}
		var last uint64
		for _, upper := range [...]bool{false, true} {
			if upper && isASCII(fold) {
				continue // letters of ASCII are themselves in both
			}
			buf = appendSkeleton(buf[:0], fold, upper)
			strokes = appendStrokeless(strokes[:0], buf)
			if isASCII(string(buf)) && (!isASCII(fold) || strings.ContainsAny(fold, "01")) {
				lengths |= lengthBit(len(buf))
			}
			if len(strokes) == 1 && isLower(strokes[0]) && (strokes[0] == 'l' || !isASCII(fold)) {
				c := strokes[0]
				if letters |= letterBit(c); c == 'l' {
					letters |= letterBit('i')
				}
			}
			if key := hashBytes(strokes); key != last {
				keys = append(keys, entry{key, w})
				last = key
			}
		}
	}
	m.skels = newSkeletonIndex(len(keys))
	m.skels.lengths, m.skels.letters, m.skels.words = lengths, letters, m.words
	for _, k := range keys {
		m.skels.add(k.key, k.word)
	}
}

func isASCII(s string) bool {
	for ; len(s) >= 32; s = s[32:] {
		if (load8(s, 0)|load8(s, 8)|load8(s, 16)|load8(s, 24))&highBits != 0 {
			return false
		}
	}
	for len(s) >= 8 {
		if load8(s, 0)&highBits != 0 {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendSkeleton appends the skeleton of a folded word, of its capitals if upper. ASCII letters of a phrase are known,
// so they are not taken for others: a capital I is an i.
func appendSkeleton(dst []byte, fold string, upper bool) []byte {
	table := textTable()
	for i, r := range fold {
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
			continue
		}
		c := r
		if upper {
			c = unicode.ToUpper(r)
		}
		page := table.page(c >> 8)
		if page == nil || page[c&0xff].skel == "" {
			dst = append(dst, fold[i:i+utf8.RuneLen(r)]...)
		} else {
			dst = append(dst, page[c&0xff].skel...)
		}
	}
	return dst
}

// headLetters is how many letters the first filter of spelled-out matching takes.
const headLetters = minSpelledLetters

func (m *phraseMatcher) addSpellings() {
	var spelled []uint32
	for p := range m.entries {
		if m.isSpelled(p) {
			spelled = append(spelled, uint32(p))
		}
	}
	if len(spelled) == 0 {
		return
	}
	m.hasSpelled = true
	m.spellings, m.heads, m.headKnown = newHashTable(len(spelled)), newHashTable(len(spelled)), newHashFilter(len(spelled))
	m.speltTwins = make([]uint32, len(m.entries))
	var buf []byte
	for _, p := range spelled {
		buf = m.appendSpelling(buf[:0], int(p))
		m.reach = max(m.reach, len(buf)+1) // every token has a letter at least
		for i, c := range buf {
			buf[i] = spellingClass[c]
		}
		head := headHash(buf)
		m.headKnown.add(head)
		longest := m.heads.slot(head)
		*longest = max(*longest, uint32(len(buf)))
		v := m.spellings.slot(spellingHash(buf))
		m.speltTwins[p] = *v
		*v = p + 1
	}
}

// isSpelled: long enough for spelled-out matching, and written with an alphabet throughout.
func (m *phraseMatcher) isSpelled(p int) bool {
	words := m.phraseWords(p)
	if len(words) < minSpelledWords {
		return false
	}
	letters := 0
	for _, w := range words {
		for _, r := range m.fold(w) {
			switch {
			case r < utf8.RuneSelf:
				if !isLower(byte(r)) {
					continue
				}
			case unicode.In(r, withoutSpaces...):
				return false
			case !unicode.IsLetter(r):
				continue
			}
			letters++
		}
	}
	return letters >= minSpelledLetters
}

func (m *phraseMatcher) appendSpelling(dst []byte, p int) []byte {
	for _, w := range m.phraseWords(p) {
		dst = appendSkeleton(dst, m.fold(w), false)
	}
	return dst
}
