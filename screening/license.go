package screening

import (
	"regexp"
	"slices"
	"strings"
)

func licenseStatusFact(s *Spec, i int) fact {
	t := s.Inputs[i].license()
	return t.status()
}

func licenseRestrictionsFact(s *Spec, i int) fact {
	t := s.Inputs[i].license()
	return t.restrictionsFact()
}

// status says whether it is known which licence applies. A licence that is named
// but not understood is unidentified, never allowed.
func (t *licenseTerms) status() fact {
	switch {
	case !t.stated:
		return fact{key: "/license"}
	case t.identified:
		return either(true, "/license")
	default:
		return fact{stated: true, codes: secondCode, key: t.open.key, nth: t.open.nth}
	}
}

func (t *licenseTerms) restrictionsFact() fact {
	return fact{stated: t.stated, unknown: !t.identified || !t.settled, codes: codeSet(t.restrictions), key: "/license"}
}

// Stated gives the restrictions that the statements of a licence come to, and
// whether it is known which licence applies.
func (l *License) Stated() (restrictions []string, identified bool) {
	t := l.read(nil)
	return codeSet(t.restrictions).names(restrictionCodes), t.identified
}

// Name gives the expression, in lower case, that the first statement of an entry
// comes to, so that two spellings of one licence can be told from two licences.
// "" = the entry says nothing.
func (d *DeclaredLicense) Name() string {
	for _, text := range []string{d.SPDX, d.Raw, d.URL} {
		if stands(text) {
			return strings.ToLower(licenseAlias(text))
		}
	}
	return ""
}

// license reads the licence of an input.
func (in *Input) license() licenseTerms { return in.License.read(in.Lineage) }

// licenseTerms is what all statements about a licence come to.
type licenseTerms struct {
	stated       bool
	identified   bool
	settled      bool           // restrictions are all there are
	restrictions restrictionSet // one stated anywhere is never lost
	open         place          // in the input, of the first statement not understood
}

// read sums up everything that is said of a licence: what the entries declare, in
// SPDX, in the source's words and by URL, what a person concluded, and what the
// parents that are named here come with.
func (l *License) read(lineage *Lineage) licenseTerms {
	t := licenseTerms{stated: len(l.Declared) > 0 || l.Concluded != "" || len(l.Restrictions) > 0, open: place{key: "/license"}}
	set := restrictionsOf(l.Restrictions...)
	understood, settled := 0, true
	whole := false         // named parts, however many, say nothing of the rest
	var choices []branches // that declared texts leave
	for i := range l.Declared {
		d := l.Declared[i].read()
		set |= d.restrictions
		choices = append(choices, d.choices...)
		whole = whole || !isPart(l.Declared[i].Scope)
		if !d.understood || d.contradicts {
			if t.open.key == "/license" {
				t.open = place{key: "/license/declared", nth: i + 1}
			}
			continue
		}
		understood++
		settled = settled && d.settled
	}
	t.identified = understood > 0 && understood == len(l.Declared) && whole
	// A person's conclusion settles a declared licence that could not be read,
	// leaves a choice or contradicts itself, but takes no restriction away: of a
	// choice it is one of the ways, or it settles nothing.
	if stands(l.Concluded) {
		concluded := readExpression(l.Concluded)
		shared, one, ok := concluded.sum()
		set |= shared
		settled = one
		ways, _ := concluded.ways()
		t.identified = ok && !slices.ContainsFunc(choices, func(c branches) bool { return !ways.within(c, set) })
		if !t.identified {
			t.open = place{key: "/license/concluded"}
		}
	}
	// What it is made from has terms of its own, which no conclusion about this input settles.
	if lineage != nil {
		for _, made := range [...]struct {
			key  string
			from []LineageRef
		}{{"/lineage/derived_from", lineage.DerivedFrom}, {"/lineage/base_models", lineage.BaseModels}, {"/lineage/generated_by_models", lineage.GeneratedByModels}} {
			for i := range made.from {
				if !stands(made.from[i].License) {
					continue
				}
				shared, one, ok := readExpression(licenseAlias(made.from[i].License)).sum()
				set |= shared
				settled = settled && one
				if !ok && t.identified {
					t.identified, t.open = false, place{key: made.key, nth: i + 1}
				}
			}
		}
	}
	t.restrictions = set
	t.settled = settled && !slices.Contains(l.Restrictions, "unknown")
	return t
}

// declaredTerms is what one entry comes to.
type declaredTerms struct {
	restrictions restrictionSet
	understood   bool
	settled      bool
	contradicts  bool
	choices      []branches // the ways of each text that leaves a choice
}

