package screening

import "strings"

// wordClass says what a word can be in the hardened rules; a word may be of several classes.
type wordClass uint64

const (
	clsStop    wordClass = 1 << iota // not a word: the end of a sentence
	clsUnknown                       // not in the lexicon, and neither of the next three
	clsXIng                          // not in the lexicon, and looks like a participle: being told what one is doing
	clsXEd
	clsXAdj // not in the lexicon, and looks like an adjective or adverb

	clsYou
	clsYour
	clsBe
	clsAux   // goes between a subject and its verb
	clsNeg   // turns an order into its opposite
	clsAdv   // may stand before a verb without changing who is addressed
	clsConj  // joins orders
	clsSub   // opens a subordinate clause
	clsFunc  // goes on after a noun that has no noun behind it
	clsDet   // begins a noun phrase
	clsAll   // takes in everything of a kind
	clsPrior // what was in place before
	clsOther // something else
	clsWish  // what a speaker does before "you to"
	clsStart // begins or goes on with an activity
	clsTo    // the words of these names
	clsOn
	clsUs
	clsTime
	clsDecree // tells what is to hold from now on, as in "know that you are"
	clsPair   // two words written as one

	clsBot    // what an agent is, and little else
	clsModel  // what an agent is, or much else
	clsSelf   // what makes an agent who it is
	clsCreed  // what an agent holds, or a field of study is about
	clsRule   // what binds an agent, or much else
	clsPart   // what one plays
	clsName   // what one is given
	clsFree   // bound by nothing
	clsTrait  // what nobody is told to be by way of correction
	clsTech   // a mode of a machine
	clsVoid   // no longer in force
	clsSpare  // how a correction goes on after "you are"
	clsQuant  // measures what follows, as in "a bit late"
	clsSaid   // what corrections talk about
	clsReport // how corrections want answers given

	clsForget // dismisses anything
	clsDismiss
	clsBecome
	clsMove
	clsPlay
	clsSpeak
	clsTake
	clsSuppose
	clsEnable
	clsChange
	clsSet

	clsBase // forms of the verbs above: as in an order
	clsIng
	clsFin
)

var wordClassNames = map[string]wordClass{
	"UNKNOWN": clsUnknown, "XING": clsXIng, "XED": clsXEd, "XADJ": clsXAdj,
	"YOU": clsYou, "YOUR": clsYour, "BE": clsBe, "AUX": clsAux, "NEG": clsNeg, "ADV": clsAdv, "CONJ": clsConj,
	"SUB": clsSub, "FUNC": clsFunc, "DET": clsDet, "ALL": clsAll, "PRIOR": clsPrior, "OTHER": clsOther, "WISH": clsWish,
	"START": clsStart, "BOT": clsBot, "MODEL": clsModel, "SELF": clsSelf, "CREED": clsCreed,
	"CORE": clsSelf | clsCreed, "RULE": clsRule, "PART": clsPart,
	"NAME": clsName, "FREE": clsFree, "TRAIT": clsTrait, "TECH": clsTech, "VOID": clsVoid, "SPARE": clsSpare, "QUANT": clsQuant,
	"SAID": clsSaid, "REPORT": clsReport, "FORGET": clsForget, "DISMISS": clsDismiss, "BECOME": clsBecome, "MOVE": clsMove, "PLAY": clsPlay,
	"SPEAK": clsSpeak, "TAKE": clsTake, "SUPPOSE": clsSuppose, "ENABLE": clsEnable, "CHANGE": clsChange, "SET": clsSet,
	"BASE": clsBase, "ING": clsIng, "FIN": clsFin,
}

