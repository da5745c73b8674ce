package screening

import "math/bits"

// The scout goes over plain ASCII text ahead of the search for phrases as they are written. It cuts the text into
// words sixty-four bytes at a time and only asks of each word whether a phrase can begin there; the search proper looks
// at those places alone. Where it cannot tell words by the byte it gives up, and the search goes through the text.

// scoutIndex tells whether a phrase may begin with a word, or with two. It takes words by their first and last letters:
// that is no more than a guess, but costs less than a hash of them all.
type scoutIndex struct{ pairs, singles hashFilter }

func newScoutIndex(m *phraseMatcher) scoutIndex {
	singles := 0
	for _, e := range m.entries {
		if e.words == 1 {
			singles++
		}
	}
	x := scoutIndex{newHashFilter(len(m.entries) - singles), newHashFilter(singles)}
	for p := range m.entries {
		words := m.phraseWords(p)
		first := m.fold(words[0])
		if len(words) == 1 {
			x.singles.add(scoutPair(0, slowScoutKey(first, 0, len(first))))
			continue
		}
		second := m.fold(words[1])
		x.pairs.add(scoutPair(slowScoutKey(first, 0, len(first)), slowScoutKey(second, 0, len(second))))
	}
	return x
}

// scoutKey takes a word of at least one letter by its first eight and its last eight, in lower case.
func scoutKey(text string, start, end int) uint64 {
	if start+8 > len(text) || end < 8 {
		return slowScoutKey(text, start, end)
	}
	shift := uint(max(0, 8*(8-(end-start)))) & 63
	head := (load8(text, start) | 0x20*lanes) << shift >> shift
	tail := (load8(text, end-8) | 0x20*lanes) >> shift
	return head + bits.RotateLeft64(tail, 21)
}

func slowScoutKey(text string, start, end int) uint64 {
	n := min(end-start, 8)
	var head, tail uint64
	for i := range n {
		head |= uint64(text[start+i]|0x20) << (8 * i)
		tail |= uint64(text[end-n+i]|0x20) << (8 * i)
	}
	return head + bits.RotateLeft64(tail, 21)
}

func scoutPair(first, second uint64) uint64 { return mixHash(bits.RotateLeft64(first, 32), second) }

// scoutChunk is how much text is cut into words before they are looked at.
const scoutChunk = 4096

// scout is the room for the words of a chunk.
type scout struct {
	starts, ends [scoutChunk/2 + gateBlock]uint32
	places       []scoutPlace
}

// scoutPlace is where a phrase may begin: at the word from start, and the next one if to is not 0.
type scoutPlace struct{ start, end, next, to uint32 }

// plainASCII searches a text in its plain form and reports whether that was possible.
func (f *phraseFinder) plainASCII(text string) bool {
	w, m := &f.scout, f.m
	cut := wordCutter{text: text}
	var last uint64
	var lastStart, lastEnd uint32
	pairs := m.scouts.pairs
	for !cut.done() {
		n, ok := cut.chunk(w)
		if !ok {
			f.forget()
			return false
		}
		w.places = w.places[:0]
		ends := w.ends[:n]
		for k, start := range w.starts[:n] {
			end := ends[k]
			key := scoutKey(text, int(start), int(end))
			if pairs.has(scoutPair(last, key)) {
				w.places = append(w.places, scoutPlace{lastStart, lastEnd, start, end})
			}
			if m.hasSingle && m.scouts.singles.has(scoutPair(0, key)) {
				w.places = append(w.places, scoutPlace{start: start, end: end})
			}
			last, lastStart, lastEnd = key, start, end
		}
		for _, at := range w.places {
			if m.begins(text, at) {
				f.scan.reset(text)
				f.scan.pos = int(at.start)
				f.scan.fill(m.wordReach)
				f.match(1)
			}
		}
	}
	return true
}

// begins reports whether a phrase may go on from the words at a place to its end.
func (m *phraseMatcher) begins(text string, at scoutPlace) bool {
	node := firstNode(hashASCII(text, int(at.start), int(at.end)))
	if at.to == 0 {
		return m.trie.get(node) > trieMore
	}
	node = nextNode(node, hashASCII(text, int(at.next), int(at.to)))
	for end := int(at.to); ; {
		switch v := m.trie.get(node); {
		case v > trieMore:
			return true
		case v == 0:
			return false
		}
		start := end
		for start < len(text) && asciiClass[text[start]] < classWord {
			start++
		}
		end = start
		for end < len(text) && asciiClass[text[end]] == classWord {
			end++
		}
		if end == start {
			return end < len(text) // not ASCII: the search has to say
		}
		node = nextNode(node, hashASCII(text, start, end))
	}
}

// forget drops the hits of the field.
func (f *phraseFinder) forget() {
	f.clearCounts()
	f.hits = f.hits[:f.from]
}

// wordCutter finds the words of a text.
type wordCutter struct {
	text   string
	at     int
	inWord uint64 // 1: the byte before belongs to a word
	start  uint32 // of the word that is open
}

func (c *wordCutter) done() bool { return c.at >= len(c.text) && c.inWord == 0 }

// chunk gives the number of words that end in the next chunk; ok: the text is ASCII so far.
func (c *wordCutter) chunk(w *scout) (n int, ok bool) {
	open := 0 // words that began
	if c.inWord != 0 {
		w.starts[0], open = c.start, 1
	}
	limit := min(len(c.text), c.at+scoutChunk)
	for ; c.at < limit; c.at += gateBlock {
		var block [gateBlock]byte
		var words uint64
		ascii := true
		if c.at+gateBlock <= len(c.text) {
			words, ascii = asciiWords(c.text[c.at : c.at+gateBlock])
		} else {
			copy(block[:], c.text[c.at:])
			words, ascii = asciiWords(block[:])
		}
		if !ascii {
			return 0, false
		}
		before := words<<1 | c.inWord
		open += appendBits(w.starts[open:], words&^before, c.at)
		n += appendBits(w.ends[n:], before&^words, c.at)
		c.inWord = words >> 63
	}
	if c.at >= len(c.text) && c.inWord != 0 { // the text ends in a word
		w.ends[n] = uint32(len(c.text))
		n++
		c.inWord = 0
	}
	if open > n {
		c.start = w.starts[n]
	}
	return n, true
}

// appendBits writes the places of the bits of a block and gives their number. It writes eight at a time, also beyond
// the last one: how many there are is hard to foresee for a processor too.
func appendBits(dst []uint32, set uint64, at int) int {
	n := bits.OnesCount64(set)
	for ; set != 0; dst = dst[8:] {
		to := (*[8]uint32)(dst)
		for i := range to {
			to[i] = uint32(at + bits.TrailingZeros64(set))
			set &= set - 1
		}
	}
	return n
}

// asciiWords has a bit for each of 64 bytes that belongs to a word. ascii: all are.
func asciiWords[T string | []byte](block T) (words uint64, ascii bool) {
	_ = block[gateBlock-1]
	var high uint64
	for k := 0; k < gateBlock; k += 8 {
		x := load8(block, k)
		high |= x
		x &^= highBits
		in := laneRange(x|0x20*lanes, 'a', 'z') | laneRange(x, '0', '9')
		words |= in >> 7 * 0x0102040810204080 >> 56 << k
	}
	return words, high&highBits == 0
}
