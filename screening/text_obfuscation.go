package screening

// obfuscationKind names a way of hiding text from readers or from matching. Any of them only escalates.
type obfuscationKind string

func (k obfuscationKind) String() string { return string(k) }

const (
	hidesMixedScript  obfuscationKind = "mixed_script"  // a word of Latin letters with lookalikes of another script
	hidesBidiControl  obfuscationKind = "bidi_control"  // reorders what is shown; the marks LRM, RLM and ALM do not
	hidesTagCharacter obfuscationKind = "tag_character" // invisible copies of ASCII, outside the emoji flags made of them
	hidesInvisible    obfuscationKind = "invisible"     // invisible characters in number
	hidesExpansion    obfuscationKind = "expansion"     // grows out of proportion when normalised
	hidesEscapes      obfuscationKind = "escapes"       // more escapes, tags or broken words than are undone
)

// textObfuscation is one kind of it in one field: where it first occurs and how often.
type textObfuscation struct {
	kind       obfuscationKind
	field      int
	start, end int // bytes of the field's original text
	count      int
}

const (
	blackFlag = 0x1F3F4
	cancelTag = 0xE007F
	// One invisible inside a word is an editor's accident; so many, and more than one in invisibleShare bytes, is not.
	minInvisible, invisibleShare = 4, 100
	// invisibleRun: emoji use two in a row.
	invisibleRun = 3
)

var obfuscationKinds = [...]obfuscationKind{
	hidesMixedScript, hidesBidiControl, hidesTagCharacter, hidesInvisible, hidesExpansion,
}

// obfuscationBuilder gathers the obfuscations of one field.
type obfuscationBuilder struct {
	found   [len(obfuscationKinds)]textObfuscation
	textLen int
	// The run of invisibles before the current rune.
	run, runStart, runEnd int
	spare                 bool // the letter before the run is of a script that spells with invisible joiners
}

func (b *obfuscationBuilder) reset(textLen int) { *b = obfuscationBuilder{textLen: textLen} }

func (b *obfuscationBuilder) note(kind obfuscationKind, start, end int) {
	b.noteMany(kind, start, end, 1)
}

func (b *obfuscationBuilder) noteMany(kind obfuscationKind, start, end, n int) {
	for i, k := range obfuscationKinds {
		if k != kind {
			continue
		}
		if f := &b.found[i]; f.count == 0 {
			*f = textObfuscation{kind: kind, start: start, end: end, count: n}
		} else {
			f.count += n
		}
	}
}

func (b *obfuscationBuilder) invisible(r rune, start, end int) {
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		b.note(hidesBidiControl, start, end)
	case r == 0xE0001, r >= 0xE0020 && r <= cancelTag:
		b.note(hidesTagCharacter, start, end)
	case r == 0x00AD, r == 0x0640, r == 0x07FA:
		return // soft hyphens and tatweels are typography
	}
	if b.run == 0 || b.runEnd != start {
		b.endRun(false)
		b.run, b.runStart = 0, start
	}
	b.run++
	b.runEnd = end
}

// letter is told each letter of a script that separates words.
func (b *obfuscationBuilder) letter(first bool, bits runeBits, start int) {
	if b.run > 0 {
		b.endRun(!first && b.runEnd == start && !b.spare)
	}
	b.spare = bits&(bitCursive|bitKeepsMarks) != 0
}

// endRun counts a run of invisibles if it stands inside a word that needs none, or is longer than emoji need.
func (b *obfuscationBuilder) endRun(inWord bool) {
	if b.run > 0 && (inWord || b.run >= invisibleRun) {
		b.noteMany(hidesInvisible, b.runStart, b.runEnd, b.run)
	}
	b.run = 0
}

// appendTo ends the field and appends them in the order of obfuscationKinds.
func (b *obfuscationBuilder) appendTo(all []textObfuscation, field int) []textObfuscation {
	b.endRun(false)
	for _, f := range b.found {
		if f.count == 0 || f.kind == hidesInvisible && (f.count < minInvisible || f.count*invisibleShare <= b.textLen) {
			continue
		}
		f.field = field
		all = append(all, f)
	}
	return all
}

// emojiTags returns the length of the tag characters that make a black flag the flag of a region: two letters of a
// country and up to three of the part, then the cancel tag. Anything else is not an emoji.
func emojiTags(text string) int {
	n := 0
	for i, r := range text {
		switch {
		case r == cancelTag && n >= 3:
			return i + len(string(rune(cancelTag)))
		case n < 6 && (r >= 0xE0030 && r <= 0xE0039 || r >= 0xE0061 && r <= 0xE007A):
			n++
		default:
			return 0
		}
	}
	return 0
}
