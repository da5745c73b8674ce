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
		*t = f.input(i).License.read()
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

func (l *License) read() licenseTerms {
	t := licenseTerms{stated: len(l.Declared) > 0 || l.Concluded != "" || len(l.Restrictions) > 0, open: place{key: "/license"}}
	set := restrictionsOf(l.Restrictions...)
	understood, settled := 0, true
	add := func(b branches) bool {
		if b == nil {
			return false
		}
		shared, one := b.shared()
		set |= shared
		settled = settled && one
		understood++
		return true
	}
	for i, d := range l.Declared {
		if !add(d.branches()) && t.open.key == "/license" {
			t.open = place{key: "/license/declared", nth: i + 1}
		}
	}
	t.identified = understood > 0 && understood == len(l.Declared)
	// A person's conclusion settles a declared licence that could not be read or
	// leaves a choice, but takes no restriction away.
	if stands(l.Concluded) {
		settled = true
		if t.identified = add(readExpression(l.Concluded)); !t.identified {
			t.open = place{key: "/license/concluded"}
		}
	}
	t.restrictions = set.codes()
	t.settled = settled && !slices.Contains(l.Restrictions, "unknown")
	return t
}

func (d *DeclaredLicense) branches() branches {
	if b := commonLicenses()[d.SPDX]; b != nil {
		return b
	}
	return readExpression(d.expression())
}

// expression is the licence as an SPDX expression, as far as its source gives one.
func (d *DeclaredLicense) expression() string {
	for _, text := range []string{d.SPDX, d.Raw, d.URL} {
		if len(text) > maxExpressionBytes {
			return text // no expression, whatever it says
		}
		if stands(text) {
			return licenseAlias(text)
		}
	}
	return ""
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
