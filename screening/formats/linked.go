package formats

import (
	"slices"
	"strings"
)

// vocabularies are the namespaces of Croissant, and the prefixes that stand for
// them where a file declares none.
var vocabularies = map[string]string{
	"schema.org/": "sc", "mlcommons.org/croissant/": "cr", "mlcommons.org/croissant/rai/": "rai", "mlcommons.org/croissant/1.0": "cr",
	"mlcommons.org/schema/": "cr", "www.w3.org/ns/prov#": "prov", "purl.org/dc/terms/": "dct",
}

var prefixes = map[string]string{"sc": "sc", "schema": "sc", "cr": "cr", "croissant": "cr", "ml": "cr", "rai": "rai", "prov": "prov",
	"dct": "dct", "dcterms": "dct"}

// terms expands keys; a file has few different ones.
type terms struct {
	context map[string]string // term or prefix → IRI
	known   map[string]term
}

// term is a key without its spelling. space is "" for a vocabulary that is not Croissant's.
type term struct{ space, name string }

// readTerms takes the context from the file itself, never from elsewhere.
func readTerms(root value) *terms {
	t := &terms{map[string]string{}, map[string]term{}}
	for _, c := range root.get("@context").each() {
		for i, key := range c.keys {
			to := c.member(i)
			if to.kind == isMap {
				to = to.get("@id")
			}
			if iri := to.words(); iri != "" {
				t.context[key] = iri
			}
		}
	}
	return t
}

func (t *terms) expand(key string) term {
	if x, ok := t.known[key]; ok {
		return x
	}
	x := t.look(key, 4)
	t.known[key] = x
	return x
}

func (t *terms) look(key string, hops int) term {
	if hops == 0 {
		return term{"", strings.ToLower(key)}
	}
	if strings.Contains(key, "://") {
		return vocabularyTerm(key)
	}
	if iri := t.context[key]; iri != "" && iri != key {
		return t.look(iri, hops-1)
	}
	if prefix, rest, ok := strings.Cut(key, ":"); ok {
		if space := t.context[prefix]; strings.Contains(space, "://") {
			return vocabularyTerm(space + rest)
		}
		return term{prefixes[strings.ToLower(prefix)], strings.ToLower(rest)}
	}
	if vocab := t.context["@vocab"]; strings.Contains(vocab, "://") {
		return vocabularyTerm(vocab + key)
	}
	return term{"sc", strings.ToLower(key)}
}

func vocabularyTerm(iri string) term {
	_, rest, _ := strings.Cut(strings.ToLower(iri), "://")
	if strings.HasPrefix(rest, "www.schema.org") {
		rest = rest[len("www."):]
	}
	best := term{"", localName(rest)}
	longest := 0
	for space, short := range vocabularies {
		if name, ok := strings.CutPrefix(rest, space); ok && len(space) > longest && name != "" {
			best, longest = term{short, strings.TrimPrefix(name, "/")}, len(space)
		}
	}
	return best
}

// linked is an object of the file with its keys expanded.
type linked struct {
	value
	t *terms
}

// all gives the members of a name, whatever vocabulary they were taken from:
// files mix schema.org and Croissant freely.
func (o linked) all(names ...string) (found []value) {
	if o.kind != isMap {
		return nil
	}
	for i, key := range o.keys {
		if x := o.t.expand(key); slices.Contains(names, x.name) {
			if m := o.member(i); m.given() {
				found = append(found, m)
			}
		}
	}
	return found
}

func (o linked) any(names ...string) value {
	for _, m := range o.all(names...) {
		return m
	}
	return noValue
}

// isA reports whether the object has a type, by its local name.
func (o linked) isA(names ...string) bool {
	for _, v := range o.get("@type").each() {
		if slices.Contains(names, o.t.expand(v.words()).name) {
			return true
		}
	}
	return false
}
