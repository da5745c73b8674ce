package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/review"
	"weir/screening"
)

func parse(t testing.TB, inputs string) *screening.ParsedSpec {
	t.Helper()
	spec, err := screening.ParseSpec([]byte("schema: weir/spec/v1\nrun_ref: r\nowner: ana\nobjective: {kind: sft}\ninputs: [" + inputs + "]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// comesFrom gives every point that a spec's inputs lead up to.
func comesFrom(l review.Lineage) map[review.Point]bool {
	reached := map[review.Point]bool{l.Inputs: true}
	for grew := true; grew; {
		grew = false
		for _, link := range l.Links {
			if reached[link.Child] && !reached[link.Parent] {
				reached[link.Parent], grew = true, true
			}
		}
	}
	return reached
}

// uriPoint is the point of a URI that ends with a digest, as what it is besides.
func uriPoint(uri string) review.Point {
	p := review.SHA256Point(screening.Sum([]byte(uri)))
	p[0] = byte(review.PointURI)
	return p
}

func TestLineageOf(t *testing.T) {
	t.Parallel()
	sum := func(s string) string { return screening.Sum([]byte(s)).String() }
	in := func(id, rest string) string { return "{id: " + id + ", kind: dataset" + rest + "}" }
	for name, tt := range map[string]struct {
		inputs string
		named  []review.Point
	}{
		"nothing":          {in("a", ""), nil},
		"digest and URI":   {in("a", ", uris: [s3://x], digests: [{alg: sha256, value: "+sum("a")+"}]"), []review.Point{review.URIPoint("s3://x"), review.SHA256Point(screening.Sum([]byte("a")))}},
		"digest with alg":  {in("a", ", digests: [{alg: sha256, value: 'sha256:"+sum("a")+"'}]"), []review.Point{review.SHA256Point(screening.Sum([]byte("a")))}},
		"digest padded":    {in("a", ", digests: [{alg: sha256, value: ' SHA-256: "+sum("a")+" '}]"), []review.Point{review.SHA256Point(screening.Sum([]byte("a")))}},
		"id is a digest":   {in(sum("a"), ""), []review.Point{review.SHA256Point(screening.Sum([]byte("a")))}},
		"made from its id": {in(sum("a"), ", uris: [s3://x], lineage: {derived_from: [{ref: "+sum("a")+"}]}"), []review.Point{review.SHA256Point(screening.Sum([]byte("a"))), review.URIPoint("s3://x")}},
		"id is a parent's": {in("a", ", lineage: {derived_from: [{ref: imagenet}]}") + ", " + in("imagenet", ""), []review.Point{review.URIPoint("imagenet")}},
		"weak digest":      {in("a", ", digests: [{alg: md5, value: d41d8cd98f00b204e9800998ecf8427e}, {alg: sha256, value: abc}]"), nil},
		"outside parent":   {in("a", ", lineage: {base_models: [{ref: org/base}]}"), []review.Point{review.URIPoint("org/base")}},
		"pinned image":     {in("a", ", uris: [reg.example/x@sha256:"+sum("i")+"]"), []review.Point{review.SHA256Point(screening.Sum([]byte("i"))), uriPoint("reg.example/x@sha256:" + sum("i"))}},
		"itself":           {in("a", ", lineage: {derived_from: [{ref: a}]}"), []review.Point{review.URIPoint("a")}},
		"through nameless": {in("a", ", uris: [s3://a], lineage: {derived_from: [{ref: b}]}") + ", " + in("b", ", lineage: {activities: [{ref: c}]}") + ", " + in("c", ", lineage: {generated_by_models: [{ref: teacher}]}"), []review.Point{review.URIPoint("s3://a"), review.URIPoint("b"), review.URIPoint("c"), review.URIPoint("teacher")}},
		"circle":           {in("a", ", lineage: {derived_from: [{ref: b}, {ref: x}]}") + ", " + in("b", ", lineage: {derived_from: [{ref: a}]}"), []review.Point{review.URIPoint("a"), review.URIPoint("b"), review.URIPoint("x")}},
	} {
		l := review.LineageOf(parse(t, tt.inputs))
		got := []review.Point{}
		for p := range comesFrom(l) {
			if p.Name() {
				got = append(got, p)
			}
		}
		less := func(a, b review.Point) int { return slices.Compare(a[:], b[:]) }
		slices.SortFunc(got, less)
		want := append([]review.Point{}, tt.named...)
		if slices.SortFunc(want, less); !slices.Equal(got, want) {
			t.Errorf("%s: names %v, want %v", name, got, want)
		}
		for _, p := range l.Points() {
			if !comesFrom(l)[p] {
				t.Errorf("%s: %s is not reached from the inputs", name, p)
			}
		}
		words := review.NamesOf(parse(t, tt.inputs))
		for _, p := range want {
			if words[p] == "" {
				t.Errorf("%s: no words for %s", name, p)
			}
		}
	}
	if e := review.LineageOf(exampleSpec(t, sum("examples"))); !comesFrom(e)[review.SHA256Point(screening.Sum([]byte("examples")))] {
		t.Error("the screened training examples are no input")
	}
}

func exampleSpec(t testing.TB, sum string) *screening.ParsedSpec {
	t.Helper()
	spec, err := screening.ParseSpec([]byte("schema: weir/spec/v1\nrun_ref: r\nowner: ana\nobjective: {kind: sft}\ninputs: [{id: a, kind: dataset}]\n" +
		"evidence: {examples: {sha256: " + sum + ", count: 1, hits: 0, ids: []}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// The links of a spec are as many as what it says, not as its square.
func TestLineageStaysSmall(t *testing.T) {
	t.Parallel()
	const n, names = 60, 60
	var inputs []string
	said := 0
	for i := range n {
		var uris, refs []string
		for j := range names {
			uris = append(uris, fmt.Sprintf("s3://%d/%d", i, j))
		}
		for j := range n {
			refs = append(refs, fmt.Sprintf("{ref: d%d}", j))
		}
		said += len(uris) + len(refs)
		inputs = append(inputs, fmt.Sprintf("{id: d%d, kind: dataset, uris: [%s], lineage: {derived_from: [%s]}}", i, strings.Join(uris, ", "), strings.Join(refs, ", ")))
	}
	l := review.LineageOf(parse(t, strings.Join(inputs, ", ")))
	if most := 3 * said; len(l.Links) > most {
		t.Errorf("%d links of %d statements, want at most %d", len(l.Links), said, most)
	}
}

// The point of all inputs is the same exactly if all links are: who has stored the
// one has stored the others.
func TestInputsPointCoversEveryLink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func() review.Lineage {
			var inputs []string
			for i := range rapid.IntRange(1, 3).Draw(rt, "inputs") {
				uris := rapid.SliceOfN(rapid.SampledFrom([]string{"s3://a", "s3://b"}), 0, 2).Draw(rt, "uris")
				refs := rapid.SliceOfN(rapid.SampledFrom([]string{"d0", "d1", "d2", "x", "s3://a"}), 0, 2).Draw(rt, "refs")
				for j := range refs {
					refs[j] = "{ref: '" + refs[j] + "'}"
				}
				inputs = append(inputs, fmt.Sprintf("{id: d%d, kind: dataset, uris: [%s], lineage: {derived_from: [%s]}}", i, strings.Join(uris, ", "), strings.Join(refs, ", ")))
			}
			return review.LineageOf(parse(t, strings.Join(inputs, ", ")))
		}
		strip := func(l review.Lineage) (links []review.Link) {
			for _, link := range l.Links {
				if link.Child == l.Inputs {
					link.Child = review.Point{}
				}
				links = append(links, link)
			}
			return links
		}
		a, b := draw(), draw()
		sort := func(l []review.Link) []review.Link {
			slices.SortFunc(l, func(a, b review.Link) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			return l
		}
		if same := slices.Equal(sort(strip(a)), sort(strip(b))); same != (a.Inputs == b.Inputs) {
			rt.Errorf("links equal: %v, points equal: %v", same, a.Inputs == b.Inputs)
		}
	})
}
