package review

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// Point is a place in a project's lineage: a kind and a digest. Nothing of a
// spec's text is in it, so that it may stay when the spec is erased.
type Point [33]byte

// PointKind is what a Point stands for.
type PointKind byte

const (
	PointSHA256 PointKind = 1 // the bytes of an input; the rest is their sha256
	PointDigest PointKind = 2 // another digest of them
	PointURI    PointKind = 3 // a URI, or another name that is no digest
	PointInput  PointKind = 4 // an input with exactly these names
	PointMade   PointKind = 5 // such an input as what something was made into
	PointInputs PointKind = 6 // all inputs of a spec
)

// Kind tells what the point stands for.
func (p Point) Kind() PointKind { return PointKind(p[0]) }

// Name reports whether specs write this point: a digest, a URI.
func (p Point) Name() bool { return p.Kind() <= PointURI }

// String is a fingerprint: enough to tell points apart, and to find them again.
func (p Point) String() string { return hex.EncodeToString(p[:]) }

// Link says that what Child stands for comes from what Parent stands for.
type Link struct{ Child, Parent Point }

func (a Link) compare(b Link) int {
	return cmp.Or(bytes.Compare(a.Child[:], b.Child[:]), bytes.Compare(a.Parent[:], b.Parent[:]))
}

// Lineage is what a spec says about where its data comes from.
type Lineage struct {
	Inputs Point  // from here every other point of the spec is reached
	Links  []Link // sorted, each once; as many as the spec has names and parents
}

// LineageOf reads the lineage of a spec. An input is known by every digest that
// pins its bytes, its id if that is one, and every URI that it gives. What it names
// as a parent is taken for the input of the same spec with that id, and for whatever
// else is called so; an input without any name passes on what it comes from. The
// training examples that were screened with the spec are an input too.
//
//	all inputs → each name of one;  name → made → each parent
//
// Where many names meet many parents, the links go through one point, so that
// their number does not multiply.
func LineageOf(spec *screening.ParsedSpec) Lineage {
	l := lineage{spec: spec, byID: map[string]int{}, names: make([][]Point, len(spec.Inputs)), called: map[string][]Point{}, links: map[Link]bool{}}
	for i := range spec.Inputs {
		l.byID[spec.Inputs[i].ID] = i
		l.names[i] = sorted(namesOf(&spec.Inputs[i]))
	}
	l.content = l.digest()
	var tops []Point
	for i := range spec.Inputs {
		tops = append(tops, l.names[i]...)
		if len(refs(&spec.Inputs[i])) == 0 {
			continue
		}
		made := l.made(i)
		for _, p := range l.parents(i) {
			l.link(made, p)
		}
		for _, n := range l.names[i] {
			l.link(n, made)
		}
		if len(l.names[i]) == 0 {
			tops = append(tops, made)
		}
	}
	if e := spec.Evidence.Examples; e != nil {
		if name, _, ok := readDigest(e.SHA256); ok {
			tops = append(tops, name)
		}
	}
	slices.SortFunc(tops, comparePoints)
	tops = slices.Compact(tops)
	out := Lineage{Links: make([]Link, 0, len(l.links)+len(tops))}
	for link := range l.links {
		out.Links = append(out.Links, link)
	}
	slices.SortFunc(out.Links, Link.compare)
	// The digest is over all of it: who knows the point knows every link.
	all := slices.Clone(tops)
	for _, link := range out.Links {
		all = append(all, link.Child, link.Parent)
	}
	out.Inputs = pointOf(PointInputs, all...)
	for _, top := range tops {
		out.Links = append(out.Links, Link{out.Inputs, top})
	}
	slices.SortFunc(out.Links, Link.compare)
	return out
}

// Points gives every point of the lineage, each once.
func (l *Lineage) Points() []Point {
	all := []Point{l.Inputs}
	for _, link := range l.Links {
		all = append(all, link.Child, link.Parent)
	}
	slices.SortFunc(all, comparePoints)
	return slices.Compact(all)
}

// NamesOf gives, for every name that a spec writes, its words.
func NamesOf(spec *screening.ParsedSpec) map[Point]string {
	words := map[Point]string{}
	for i := range spec.Inputs {
		in := &spec.Inputs[i]
		maps.Copy(words, namesOf(in))
		for _, ref := range refs(in) {
			maps.Copy(words, textPoints(ref.Ref))
		}
	}
	if e := spec.Evidence.Examples; e != nil {
		if name, text, ok := readDigest(e.SHA256); ok {
			words[name] = text
		}
	}
	return words
}

// lineage is the reading of one spec.
type lineage struct {
	spec    *screening.ParsedSpec
	byID    map[string]int
	names   [][]Point          // of each input, sorted
	called  map[string][]Point // what each parent is outside of the spec
	links   map[Link]bool
	content screening.Digest256 // of all that lineage is read from
}

func (l *lineage) link(child, parent Point) {
	if child != parent {
		l.links[Link{child, parent}] = true
	}
}

// digest covers the names and parents of all inputs: two specs that agree in them
// share every point, whatever else they say.
func (l *lineage) digest() screening.Digest256 {
	var b []byte
	text := func(s string) { b = append(strconv.AppendInt(b, int64(len(s)), 10), " "+s...) }
	for i := range l.spec.Inputs {
		in := &l.spec.Inputs[i]
		text(in.ID)
		for _, n := range l.names[i] {
			text(string(n[:]))
		}
		for _, ref := range refs(in) {
			text("from " + ref.Ref)
		}
	}
	return screening.Sum(b)
}

