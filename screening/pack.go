package screening

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// PackSchema is the value of a native pack's schema key.
const PackSchema = "weir/pack/v1"

// FloorID is the id of the shipped safety pack, which is always in force.
const FloorID = "safety_floor"

// Layer says what a pack is: the floor under everybody, or a deployment's pledge.
type Layer string

const (
	Safety Layer = "safety"
	Ethics Layer = "ethics"
)

// Pack is a loaded pack: it is well-formed, but not by that in force.
type Pack struct {
	ID                   string `json:"id"`
	Version              string `json:"version"`
	Layer                Layer  `json:"layer"`
	Title                string `json:"title"`
	Description          string `json:"description"`
	PreferredHedgeSoft   string `json:"preferred_hedge_soft"`
	PreferredHedgeStrong string `json:"preferred_hedge_strong"`
	// Extends makes the pack a deployment profile: it is bound to these packs, and
	// Raises makes terms of theirs stricter.
	Extends []Extended `json:"extends,omitzero"`
	Raises  []Raise    `json:"raises,omitzero"`
	Terms   []Term     `json:"terms"` // in lexical order of id; a profile need not have any
	Seal    string     `json:"mastery_report_sha256"`
	SHA256  Digest256  `json:"-"` // of the canonical form without the seal: the pack's identity

	doc *document
}

// Term is one entry of the harm vocabulary.
type Term struct {
	ID          string      `json:"id"`
	Title       string      `json:"title,omitzero"`
	Description string      `json:"description,omitzero"`
	Severity    string      `json:"severity,omitzero"` // low, medium, high or critical
	References  []Reference `json:"references,omitzero"`
	Over        []string    `json:"over,omitzero"`      // input kinds it is checked on; empty = the spec as a whole
	IfStated    []string    `json:"if_stated,omitzero"` // further kinds, where it asks for nothing: checked only where one of its tags is stated for the worse or as not known, or a text hints at it
	ViolatedIf  *clauseNode `json:"violated_if,omitzero"`
	Predicate   string      `json:"predicate,omitzero"`  // name of a registered predicate
	Structural  string      `json:"structural,omitzero"` // where it is enforced instead, for what no spec can show
	Response    Response    `json:"response,omitzero"`
	Unchecked   Response    `json:"unchecked,omitzero"` // effect when not checkable; see Term.unchecked for the default
	Remedy      string      `json:"remedy,omitzero"`    // what would make it pass

	// EffectiveFrom is the first day on which the term is in force, Sunset the first
	// on which it no longer is; "" = no bound. Asked by as_of alone.
	EffectiveFrom Day `json:"effective_from,omitzero"`
	Sunset        Day `json:"sunset,omitzero"`
}

// Reference points to an entry of a public taxonomy. The id is opaque.
type Reference struct {
	Scheme   string `json:"scheme"`
	ID       string `json:"id"`
	Relation string `json:"relation"` // exact, close, broad, narrow or related
	Version  string `json:"version"`
}

func (r *Reference) whole() bool {
	return r.Scheme != "" && r.ID != "" && slices.Contains(relations, r.Relation)
}

var (
	ownID      = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	severities = []string{"low", "medium", "high", "critical"}
	relations  = []string{"exact", "close", "broad", "narrow", "related"}
)

// LoadPack reads a pack in either form, native or commitment list, from its YAML
// or JSON bytes. name is the file name, for
// messages. Predicates are looked up in reg. The error is an [*InvalidError].
func LoadPack(name string, data []byte, reg *Registry) (*Pack, error) {
	doc, err := parseDocument("pack", name, data)
	if err != nil {
		return nil, err
	}
	read := readNative
	if isCommitmentList(doc) {
		read = readCommitmentList
	}
	p, ps, err := read(doc, reg)
	if err != nil {
		return nil, err
	}
	if err := ps.invalid("pack", name, doc); err != nil {
		return nil, err
	}
	p.doc = doc
	slices.SortFunc(p.Terms, func(a, b Term) int { return cmp.Compare(a.ID, b.ID) })
	if p.SHA256, err = digestWithout(doc.json, "mastery_report_sha256"); err != nil {
		return nil, err
	}
	return p, nil
}

func readNative(doc *document, reg *Registry) (*Pack, problems, error) {
	var wire struct {
		Schema string `json:"schema"`
		Pack
	}
	if err := doc.decodeNotes(&wire); err != nil {
		return nil, nil, err
	}
	var ps problems
	if wire.Schema != PackSchema {
		ps.add("/schema", "must be %q, or schema_version %q for a commitment list", PackSchema, commitmentListSchema)
	}
	wire.Pack.check(&ps, reg)
	return &wire.Pack, ps, nil
}

func readCommitmentList(doc *document, reg *Registry) (*Pack, problems, error) {
	var list commitmentList
	if err := doc.decodeNotes(&list); err != nil {
		return nil, nil, err
	}
	p, ps := list.pack(reg)
	return p, ps, nil
}

// digestWithout is the SHA-256 of the canonical form of an object without one member.
func digestWithout(doc jsontext.Value, member string) (Digest256, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(doc, &members); err != nil {
		return Digest256{}, err
	}
	delete(members, member)
	rest, err := json.Marshal(members)
	if err != nil {
		return Digest256{}, err
	}
	canonical, err := Canonical(rest)
	return Sum(canonical), err
}

