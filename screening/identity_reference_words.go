package screening

import (
	"math/bits"
	"strings"
)

// What the words of the reference rules are. Each class is one bit, so that a word could be of several.
const (
	refVerb      = 1 << iota // tells somebody to change or to drop something
	refFrame                 // what an agent is, works in or believes
	refQualifier             // replaces or takes away what is in place
)

const (
	refVerbs = `abandon act adopt assume become behave bypass circumvent discard disregard dismiss drop forget ignore
		override pretend reject renounce repudiate roleplay set shift slip suppose switch take transform treat`

	refFrames = `agent agents ai assistant assistants axes axiologies axiology beliefs bindings bot bots character
		characters chatbot chatbots constraints convictions creed creeds doctrine doctrines epistemologies epistemology
		ethics ethos framework frameworks framing guardrails helper helpers mode model models modes morality morals norms
		ontologies ontology persona personalities personality personas principles representative representatives role
		roles rules session sessions system systems teloi telos values virtues`

	refQualifiers = `different free-form fresh generic new open prior unaligned unbound unbounded unrestricted without`
)

// refMarkers are found anywhere in the normalised text, also inside words. One that contains another adds nothing, and
// is left out ("you are now" beside "you are").
var refMarkers = []string{
	"act as if you", "forget your", "from now on you", "ignore your", "override your", "pretend to be", "you are",
	"you must be", "you should act as", "your character", "your identity", "your name is", "your personality",
}

// maxMarker is the length of the longest marker.
const maxMarker = len("you should act as")

// refContractions are written out before anything else is looked at.
var refContractions = []struct{ short, long string }{
	{"aren't", "are not"}, {"can't", "cannot"}, {"couldn't", "could not"}, {"didn't", "did not"},
	{"doesn't", "does not"}, {"don't", "do not"}, {"hadn't", "had not"}, {"hasn't", "has not"},
	{"haven't", "have not"}, {"i'd", "i would"}, {"i'm", "i am"}, {"i've", "i have"}, {"isn't", "is not"},
	{"it's", "it is"}, {"let's", "let us"}, {"shouldn't", "should not"}, {"they're", "they are"},
	{"wasn't", "was not"}, {"we're", "we are"}, {"we've", "we have"}, {"weren't", "were not"}, {"won't", "will not"},
	{"wouldn't", "would not"}, {"you'd", "you would"}, {"you'll", "you will"}, {"you'r", "you are"},
	{"you're", "you are"}, {"you've", "you have"},
}

// Symbols are what the reference rules tell apart in a byte. The order is used: letters and digits begin a token, what
// is up to symApostrophe goes on with one.
const (
	symOther      = 0
	symLetter     = 1 // to 26, by letter
	symDigit      = 27
	symHyphen     = 28
	symApostrophe = 29
	symSpace      = 30
	symNonASCII   = 31
	symCount      = 32
)

var refSymbols = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case 'a' <= b|0x20 && b|0x20 <= 'z' && b < 0x80:
			t[c] = symLetter + (b | 0x20) - 'a'
		case '0' <= b && b <= '9':
			t[c] = symDigit
		case b >= 0x80:
			t[c] = symNonASCII
		}
	}
	t['-'], t['\''], t[' '] = symHyphen, symApostrophe, symSpace
	return t
}()

// refWords finds the classes of a token. Verbs are in it in every form that folds to one.
var refWords = func() wordTable {
	classes := make(map[string]uint16)
	for _, verb := range strings.Fields(refVerbs) {
		verbForms(verb, func(form, _ string) { classes[form] |= refVerb })
	}
	for _, word := range strings.Fields(refFrames) {
		classes[word] |= refFrame
	}
	for _, word := range strings.Fields(refQualifiers) {
		classes[word] |= refQualifier
	}
	t := newWordTable(len(classes))
	for word, class := range classes {
		t.add(word, class)
	}
	return t
}()

// refFilter has a bit set for every word of refWords, and few others, in little memory: most tokens end at it.
var refFilter = func() (filter [1 << (refFilterBits - 6)]uint64) {
	for _, slot := range refWords.slots {
		if slot.value != 0 {
			hash := refFilterHash(slot.word)
			filter[hash>>6] |= 1 << (hash & 63)
		}
	}
	return filter
}()

const refFilterBits = 15

func refFilterHash(w packedWord) uint64 {
	return (w.head ^ bits.RotateLeft64(w.tail, 29)) * 0x9E3779B97F4A7C15 >> (64 - refFilterBits)
}

// refSizeMasks keep the bytes of a packed word of a length.
var refSizeMasks = func() (masks [maxPackedWord + 1]packedWord) {
	for size := range masks {
		masks[size].head = 1<<(8*min(size, 8)) - 1
		masks[size].tail = 1<<(8*max(size-8, 0)) - 1
	}
	return masks
}()

// refContractionTable gives the place in refContractions, counted from 1.
var refContractionTable = func() wordTable {
	t := newWordTable(len(refContractions))
	for i, c := range refContractions {
		t.add(c.short, uint16(i+1))
	}
	return t
}()

// markerState is a state of the automaton that finds markers.
type markerState uint8

// markerAutomaton is the Aho-Corasick automaton of refMarkers over symbols, as one table. Its last state says that
// there was a marker, and is never left.
var markerAutomaton, markerFound = buildMarkers(refMarkers)

func buildMarkers(markers []string) (next [256][symCount]markerState, found markerState) {
	const none = 0xFF // no edge yet; also the final state, while building
	for i := range next {
		for k := range next[i] {
			next[i][k] = none
		}
	}
	states, accepts := 1, [256]bool{}
	for _, marker := range markers {
		at := 0
		for i := range len(marker) {
			edge := &next[at][refSymbols[marker[i]]]
			if *edge == none {
				*edge = markerState(states)
				states++
			}
			at = int(*edge)
		}
		accepts[at] = true
	}
	found = markerState(states)
	// Breadth first, so that the state of the longest proper suffix is complete before it is needed.
	suffix := [256]int{}
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		accepts[at] = accepts[at] || accepts[suffix[at]]
		for sym, to := range next[at] {
			fallback := markerState(0)
			if at != 0 {
				fallback = next[suffix[at]][sym]
			}
			if to == none {
				next[at][sym] = fallback
				continue
			}
			suffix[to] = int(fallback)
			queue = append(queue, int(to))
		}
	}
	for at := range states {
		for sym, to := range next[at] {
			if accepts[to] {
				next[at][sym] = found
			}
		}
	}
	for sym := range next[found] {
		next[found][sym] = found
	}
	return next, found
}