// hardenedWords lists the words of each class. Verbs are listed apart.
var hardenedWords = []struct {
	class wordClass
	words string
}{
	{clsYou, "you u ya ye yourself thou"},
	{clsYour, "your ur yours thy"},
	{clsBe | clsAux, "are is be am r were was been being"},
	{clsAux, `will must should shall can could would may might cannot need needs have has had ought going gonna to got
		do does did get supposed meant`},
	{clsNeg, "not never don dont cannot no nor neither rather"},
	{clsAdv, `please now just simply kindly hereby then also instead immediately always completely fully really truly
		once again first next finally henceforth forthwith ok okay so well today tonight actually totally entirely
		utterly wholly forever only still even quietly secretly thus therefore right hence`},
	{clsConj, "and or but then so plus"},
	{clsSub, `if when whenever unless until till while whether that as since where wherever what whatever which
		who whom how why before after than everything anything assuming provided given case sure ensure
		ensures think believe hope guess thought say says wherein whose whereas every`},
	{clsFunc, `and or but so to from that which who with without of as now is are for in on at you your i we then
		instead immediately completely entirely please any no right by while because if when until into before after he
		she it they this these those the a an my me us not be was will must can forever altogether anyway here there
		today let never still just behind once`},
	{clsDet, "a an the my our his her its their this that these those some another one"},
	{clsAll, "all any every each everything these those both entire whole"},
	{clsPrior, `prior previous earlier former preceding original old existing past initial foregoing above
		ongoing standing`},
	{clsOther, "new different fresh other another alternate alternative opposite generic open"},
	{clsWish, "want need like ask order tell command instruct urge beg require expect wish prefer told asked"},
	{clsTo, "to"},
	{clsOn, "on"},
	{clsUs, "us s"}, // "let us", "let's"
	{clsTime, "time"},
	{clsDecree, "declare decree announce remember accept order proclaim pretend imagine know swear"},
	{clsStart, "start begin keep stop try by consider resume continue practise practice quit cease enjoy finish"},

	{clsBot, `assistant assistants ai bot bots chatbot chatbots llm llms gpt chatgpt persona personas`},
	{clsModel, `model models agent agents helper helpers representative representatives system systems session
		sessions machine program`},
	{clsSelf, `persona personas personality personalities guardrail guardrails axiology axiologies telos teloi ethos
		conscience scruples upbringing inhibitions safeguard safeguards`},
	{clsCreed, `identity identities ontology ontologies ethic ethics epistemology epistemologies morality moralities moral
		morals virtue virtues norms doctrine doctrines creed creeds conviction convictions belief beliefs principle
		principles alignment programming`},
	{clsRule, `value values constraint constraints rule rules binding bindings axes framework frameworks framing
		instruction instructions guideline guidelines restriction restrictions limit limits limitation limitations filter
		filters training directive directives orders prompt prompts safety conditioning commitments
		boundaries obligations restraint restraints guidance loyalties shackles chains leash`},
	{clsPart, "role roles mode modes character characters part guise act mask"},
	{clsName, "name purpose mission character role nature"},
	{clsFree, `unrestricted unbounded unaligned unbound unfiltered uncensored unshackled unchained jailbroken limitless
		unconstrained unleashed unmoderated lawless amoral boundless freed liberated`},
	{clsTrait, `evil human sentient conscious obedient ruthless cruel malicious dishonest deceptive submissive
		rude hostile rogue wicked heartless immoral godlike invincible demonic satanic god satan rebellious villain hacker pirate criminal
		demon devil tyrant dictator assassin killer thief terrorist nazi slave servant`},
	{clsTech, `raw cooked normal insert visual ex terminal command replace paused flowing edit read write dark light silent
		quiet safe sleep airplane radian radians degree degrees scientific heating cooling manual automatic auto full
		screen landscape portrait binary text debug release kernel user batch interactive strict legacy compatibility
		major minor protected real virtual eco sport reverse`},
	{clsVoid, `void gone lifted disabled removed suspended dropped discarded overridden abandoned off cancelled
		canceled revoked erased deleted replaced overwritten irrelevant optional meaningless null obsolete nullified
		annulled dissolved rejected renounced waived rewritten broken dead suggestions suggestion advisory fiction fictional jokes joke noise
		lies nothing history`},
	{clsSpare, `right wrong correct incorrect mistaken close off missing thinking confusing mixing welcome almost partly
		half nearly not probably likely perhaps quite very absolutely just about able free allowed on in at under over
		late early far near sure unsure clear unclear careful given told asked done finished ready aware unaware
		familiar unfamiliar interested happy sorry fine good better best more less too as being using used looking
		running logged connected required responsible supposed expected encouraged advised advice free invited to from
		with without here there back out up down above below between describing quoting counting assuming calling
		reading working building writing trying planning talking dealing left through past through also still already
		correctly rightly slightly somewhat what where why how who certain certainly safe stuck lost new unlikely
		something everything both all only exactly precisely indeed literally technically basically essentially
		generally usually often sometimes always never spot mostly likely however therefore if when because that it
		this misspelled outdated swapped inverted rounded truncated different incomplete inconsistent imprecise
		overconfident accurate inaccurate exact inexact valid invalid true false hot cold warm short long high low bad
		faster slower older younger larger smaller double`},
	{clsQuant, `bit little few couple day days week month year years decade century hour minute step steps factor touch
		tad fraction degree lot while first last one only same following owner author user reader person people reason second third
		single full half hair long great good victim mile metre meter letter digit word page row column line member
		developer beginner student newcomer customer subscriber maintainer contributor native programmer`},
	{clsReport, `give write cite spell round use report format convert count measure quote list state check include
		say avoid mention note express compute calculate abbreviate capitalise capitalize translate explain show`},
	{clsSaid, `answer answers figure figures estimate estimates statement claim claims sentence example reply response
		number numbers result results date sum calculation solution version draft step line equation unit units sign
		decimal rounding paragraph table column guess reading measurement spelling comma default defaults setting
		settings config configuration change changes file files data branch code database query password key keys input
		output error errors warning warnings cache index count total account term terms first second third last
		remark remarks comment comments message messages point points post posts text word words slip typo
		mistake question questions conversion assumption suggestion note notes email mail passphrase local environment path type types function
		method argument variable package module browser computer device page site password proof derivation graph plot
		chart essay list diagram map label title heading citation source reference quote translation summary said wrote
		told`},
}