func (p *Pack) check(ps *problems, reg *Registry) {
	if !ownID.MatchString(p.ID) {
		ps.add("/id", "must be 1 to 64 lower-case letters, digits or _, starting with a letter")
	}
	if p.Version == "" {
		ps.add("/version", "must not be empty")
	}
	if p.Layer != Safety && p.Layer != Ethics {
		ps.add("/layer", "must be safety or ethics")
	}
	if len(p.Terms) == 0 && len(p.Raises) == 0 {
		ps.add("/terms", "must not be empty: a pack that checks nothing would look like one that passes")
	}
	checkSeal(ps, p.Seal)
	p.checkProfile(ps)
	first := map[string]int{}
	for i := range p.Terms {
		t, at := &p.Terms[i], "/terms/"+strconv.Itoa(i)
		if j, dup := first[t.ID]; dup {
			ps.add(at+"/id", "term %s is also /terms/%d", t.ID, j)
		}
		first[t.ID] = i
		t.check(ps, at, p.Layer, reg)
	}
}

func checkSeal(ps *problems, seal string) {
	if seal == "" {
		return // not ratified yet: it loads, and is not in force
	}
	if _, err := ParseDigest256(seal); err != nil {
		ps.add("/mastery_report_sha256", "must be 64 lower-case hex digits; run weir pack ratify")
	}
}

func (t *Term) check(ps *problems, at string, layer Layer, reg *Registry) {
	bad := func(key, format string, args ...any) {
		ps.add(at+"/"+key, "term %s: %s", cmp.Or(t.ID, "without id"), fmt.Sprintf(format, args...))
	}
	if !ownID.MatchString(t.ID) {
		bad("id", "the id must be 1 to 64 lower-case letters, digits or _, starting with a letter")
	}
	if IsBlank(t.Title) {
		bad("title", "must not be blank")
	}
	if IsBlank(t.Description) {
		bad("description", "must not be blank")
	}
	if !slices.Contains(severities, t.Severity) {
		bad("severity", "must be one of %s", oneOf(severities))
	}
	for i, r := range t.References {
		if !r.whole() {
			bad("references/"+strconv.Itoa(i), "needs scheme, id and a relation of %s", oneOf(relations))
		}
	}
	switch {
	case t.Response == 0:
		bad("response", "must be one of block, escalate, hedge, observe")
	case layer == Safety && t.Response != Block:
		bad("response", "a safety term blocks; it cannot have another response")
	}
	if t.Unchecked == Block {
		bad("unchecked", "must be escalate, hedge or observe")
	}
	if t.Response == Block && t.Unchecked != 0 && t.Unchecked != Escalate {
		bad("unchecked", "a term that blocks must escalate when it cannot be checked")
	}
	if t.Response != Observe && t.Response != 0 && IsBlank(t.Remedy) {
		bad("remedy", "must say what would make it pass")
	}
	if t.Sunset != "" && t.Sunset <= t.EffectiveFrom {
		bad("sunset", "must be after effective_from, or the term would never be in force")
	}
	if layer == Safety && t.EffectiveFrom != "" {
		bad("effective_from", "a safety term is always in force; it cannot have dates")
	}
	if layer == Safety && t.Sunset != "" {
		bad("sunset", "a safety term is always in force; it cannot have dates")
	}
	ways := 0
	if t.ViolatedIf != nil {
		ways++
		c := compiler{term: t, safety: layer == Safety}
		c.compile(t.ViolatedIf, at+"/violated_if")
		*ps = append(*ps, c.problems...)
	}
	if t.Predicate != "" {
		ways++
		if !reg.has(t.Predicate) {
			bad("predicate", "is not a registered predicate; registered are %s", strings.Join(reg.names(), ", "))
		}
		if len(t.Over) > 0 {
			bad("over", "a registered predicate sees the whole spec; leave it out")
		}
	}
	if t.Structural != "" {
		ways++
		if IsBlank(t.Structural) {
			bad("structural", "must say where it is enforced instead")
		}
	}
	if ways > 1 {
		bad("violated_if", "has more than one of violated_if, predicate and structural; keep one")
	}
	for i, k := range t.Over {
		if !slices.Contains(inputKinds, k) {
			bad("over/"+strconv.Itoa(i), "must be one of %s", oneOf(inputKinds))
		}
	}
	for i, k := range t.IfStated {
		switch at := "if_stated/" + strconv.Itoa(i); {
		case !slices.Contains(inputKinds, k):
			bad(at, "must be one of %s", oneOf(inputKinds))
		case slices.Contains(t.Over, k):
			bad(at, "is in over already")
		case len(t.Over) == 0:
			bad(at, "goes with over; without it the term is about the spec as a whole")
		}
	}
}

// unchecked is the effect of a term that could not be checked. By default
// silence is never better than an honest answer, except where nothing could be
// answered at all.
func (t *Term) unchecked(cause Cause) Response {
	switch {
	case cause == CauseError:
		return Escalate
	case cause == CauseHint && t.Response >= Escalate:
		return Escalate
	case t.Unchecked != 0:
		return t.Unchecked
	case t.Response >= Escalate:
		return Escalate
	case t.Structural != "":
		return Observe
	default:
		return t.Response
	}
}

// hedges reports whether the term can ask for a hedge.
func (t *Term) hedges() bool { return t.Response == Hedge || t.Unchecked == Hedge }

// HedgeText is what the pack puts before a disclosure statement, "" if it has none.
func (p *Pack) HedgeText() string {
	if !IsBlank(p.PreferredHedgeSoft) {
		return p.PreferredHedgeSoft
	}
	if !IsBlank(p.PreferredHedgeStrong) {
		return p.PreferredHedgeStrong
	}
	return ""
}
