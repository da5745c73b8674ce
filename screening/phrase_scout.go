package screening

import "math/bits"

// The scout goes over plain ASCII text ahead of the search for phrases as they are written. It cuts the text into
// words sixty-four bytes at a time and only asks of each word whether a phrase can begin there; the search proper looks
// at those places alone. Where it cannot tell words by the byte it gives up, and the search goes through the text.

// scoutChunk is how much text is cut into words before they are looked at.
const scoutChunk = 4096

// scout is the room for the words of a chunk.
type scout struct {
	starts, ends [scoutChunk/2 + 1]uint32
	places       []uint32 // where phrases may begin
}

// plainASCII searches a text in its plain form and reports whether that was possible.
func (f *phraseFinder) plainASCII(text string) bool {
	w := &f.scout
	w.places = w.places[:0]
	cut := wordCutter{text: text}
	var last, lastStart = uint64(0), uint32(0)
	m := f.m
	pairs := m.pairs
	for !cut.done() {
		n, ok := cut.chunk(w)
		if !ok {
			return false
		}
		for k, start := range w.starts[:n] {
			word := hashWord(text, int(start), int(w.ends[k]))
			if pairs.has(nextNode(firstNode(last), word)) && last != 0 {
				w.places = append(w.places, lastStart)
			} else if m.hasSingle && last != 0 && m.single.has(firstNode(last)) {
				w.places = append(w.places, lastStart)
			}
			last, lastStart = word, start
		}
	}
	if m.hasSingle && last != 0 && m.single.has(firstNode(last)) {
		w.places = append(w.places, lastStart)
	}
	for _, at := range w.places {
		f.scan.reset(text)
		f.scan.pos = int(at)
		f.scan.fill(m.reach)
		f.match(1)
	}
	return true
}

// hashWord is hashASCII for a word of a text that mostly goes on behind it.
func hashWord(text string, start, end int) uint64 {
	if n := end - start; n < 8 && start+8 <= len(text) {
		return mixHash(0, (load8(text, start)|0x20*lanes)<<(64-8*n))
	}
	return hashASCII(text, start, end)
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
		for starts := words &^ before; starts != 0; starts &= starts - 1 {
			w.starts[open] = uint32(c.at + bits.TrailingZeros64(starts))
			open++
		}
		for ends := before &^ words; ends != 0; ends &= ends - 1 {
			w.ends[n] = uint32(c.at + bits.TrailingZeros64(ends))
			n++
		}
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