// made is the point of an input as what its parents were made into. One without a
// name is known in this lineage only.
func (l *lineage) made(i int) Point {
	if len(l.names[i]) > 0 {
		return pointOf(PointMade, l.names[i]...)
	}
	return sumPoint(PointMade, strconv.AppendInt(l.content[:], int64(i), 10))
}

// parents gives the points that an input comes from. That the spec has an input
// with the parent's name does not hide what others call so: a digest can be an id.
func (l *lineage) parents(i int) (out []Point) {
	for _, ref := range refs(&l.spec.Inputs[i]) {
		points, read := l.called[ref.Ref]
		if !read {
			points = sorted(textPoints(ref.Ref))
			l.called[ref.Ref] = points
		}
		out = append(out, points...)
		j, local := l.byID[ref.Ref]
		switch {
		case !local, j == i:
		case len(l.names[j]) > 0:
			out = append(out, l.input(j))
		case len(refs(&l.spec.Inputs[j])) > 0:
			out = append(out, l.made(j))
		}
	}
	return out
}

// input is the point of an input that has names: the one, or one that comes from all.
func (l *lineage) input(i int) Point {
	names := l.names[i]
	if len(names) == 1 {
		return names[0]
	}
	p := pointOf(PointInput, names...)
	for _, n := range names {
		l.link(p, n)
	}
	return p
}

func refs(in *screening.Input) (all []screening.LineageRef) {
	if in.Lineage == nil {
		return nil
	}
	return slices.Concat(in.Lineage.DerivedFrom, in.Lineage.BaseModels, in.Lineage.GeneratedByModels, in.Lineage.Activities)
}

// namesOf gives what an input is known by, with its words.
func namesOf(in *screening.Input) map[Point]string {
	names := map[Point]string{}
	for _, d := range in.Digests {
		if p, text, ok := digestPoint(d.Alg, d.Value); ok {
			names[p] = text
		}
	}
	if p, text, ok := readDigest(in.ID); ok {
		names[p] = text
	}
	for _, uri := range in.URIs {
		maps.Copy(names, textPoints(uri))
	}
	return names
}

// textPoints gives the points of a URI or another name, and of the digest that it
// is or ends with.
func textPoints(text string) map[Point]string {
	text = NormalURI(text)
	if screening.IsBlank(text) {
		return nil
	}
	digest, words, whole, ok := digestIn(text)
	if whole {
		return map[Point]string{digest: words}
	}
	points := map[Point]string{sumPoint(PointURI, []byte(text)): text}
	if ok {
		points[digest] = words
	}
	return points
}

// URIPoint is the point of a URI or another name as a recall gives it: that of the
// digest that it is or ends with, if there is one.
func URIPoint(text string) Point {
	text = NormalURI(text)
	if p, _, _, ok := digestIn(text); ok {
		return p
	}
	return sumPoint(PointURI, []byte(text))
}

// SHA256Point is the point of the bytes with a digest.
func SHA256Point(sum screening.Digest256) Point {
	p := Point{byte(PointSHA256)}
	copy(p[1:], sum[:])
	return p
}

// digestIn reads the digest that a name in its normal form is as a whole
// ("sha256:<hex>", 64 hex digits, "urn:sha256:<hex>", "sha256://<hex>"), or ends
// with after "@" or "/" ("registry/image@sha256:<hex>"). A query, a fragment and
// slashes after it do not matter.
func digestIn(text string) (p Point, words string, whole, ok bool) {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		text = text[:i]
	}
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	text = strings.TrimRight(text, "/")
	if p, words, ok = readDigest(strings.Replace(strings.TrimPrefix(text, "urn:"), "://", ":", 1)); ok {
		return p, words, true, true
	}
	if i := strings.LastIndexAny(text, "@/"); i >= 0 && strings.Contains(text[i:], ":") {
		p, words, ok = readDigest(text[i+1:])
	}
	return p, words, false, ok
}

// readDigest reads "alg:hex", or the hex of a sha256, of a digest that pins bytes.
func readDigest(text string) (p Point, words string, ok bool) { return digestPoint("sha256", text) }

// digestPoint reads a digest that pins bytes. An algorithm before the value is the
// value's own.
func digestPoint(alg, value string) (p Point, words string, ok bool) {
	if own, rest, named := strings.Cut(value, ":"); named {
		alg, value = own, rest
	}
	alg = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(alg)), "-", "") // SHA-256 is written too
	value = strings.ToLower(strings.TrimSpace(value))
	if !(screening.Digest{Alg: alg, Value: value}).Pins() {
		return p, "", false
	}
	words = alg + ":" + value
	if alg != "sha256" {
		return sumPoint(PointDigest, []byte(words)), words, true
	}
	p[0] = byte(PointSHA256)
	_, err := hex.Decode(p[1:], []byte(value))
	return p, words, err == nil
}

func sumPoint(kind PointKind, data []byte) Point {
	p := Point{byte(kind)}
	sum := screening.Sum(data)
	copy(p[1:], sum[:])
	return p
}

func pointOf(kind PointKind, from ...Point) Point {
	data := make([]byte, 0, len(from)*len(Point{}))
	for _, p := range from {
		data = append(data, p[:]...)
	}
	return sumPoint(kind, data)
}

func sorted(points map[Point]string) []Point {
	return slices.SortedFunc(maps.Keys(points), comparePoints)
}

func comparePoints(a, b Point) int { return bytes.Compare(a[:], b[:]) }
