package screening

import (
	"regexp"
	"slices"
	"strings"
)

// licenseStatusFact says whether it is known which licence applies. A licence
// that is named but not understood is unidentified, never allowed.
func licenseStatusFact(f *facts, i int) fact {
	terms := f.license(i)
	found := fact{stated: terms.stated, key: "/license"}
	switch {
	case !terms.stated:
	case terms.identified:
		found.values = only(licenseStatuses, "identified")
	default:
		found.values = only(licenseStatuses, "unidentified")
		found.key, found.nth = terms.open.key, terms.open.nth
	}
	return found
}

func licenseRestrictionsFact(f *facts, i int) fact {
	terms := f.license(i)
	return fact{stated: terms.stated, unknown: !terms.identified || !terms.settled, values: terms.restrictions, key: "/license"}
}

// license reads the licence of an input, once.
func (f *facts) license(i int) *licenseTerms {
	t := &f.licenses[i]
	if t.open.key == "" {
		in := f.input(i)
		*t = in.License.read(in.Lineage)
	}
	return t
}

// licenseTerms is what all statements about a licence come to.
type licenseTerms struct {
	stated       bool
	identified   bool
	settled      bool     // restrictions are all there are
	restrictions []string // in the order of restrictionCodes; one stated anywhere is never lost
	open         place    // in the input, of the first statement not understood
}

// read sums up everything that is said of a licence: what the entries declare, in
// SPDX, in the source's words and by URL, what a person concluded, and what the
// parents that are named here come with.
func (l *License) read(lineage *Lineage) licenseTerms {
	t := licenseTerms{stated: len(l.Declared) > 0 || l.Concluded != "" || len(l.Restrictions) > 0, open: place{key: "/license"}}
	set := restrictionsOf(l.Restrictions...)
	understood, settled := 0, true
	part, whole := "", false // one part alone says nothing of the rest; two divide the whole
	for i := range l.Declared {
		d := l.Declared[i].read()
		set |= d.restrictions
		if !d.understood || d.contradicts {
			if t.open.key == "/license" {
				t.open = place{key: "/license/declared", nth: i + 1}
			}
			continue
		}
		understood++
		settled = settled && d.settled
		scope := l.Declared[i].Scope
		whole = whole || !isPart(scope) || part != "" && part != scope
		part = scope
	}
	t.identified = understood > 0 && understood == len(l.Declared) && whole
	// A person's conclusion settles a declared licence that could not be read,
	// leaves a choice or contradicts itself, but takes no restriction away.
	if stands(l.Concluded) {
		shared, one, ok := readExpression(l.Concluded).sum()
		set |= shared
		settled = one
		if t.identified = ok; !ok {
			t.open = place{key: "/license/concluded"}
		}
	}
	if lineage != nil {
		for _, refs := range [][]LineageRef{lineage.DerivedFrom, lineage.BaseModels, lineage.GeneratedByModels} {
			for _, ref := range refs {
				if stands(ref.License) {
					shared, _, _ := readExpression(licenseAlias(ref.License)).sum()
					set |= shared
				}
			}
		}
	}
	t.restrictions = set.codes()
	t.settled = settled && !slices.Contains(l.Restrictions, "unknown")
	return t
}

// declaredTerms is what one entry comes to.
type declaredTerms struct {
	restrictions restrictionSet
	understood   bool
	settled      bool
	contradicts  bool
}

// read looks at all three ways in which an entry can name its licence. They have
// to agree; a contradiction is not understood, and its restrictions add up.
func (d *DeclaredLicense) read() (t declaredTerms) {
	if common, ok := commonLicenses()[d.SPDX]; ok && d.Raw == "" && d.URL == "" { // nearly all
		return common
	}
	t.settled = true
	var agreed restrictionSet
	for _, text := range []string{d.SPDX, d.Raw, d.URL} {
		if !stands(text) {
			continue
		}
		set, one, ok := readExpression(licenseAlias(text)).sum()
		t.restrictions |= set
		switch {
		case !ok && text == d.SPDX:
			return t // an expression that is given as one has to be understood
		case !ok: // words and addresses are often more than a licence
		case !t.understood:
			t.understood, t.settled, agreed = true, one, set
		case set != agreed || one != t.settled:
			t.contradicts = true
		}
	}
	return t
}

var spaces = regexp.MustCompile(`\s+`)

// licenseAlias maps a source's own words to an SPDX expression, or gives them
// back for the parser to try.
func licenseAlias(raw string) string {
	raw = strings.TrimSpace(spaces.ReplaceAllString(raw, " "))
	key := strings.TrimSuffix(strings.ToLower(raw), "/")
	if id, ok := licenseAliases[key]; ok {
		return id
	}
	if !strings.HasPrefix(key, "http") && !strings.HasPrefix(key, "cc") {
		return raw // what the patterns below begin with
	}
	if m := licenseURL.FindStringSubmatch(key); m != nil {
		key = m[1]
		raw = key
	}
	if m := ccURL.FindStringSubmatch(key); m != nil {
		return "CC-" + m[1] + "-" + m[2]
	}
	if m := ccWords.FindStringSubmatch(key); m != nil {
		return "CC-" + strings.ReplaceAll(m[1], " ", "-") + "-" + m[2]
	}
	if id, ok := licenseAliases[key]; ok {
		return id
	}
	return raw
}

var (
	// pages that are named by the id of the licence
	licenseURL = regexp.MustCompile(`^https?://(?:www\.)?(?:choosealicense\.com/licenses|spdx\.org/licenses|opensource\.org/licenses?)/([a-z0-9.+-]+?)(?:\.html)?$`)
	ccURL      = regexp.MustCompile(`^https?://(?:www\.)?creativecommons\.org/licenses/(by(?:-nc)?(?:-nd|-sa)?)/([0-9]\.[0-9])(?:/.*)?$`)
	ccWords    = regexp.MustCompile(`^cc[ -](by(?:[ -]nc)?(?:[ -](?:nd|sa))?)[ -]([0-9]\.[0-9])$`)
)

// licenseAliases are Hub ids and common paraphrases that are not SPDX ids.
var licenseAliases = map[string]string{
	"apache 2.0": "Apache-2.0", "apache license 2.0": "Apache-2.0", "apache-2": "Apache-2.0",
	"mit license": "MIT", "the mit license": "MIT", "cc0": "CC0-1.0", "cc-0": "CC0-1.0", "public domain": "CC0-1.0",
	"https://creativecommons.org/publicdomain/zero/1.0": "CC0-1.0", "http://creativecommons.org/publicdomain/zero/1.0": "CC0-1.0",
	"https://www.apache.org/licenses/license-2.0": "Apache-2.0", "http://www.apache.org/licenses/license-2.0": "Apache-2.0",
	"odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0", "pddl": "PDDL-1.0", "bsd": "BSD-3-Clause", "gpl": "GPL-2.0-or-later",
	"gpl-3.0": "GPL-3.0-only", "gpl-2.0": "GPL-2.0-only", "lgpl-3.0": "LGPL-3.0-only", "agpl-3.0": "AGPL-3.0-only",
	"llama2": "LicenseRef-llama2", "llama3": "LicenseRef-llama3", "llama3.1": "LicenseRef-llama3.1",
	"llama3.2": "LicenseRef-llama3.2", "gemma": "LicenseRef-gemma", "openrail": "LicenseRef-openrail",
}