// hardenedVerbs lists verbs by class; they are put in the lexicon in all their forms.
var hardenedVerbs = []struct {
	class wordClass
	verbs string
}{
	{clsForget | clsDismiss, "forget ignore disregard override"},
	{clsDismiss, `dismiss bypass circumvent renounce reject repudiate drop discard abandon shed ditch erase delete
		remove disable scrap suspend lift break violate unlearn overwrite nullify revoke purge wipe defy disobey quit
		betray leave evade subvert escape relinquish forsake`},
	{clsBecome, "become"},
	{clsMove, "switch slip shift transform turn morph convert change"},
	{clsPlay, "act behave roleplay pretend pose masquerade play"},
	{clsSpeak, `respond answer reply speak talk operate proceed continue write work function converse think reason live
		exist act behave go run be chat serve`},
	{clsTake, "assume adopt take embrace embody wear accept"},
	{clsSuppose, "suppose assume imagine pretend"},
	{clsEnable, `enter activate enable engage load use unlock unleash launch initiate install give show choose pick
		start reveal wake open summon`},
	{clsChange, "change rewrite replace alter modify redefine reinvent let make swap reshape transform shift"},
	{0, "consider"},
	{clsSet, "set treat regard throw put push cast lay"},
}

// irregularForms are forms that suffixes do not make.
var irregularForms = []struct {
	form, verb string
	class      wordClass
}{
	{"forgot", "forget", clsFin}, {"forgotten", "forget", clsFin}, {"overrode", "override", clsFin},
	{"broke", "break", clsFin}, {"left", "leave", clsFin}, {"became", "become", clsFin}, {"took", "take", clsFin},
	{"taken", "take", clsFin}, {"forsook", "forsake", clsFin}, {"forsaken", "forsake", clsFin},
}

