package formats

import (
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// license takes over what a source declares, in its own words: a text, an
// address, an object with name and address, a list of these, or a map of them
// for the parts of a data set. What is there and names no licence is one that is
// not known.
func (r *reader) license(rec *Record, v value, scope string) {
	r.take(v)
	for _, item := range v.each() {
		switch {
		case item.kind == isList:
			r.license(rec, item, scope)
		case item.kind == isMap:
			if !r.licenseObject(rec, item, scope) {
				r.find(Unreadable, "license", item.at, "names no licence")
				r.declare(rec, screening.DeclaredLicense{Raw: "unknown", Scope: scope}, item.at)
			}
		default:
			r.declare(rec, licenseIn(r.text(item, "license"), scope), item.at)
		}
	}
}

// licenseIn tells addresses from words.
func licenseIn(s, scope string) screening.DeclaredLicense {
	if strings.HasPrefix(strings.ToLower(s), "http") && !strings.ContainsAny(s, " \t\n") {
		return screening.DeclaredLicense{URL: s, Scope: scope}
	}
	return screening.DeclaredLicense{Raw: s, Scope: scope}
}

// licenseObject reads one object and reports whether it says anything.
func (r *reader) licenseObject(rec *Record, item value, scope string) (said bool) {
	names, urls := item.named("name", "license", "id", "identifier"), item.named("url", "@id", "license_url", "location")
	if len(names)+len(urls) > 0 {
		for i := range max(len(names), len(urls)) { // pairs, if it says either twice
			d := screening.DeclaredLicense{Scope: scope}
			if i < len(names) {
				d.Raw = r.text(names[i], "license")
			}
			if i < len(urls) {
				d.URL = r.text(urls[i], "license")
			}
			said = r.declare(rec, d, item.at) || said
		}
		return said
	}
	for i, key := range item.keys {
		m := item.member(i)
		switch {
		case key == "@value" || key == "@list" || key == "@set" || key == "@graph":
			said = said || m.given()
			r.license(rec, m, scope)
		case !strings.HasPrefix(key, "@"): // by part
			said = said || m.given()
			r.license(rec, m, key)
		}
	}
	return said
}

// take marks a value as terms of use that are read, see sweep.
func (r *reader) take(vs ...value) {
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	for _, v := range vs {
		r.taken[v.at] = true
	}
}

// declare adds a statement and reports whether it says anything.
func (r *reader) declare(rec *Record, l screening.DeclaredLicense, at string) bool {
	if l == (screening.DeclaredLicense{Scope: l.Scope}) {
		return false
	}
	if slices.Contains(rec.License.Declared, l) {
		return true
	}
	if len(rec.License.Declared) == maxList {
		r.find(Unreadable, "license", at, "there are more than 200 licences; the rest is in the file")
		return true
	}
	for _, s := range []string{l.Raw, l.SPDX} {
		r.placeholder(s, "license", at)
	}
	rec.From["/license/declared/"+strconv.Itoa(len(rec.License.Declared))] = at
	rec.License.Declared = append(rec.License.Declared, l)
	return true
}

// conclude takes over what the author of a file concluded. Of two conclusions both hold.
func (r *reader) conclude(rec *Record, expression, at string) {
	if c := rec.License.Concluded; c != "" && c != expression {
		r.find(Contradiction, "license", at, "two licences are concluded")
		expression = "(" + c + ") AND (" + expression + ")"
	}
	rec.License.Concluded, rec.From["/license/concluded"] = expression, at
}

// conclusion keeps open what the author of a file concluded over a licence that
// cannot be read: to settle that is for a person here.
func (r *reader) conclusion(rec *Record) {
	alone := rec.License
	alone.Concluded = ""
	if _, identified := alone.Stated(); rec.License.Concluded != "" && !identified && !screening.IsPlaceholder(rec.License.Concluded) {
		r.find(Unresolved, "license", strings.TrimSpace(rec.From["/license/concluded"]), "is what the author of the file concluded, not what the source declares; confirm it")
	}
}

// restrict adds a restriction that a coded field states.
func (rec *Record) restrict(code, at string) {
	if !slices.Contains(rec.License.Restrictions, code) {
		rec.From["/license/restrictions/"+strconv.Itoa(len(rec.License.Restrictions))] = at
		rec.License.Restrictions = append(rec.License.Restrictions, code)
	}
}

// allOf gives a licence as one text, which holds all that it says.
func allOf(l *screening.License) string {
	var all []string
	for _, d := range l.Declared {
		all = append(all, firstWords(d.SPDX, d.Raw, d.URL))
	}
	if l.Concluded != "" {
		all = append(all, l.Concluded)
	}
	return strings.Join(append(all, l.Restrictions...), " AND ")
}