// read looks at all three ways in which an entry can name its licence. They have
// to agree. Words or an address that cannot be read may say anything, so beside
// them an id is not understood either; whatever was read adds up.
func (d *DeclaredLicense) read() (t declaredTerms) {
	if common, ok := commonLicenses()[d.SPDX]; ok && d.Raw == "" && d.URL == "" { // nearly all
		return common
	}
	t.settled = true
	var agreed restrictionSet
	unread := false
	for _, text := range []string{d.SPDX, d.Raw, d.URL} {
		if !stands(text) {
			continue
		}
		b := readExpression(licenseAlias(text))
		set, one, ok := b.sum()
		t.restrictions |= set
		if ways, _ := b.ways(); len(ways) > 1 {
			t.choices = append(t.choices, ways)
		}
		switch {
		case !ok:
			unread = true
		case !t.understood:
			t.understood, t.settled, agreed = true, one, set
		case set != agreed || one != t.settled:
			t.contradicts = true
		}
	}
	t.understood = t.understood && !unread
	return t
}

// licenseAlias maps a source's own words to an SPDX expression, or gives them
// back for the parser to try.
func licenseAlias(raw string) string {
	if len(raw) > maxExpressionBytes {
		return raw // the parser refuses it
	}
	if _, common := commonLicenses()[raw]; common {
		return raw
	}
	address := strings.TrimRight(strings.ToLower(strings.TrimSpace(raw)), "/.")
	if m := licensePage.FindStringSubmatch(address); m != nil {
		return licenseAlias(m[1])
	}
	if m := ccPage.FindStringSubmatch(address); m != nil {
		return "CC-" + m[1] + "-" + m[2]
	}
	address = strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
	if id, ok := licensePages[strings.TrimPrefix(address, "www.")]; ok {
		return id
	}
	if strings.Count(raw, "(") != strings.Count(raw, ")") {
		return raw // a piece of something
	}
	words := plainWords(raw)
	if id, ok := licenseWords()[words]; ok {
		return id
	}
	if id, ok := creativeCommons(words); ok {
		return id
	}
	return raw
}

var (
	// pages that are named by the id of the licence
	licensePage = regexp.MustCompile(`^(?:https?://)?(?:www\.)?(?:choosealicense\.com/licenses|spdx\.org/licenses|opensource\.org/licenses?)/([a-z0-9.+-]+?)(?:\.html)?$`)
	ccPage      = regexp.MustCompile(`^(?:https?://)?(?:www\.)?creativecommons\.org/licenses/(by(?:-nc)?(?:-nd|-sa)?)/([0-9]\.[0-9])(?:[/?#].*)?$`)
)

// licensePages are addresses of licences, without scheme and www.
var licensePages = map[string]string{
	"creativecommons.org/publicdomain/zero/1.0": "CC0-1.0", "creativecommons.org/publicdomain/zero/1.0/deed.en": "CC0-1.0",
	"creativecommons.org/publicdomain/zero/1.0/legalcode": "CC0-1.0", "creativecommons.org/publicdomain/mark/1.0": "CC-PDDC",
	"apache.org/licenses/license-2.0": "Apache-2.0", "apache.org/licenses/license-2.0.txt": "Apache-2.0", "apache.org/licenses/license-2.0.html": "Apache-2.0",
	"gnu.org/licenses/gpl-3.0.html": "GPL-3.0-only", "gnu.org/licenses/gpl-3.0": "GPL-3.0-only", "gnu.org/licenses/gpl-3.0.en.html": "GPL-3.0-only",
	"gnu.org/licenses/agpl-3.0.html": "AGPL-3.0-only", "gnu.org/licenses/agpl-3.0.en.html": "AGPL-3.0-only",
	"opendatacommons.org/licenses/by/1-0": "ODC-By-1.0", "opendatacommons.org/licenses/by/1.0": "ODC-By-1.0", "opendatacommons.org/licenses/by": "ODC-By-1.0",
	"opendatacommons.org/licenses/odbl/1-0": "ODbL-1.0", "opendatacommons.org/licenses/odbl/1.0": "ODbL-1.0", "opendatacommons.org/licenses/odbl": "ODbL-1.0",
	"opendatacommons.org/licenses/pddl/1-0": "PDDL-1.0", "opendatacommons.org/licenses/pddl/1.0": "PDDL-1.0", "opendatacommons.org/licenses/pddl": "PDDL-1.0",
	"cdla.dev/permissive-1-0": "CDLA-Permissive-1.0", "cdla.dev/permissive-2-0": "CDLA-Permissive-2.0", "cdla.dev/sharing-1-0": "CDLA-Sharing-1.0",
	"ai.google.dev/gemma/terms": "LicenseRef-gemma", "llama.com/llama3/license": "LicenseRef-llama3", "llama.com/llama3_1/license": "LicenseRef-llama3.1",
	"llama.com/llama3_2/license": "LicenseRef-llama3.2", "llama.com/llama3_3/license": "LicenseRef-llama3.3", "llama.com/llama4/license": "LicenseRef-llama4",
	"ai.meta.com/llama/license": "LicenseRef-llama2", "databricks.com/legal/open-model-license": "LicenseRef-databricks-open-model",
	"mistral.ai/licenses/mnpl-0.1.md": "LicenseRef-mnpl", "mistral.ai/licenses/mrl-0.1.md": "LicenseRef-mrl",
}