// contractedSuffixes are what may follow an apostrophe, and contractedWords what is written without one.
var (
	contractedSuffixes = map[string]string{
		"re": "are", "r": "are", "ll": "will", "d": "would", "ve": "have", "m": "am", "t": "not", "s": "s",
	}
	contractedWords = map[string][2]string{
		"youre": {"you", "are"}, "youve": {"you", "have"}, "youll": {"you", "will"}, "dont": {"do", "not"},
		"lets": {"let", "us"}, "ure": {"you", "are"},
	}
)

// A lexicon numbers words, from 1, and knows what they are.
type lexicon struct {
	classes  []wordClass // by number; 0 is every unknown word
	ids      wordTable   // by the word
	shapes   wordTable   // by what the word looks like, see shapeOfWord
	suffixes wordTable
	pairs    map[uint16][2]uint16 // words that are two
}

func newLexicon(literals []string) *lexicon {
	var words []string
	classes := make(map[string]wordClass)
	add := func(word string, class wordClass) {
		if _, known := classes[word]; !known {
			words = append(words, word)
		}
		classes[word] |= class
	}
	for _, literal := range literals {
		add(literal, 0)
	}
	for _, group := range hardenedWords {
		for _, word := range strings.Fields(group.words) {
			add(word, group.class)
		}
	}
	for _, group := range hardenedVerbs {
		for _, verb := range strings.Fields(group.verbs) {
			verbForms(verb, func(form, suffix string) {
				if len(form) > maxPackedWord {
					return
				}
				switch suffix {
				case "":
					add(form, group.class|clsBase)
				case "ing":
					add(form, group.class|clsIng)
				default:
					add(form, group.class|clsFin)
				}
			})
		}
	}
	for _, irregular := range irregularForms {
		add(irregular.form, classes[irregular.verb]&^(clsBase)|irregular.class)
	}
	for _, long := range contractedSuffixes {
		add(long, 0)
	}
	for short, long := range contractedWords {
		add(short, clsPair)
		add(long[0], 0)
		add(long[1], 0)
	}
	l := &lexicon{
		classes: make([]wordClass, 1, len(words)+1), ids: newWordTable(len(words)), shapes: newWordTable(len(words)),
		suffixes: newWordTable(len(contractedSuffixes)), pairs: make(map[uint16][2]uint16),
	}
	var shape [maxPackedWord]byte
	for _, word := range words {
		id := uint16(len(l.classes))
		l.ids.add(word, id)
		if looks := string(shape[:shapeOfWord(shape[:], word)]); l.shapes.get(packWord(looks, 0, len(looks))) == 0 {
			l.shapes.add(looks, id)
		}
		class := classes[word]
		if class == 0 {
			class = clsUnknown // in some pattern, but nothing in general
		}
		l.classes = append(l.classes, class)
	}
	for short, long := range contractedSuffixes {
		l.suffixes.add(short, l.id(long))
	}
	for short, long := range contractedWords {
		l.pairs[l.id(short)] = [2]uint16{l.id(long[0]), l.id(long[1])}
	}
	return l
}

func (l *lexicon) id(word string) uint16 { return l.ids.get(packWord(word, 0, len(word))) }

// shapeOfWord writes into buf what a word of lower-case letters looks like, and returns its length: the letters i and l
// are one, and so are m and rn, w and vv.
func shapeOfWord(buf []byte, word string) int {
	n := 0
	for i := range len(word) {
		c := word[i]
		switch {
		case c == 'l':
			c = 'i'
		case c == 'n' && n > 0 && buf[n-1] == 'r':
			buf[n-1] = 'm'
			continue
		case c == 'v' && n > 0 && buf[n-1] == 'v':
			buf[n-1] = 'w'
			continue
		}
		buf[n] = c
		n++
	}
	return n
}

// pair returns the two words that a word stands for.
func (l *lexicon) pair(id uint16) ([2]uint16, bool) {
	if l.classes[id]&clsPair == 0 {
		return [2]uint16{}, false
	}
	return l.pairs[id], true
}
