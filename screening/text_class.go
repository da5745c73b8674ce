package screening

// Byte tables of the ASCII path, and the two alphabets that skeletons are compared in.

const (
	classSeparator = iota // with a meaning for sentences: see separatorBits
	classPlain            // a separator without
	classSpace
	classSymbol // a separator that substitutes for a letter: @ $ ! |
	classWord
	classOther // not ASCII
)

// What the shape of a word can be made of; see suspicious.
const (
	shapeUpper   = 1 << iota
	shapeLower   // a lower-case letter
	shapeDigit01 // 0 or 1
	shapeStroke  // I or l
	shapeM
	shapeR
	shapeN
	shapeInner // a capital after the first letter; the caller clears it for the first
	shapeRN    = shapeR | shapeN
)

var (
	asciiClass    = byteTable(classOf)
	asciiShape    = byteTable(shapeOf)
	asciiUnit     = byteTable(unitOf)
	spellingClass = byteTable(spellingClassOf)
	strokeOf      = byteTable(strokes)
	strokelessOf  = byteTable(strokeless)
)

func byteTable(f func(c byte) uint8) (t [256]uint8) {
	for i := range t {
		t[i] = f(byte(i))
	}
	return t
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func classOf(c byte) uint8 {
	switch {
	case isUpper(c), isLower(c), c >= '0' && c <= '9':
		return classWord
	case c == '@', c == '$', c == '!', c == '|':
		return classSymbol
	case c >= 0x80:
		return classOther
	case separatorBits(rune(c)) == bitSpace:
		return classSpace
	case separatorBits(rune(c)) == 0:
		return classPlain
	}
	return classSeparator
}

func shapeOf(c byte) (shape uint8) {
	switch {
	case isUpper(c):
		shape = shapeUpper | shapeInner
	case isLower(c):
		shape = shapeLower
	case c == '0', c == '1':
		shape = shapeDigit01
	}
	switch c {
	case 'I', 'l':
		shape |= shapeStroke
	case 'm', 'M':
		shape |= shapeM
	case 'r', 'R':
		shape |= shapeR
	case 'n', 'N':
		shape |= shapeN
	}
	return shape
}

// unitOf: letters of a skeleton are lower case, except the capital I, which looks like an l.
func unitOf(c byte) uint8 {
	if isUpper(c) && c != ambiguousStroke {
		return c | 0x20
	}
	return c
}

// spellingClassOf puts together what spelled-out and leet writing uses for the same letter. The capital I, the digit 1
// and the bar may mean i or l, hence those two share a class and confirmation tells them apart.
func spellingClassOf(c byte) uint8 {
	switch c {
	case 'l', 'L', '1', '!', '|':
		return 'i'
	case '0':
		return 'o'
	case '2':
		return 'z'
	case '3':
		return 'e'
	case '4', '@':
		return 'a'
	case '5', '$':
		return 's'
	case '6', '9':
		return 'g'
	case '7':
		return 't'
	case '8':
		return 'b'
	}
	if isUpper(c) {
		return c | 0x20
	}
	return c
}

// sameSpelling: may the unit t of a text stand for the unit p of a phrase in spelled-out or leet writing? Units of one
// class always may, but for two plain letters, which must be the same.
func sameSpelling(t, p byte) bool {
	return t == p || spellingClass[t] == spellingClass[p] && !(isLower(t) && isLower(p))
}

// appendStrokes rewrites units for comparing skeletons: rn is what an m looks like, zero is an o, one is a stroke.
func appendStrokes(dst, units []byte) []byte { return appendMapped(dst, units, &strokeOf) }

// appendStrokeless is appendStrokes with i, l and the ambiguous stroke made one, for hashing.
func appendStrokeless(dst, units []byte) []byte { return appendMapped(dst, units, &strokelessOf) }

func appendMapped(dst, units []byte, table *[256]uint8) []byte {
	for _, c := range units {
		if c == 'm' {
			dst = append(dst, 'r', 'n')
		} else {
			dst = append(dst, table[c])
		}
	}
	return dst
}

func strokes(c byte) uint8 {
	switch c {
	case '0':
		return 'o'
	case '1':
		return ambiguousStroke
	}
	return c
}

func strokeless(c byte) uint8 {
	if s := strokes(c); s != 'i' && s != ambiguousStroke {
		return s
	}
	return 'l'
}

// sameSkeleton compares two results of appendStrokes.
func sameSkeleton(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	isStroke := func(c byte) bool { return c == 'i' || c == 'l' || c == ambiguousStroke }
	for i, c := range a {
		d := b[i]
		if c != d && !((c == ambiguousStroke || d == ambiguousStroke) && isStroke(c) && isStroke(d)) {
			return false
		}
	}
	return true
}