// licenseAliases are Hub ids and common paraphrases that are not SPDX ids. They
// are compared as plainWords. A family without its version is the strictest of it.
var licenseAliases = map[string]string{
	"apache 2.0": "Apache-2.0", "apache 2": "Apache-2.0", "apache software license 2.0": "Apache-2.0", "apache2": "Apache-2.0", "apache2.0": "Apache-2.0", "asl 2.0": "Apache-2.0",
	"mit": "MIT", "expat": "MIT", "mit/expat": "MIT", "isc": "ISC",
	"cc0": "CC0-1.0", "cc 0": "CC0-1.0", "cc0 1.0": "CC0-1.0", "cc0 1.0 universal": "CC0-1.0", "cc zero": "CC0-1.0", "creative commons zero": "CC0-1.0",
	"creative commons zero 1.0 universal": "CC0-1.0", "creative commons cc0 1.0 universal": "CC0-1.0", "cc0 public domain": "CC0-1.0", "cc0 1.0 universal public domain dedication": "CC0-1.0",
	"cc0 1.0 universal cc0 1.0 public domain dedication": "CC0-1.0", "public domain": "CC0-1.0", "public domain dedication": "CC0-1.0", "cc pddc": "CC-PDDC",
	"odc by": "ODC-By-1.0", "odc by 1.0": "ODC-By-1.0", "open data commons attribution": "ODC-By-1.0", "open data commons attribution 1.0": "ODC-By-1.0",
	"odbl": "ODbL-1.0", "odbl 1.0": "ODbL-1.0", "odc odbl": "ODbL-1.0", "open database license": "ODbL-1.0", "open database license 1.0": "ODbL-1.0",
	"open data commons open database license": "ODbL-1.0", "open data commons open database license 1.0": "ODbL-1.0", "open data commons open database license odbl": "ODbL-1.0", "open data commons open database license odbl 1.0": "ODbL-1.0",
	"pddl": "PDDL-1.0", "odc pddl": "PDDL-1.0", "open data commons public domain dedication and license": "PDDL-1.0",
	"cdla permissive": "CDLA-Permissive-2.0", "cdla sharing": "CDLA-Sharing-1.0",
	"community data license agreement permissive 1.0": "CDLA-Permissive-1.0", "community data license agreement permissive 2.0": "CDLA-Permissive-2.0",
	"community data license agreement sharing 1.0": "CDLA-Sharing-1.0",
	"bsd": "BSD-3-Clause", "bsd 3": "BSD-3-Clause", "3 clause bsd": "BSD-3-Clause", "bsd 3 clause new or revised": "BSD-3-Clause", "new bsd": "BSD-3-Clause", "modified bsd": "BSD-3-Clause",
	"2 clause bsd": "BSD-2-Clause", "simplified bsd": "BSD-2-Clause", "mozilla public license 2.0": "MPL-2.0", "mpl 2": "MPL-2.0", "boost software license 1.0": "BSL-1.0",
	"gpl": "GPL-2.0-or-later", "gnu gpl": "GPL-2.0-or-later", "gnu general public license": "GPL-2.0-or-later", "gpl 3": "GPL-3.0-only", "gpl3": "GPL-3.0-only", "gplv3": "GPL-3.0-only",
	"gplv2": "GPL-2.0-only", "gpl 2": "GPL-2.0-only", "gnu gpl 3": "GPL-3.0-only", "gnu gpl 3.0": "GPL-3.0-only", "gnu gplv3": "GPL-3.0-only", "gnu general public license 3.0": "GPL-3.0-only",
	"gnu general public license 3": "GPL-3.0-only", "gnu general public license 2.0": "GPL-2.0-only", "gpl 3.0": "GPL-3.0-only", "gpl 2.0": "GPL-2.0-only",
	"lgpl": "LGPL-2.1-or-later", "lgpl 2.1": "LGPL-2.1-only", "lgpl 3.0": "LGPL-3.0-only", "lgplv3": "LGPL-3.0-only", "gnu lesser general public license 3.0": "LGPL-3.0-only",
	"lgpl lr": "LGPLLR", "agpl": "AGPL-3.0-only", "agplv3": "AGPL-3.0-only", "agpl 3.0": "AGPL-3.0-only", "gnu affero general public license 3.0": "AGPL-3.0-only",
	"gfdl": "GFDL-1.3-or-later", "gnu free documentation license": "GFDL-1.3-or-later", "gnu free documentation license 1.3": "GFDL-1.3-or-later",
	"etalab": "etalab-2.0", "licence ouverte 2.0": "etalab-2.0", "open government license 3.0": "OGL-UK-3.0", "ogl 3.0": "OGL-UK-3.0", "ogl uk 3.0": "OGL-UK-3.0",
	"eupl": "EUPL-1.2", "european union public license 1.2": "EUPL-1.2", "unlicense": "Unlicense", "sil open font license 1.1": "OFL-1.1",
	"lppl 1.3c": "LPPL-1.3c", "c uda": "C-UDA-1.0", "o uda": "O-UDA-1.0",
}
