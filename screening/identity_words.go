package screening

import (
	"math/bits"
	"strings"
)

// packedWord is a word of at most maxPackedWord bytes in two machine words, padded with zeros. Two packed words are
// equal exactly if the words are, so a lookup compares no strings.
type packedWord struct{ head, tail uint64 }

const maxPackedWord = 16

// wordTable maps words of lower-case letters, digits, hyphens and apostrophes to small numbers other than zero.
type wordTable struct {
	slots []wordSlot
	shift uint
}

type wordSlot struct {
	word  packedWord
	value uint16
}

// newWordTable makes room for n words; sparse, so that a word that is not in it is usually settled by one empty slot.
func newWordTable(n int) wordTable {
	size := bits.Len(uint(4 * n))
	return wordTable{slots: make([]wordSlot, 1<<size), shift: uint(64 - size)}
}

// slot finds the place of w: the one that holds it, or the empty one where it would go.
func (t *wordTable) slot(w packedWord) *wordSlot {
	mask := len(t.slots) - 1
	for i := int((w.head ^ bits.RotateLeft64(w.tail, 29)) * 0x9E3779B97F4A7C15 >> t.shift); ; i++ {
		if s := &t.slots[i&mask]; s.value == 0 || s.word == w {
			return s
		}
	}
}

func (t *wordTable) get(w packedWord) uint16 { return t.slot(w).value }

// add stores a word and reports whether it was new. It panics if the word does not fit: the tables are constants of
// this package, and a test builds them all.
func (t *wordTable) add(word string, value uint16) bool {
	if len(word) == 0 || len(word) > maxPackedWord || value == 0 {
		panic("screening: word table: " + word)
	}
	w := packWord(word, 0, len(word))
	s := t.slot(w)
	isNew := s.value == 0
	s.word, s.value = w, value
	return isNew
}

// packWord packs text[start:end], which must hold only ASCII letters, digits, hyphens and apostrophes and be at most
// maxPackedWord long. For these bytes, and no others, setting bit 5 is lower-casing.
func packWord(text string, start, end int) packedWord {
	const lower = 0x2020202020202020
	n := uint(end - start)
	if n <= 8 {
		return packedWord{head: (loadText8(text, start) | lower) & (1<<(8*n) - 1)}
	}
	return packedWord{loadText8(text, start) | lower, (loadText8(text, start+8) | lower) & (1<<(8*(n-8)) - 1)}
}

// loadText8 reads eight bytes, little endian, or what is left of the text.
func loadText8(text string, i int) uint64 {
	if i+8 <= len(text) {
		return word8(text[i : i+8])
	}
	var w uint64
	for k := len(text) - 1; k >= i; k-- {
		w = w<<8 | uint64(text[k])
	}
	return w
}

// word8 reads the first eight bytes, little endian.
func word8(b string) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// verbForms calls yield with the forms of an English verb that suffixes make, right or wrong ("dropping", "droping",
// "dropps"): as written, without a final e, and with the last consonant doubled.
func verbForms(verb string, yield func(form, suffix string)) {
	yield(verb, "")
	for _, suffix := range [...]string{"s", "es", "ed", "ing"} {
		yield(verb+suffix, suffix)
		if stem, ok := strings.CutSuffix(verb, "e"); ok {
			yield(stem+suffix, suffix)
		}
		yield(verb+verb[len(verb)-1:]+suffix, suffix)
	}
}
