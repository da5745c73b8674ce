package screening

import (
	"slices"
	"strings"
	"sync"

	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"
)

// restrictionSet holds restrictions, bit i standing for restrictionCodes[i].
type restrictionSet uint16

func restrictionsOf(codes ...string) (set restrictionSet) {
	for _, c := range codes {
		set |= 1 << slices.Index(restrictionCodes, c)
	}
	return set
}

// branches are the ways to comply with a licence expression, each as the
// restrictions that come with it. A way that another one makes needless is left
// out, so a long expression has no more of them than there are sets. None = it is
// no expression at all.
type branches []restrictionSet

// or gives the ways of either.
func (b branches) or(other branches) (out branches) {
	for _, s := range slices.Concat(b, other) {
		if slices.ContainsFunc(out, func(o restrictionSet) bool { return o&s == o }) {
			continue
		}
		out = append(slices.DeleteFunc(out, func(o restrictionSet) bool { return s&o == s }), s)
	}
	return out
}

// and gives the ways that comply with both.
func (b branches) and(other branches) (out branches) {
	for _, s := range b {
		both := make(branches, len(other))
		for i, o := range other {
			both[i] = s | o
		}
		out = out.or(both)
	}
	return out
}

// unknownLicense is the way of a licence that is not understood.
var unknownLicense = restrictionsOf("unknown")

// ways are the ways that can be taken, and whether they are understood. A way
// through a licence that is not understood is none while there is another; where
// there is no other, what its understood parts ask is asked all the same.
func (b branches) ways() (ways branches, understood bool) {
	known := slices.DeleteFunc(slices.Clone(b), func(s restrictionSet) bool { return s&unknownLicense != 0 })
	if len(known) > 0 {
		return known, true
	}
	for _, s := range b {
		ways = ways.or(branches{s &^ unknownLicense})
	}
	return ways, false
}

// sum is what an expression comes to: the restrictions that every way comes with,
// whether that is all there is to say, and whether it is understood. Of
// "CC-BY-NC-4.0 OR CC-BY-SA-4.0" nobody knows which was taken.
func (b branches) sum() (set restrictionSet, settled, understood bool) {
	ways, understood := b.ways()
	if len(ways) == 0 {
		return 0, false, false
	}
	set = ^restrictionSet(0)
	for _, s := range ways {
		set &= s
	}
	return set, len(ways) == 1, understood
}

// within reports whether each of the ways, with what is asked anyhow, complies
// with a choice: it comes with all that one way of the choice comes with.
func (b branches) within(choice branches, anyhow restrictionSet) bool {
	return !slices.ContainsFunc(b, func(s restrictionSet) bool {
		return !slices.ContainsFunc(choice, func(c restrictionSet) bool { return c&^(s|anyhow) == 0 })
	})
}

var brackets = strings.NewReplacer("(", " ( ", ")", " ) ")

const maxExpressionBytes = 1024

// commonLicenses is what the ids of licences that are understood come to, when
// a source gives nothing but the id: nearly all do, and need no parsing.
var commonLicenses = sync.OnceValue(func() map[string]declaredTerms {
	known := map[string]declaredTerms{}
	for _, id := range slices.Concat(spdxlicenses.GetLicenses(), spdxlicenses.GetDeprecated()) {
		if knownLicense(id) != nil {
			set, one, ok := readExpression(id).sum()
			known[id] = declaredTerms{restrictions: set, understood: ok, settled: one}
		}
	}
	return known
})

// readExpression reads an SPDX licence expression: OR is any, AND is all, ids
// and operators in any case. A text that is not one has no branches.
func readExpression(text string) branches {
	if len(text) > maxExpressionBytes {
		return nil
	}
	p := expressionParser{tokens: strings.Fields(brackets.Replace(text))}
	b := p.or()
	if p.failed || len(p.tokens) > 0 {
		return nil
	}
	return b
}

type expressionParser struct {
	tokens []string
	failed bool
}

func (p *expressionParser) next() string {
	if len(p.tokens) == 0 {
		p.failed = true
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *expressionParser) take(operator string) bool {
	if len(p.tokens) > 0 && strings.EqualFold(p.tokens[0], operator) {
		p.tokens = p.tokens[1:]
		return true
	}
	return false
}

func (p *expressionParser) or() branches {
	b := p.and()
	for p.take("OR") {
		b = b.or(p.and())
	}
	return b
}

func (p *expressionParser) and() branches {
	b := p.one()
	for p.take("AND") {
		b = b.and(p.one())
	}
	return b
}

func (p *expressionParser) one() branches {
	if p.take("(") {
		b := p.or()
		p.failed = p.failed || !p.take(")")
		return b
	}
	id := p.next()
	for _, word := range []string{"", ")", "AND", "OR", "WITH"} {
		p.failed = p.failed || strings.EqualFold(id, word)
	}
	if p.take("WITH") {
		if known, _ := spdxlicenses.IsException(p.next()); !known {
			return oneLicense(id).and(branches{unknownLicense})
		}
	}
	return oneLicense(id)
}

// oneLicense gives the ways of one id: of the SPDX list, or one that this service
// knows beside it. Any other is not understood, and what is not understood is never allowed.
func oneLicense(id string) branches {
	if b := knownLicense(id); b != nil {
		return b
	}
	if strings.IndexByte(id, ':') >= 0 { // of another document, which may mean anything by it
		return branches{unknownLicense}
	}
	name, private := cutPrefixFold(id, licenseRef)
	if b := licenseRefs()[strings.ToLower(name)]; private && b != nil {
		return b
	}
	expression := licenseWords()[plainWords(name)]
	if ref, ok := strings.CutPrefix(expression, licenseRef); ok {
		return licenseRefs()[strings.ToLower(ref)]
	}
	if b := knownLicense(expression); b != nil && !private { // LicenseRef-MIT is whatever somebody meant by it
		return b
	}
	return branches{unknownLicense}
}

func cutPrefixFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// knownLicense knows the data and model licences that occur in practice.
func knownLicense(id string) branches {
	id = strings.TrimSuffix(id, "+") // or any later version
	known, name := spdxlicenses.IsActiveLicense(id)
	if !known {
		if known, name = spdxlicenses.IsDeprecatedLicense(id); !known {
			return nil
		}
	}
	if strings.HasPrefix(name, "CC-BY-") {
		var set restrictionSet
		for part := range strings.SplitSeq(name, "-") {
			switch part {
			case "NC", "ND", "SA":
				set |= restrictionsOf(strings.ToLower(part))
			}
		}
		return branches{set}
	}
	for _, prefix := range []string{"GPL-", "LGPL-", "AGPL-", "GFDL-"} {
		if strings.HasPrefix(name, prefix) {
			return branches{restrictionsOf("sa")}
		}
	}
	switch {
	case slices.Contains(freeLicenses, name):
		return branches{0}
	case slices.Contains(shareAlikeLicenses, name):
		return branches{restrictionsOf("sa")}
	}
	return nil
}

var freeLicenses = []string{
	"0BSD", "AFL-3.0", "Apache-1.1", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause",
	"BSD-3-Clause-Clear", "BSD-4-Clause", "BSL-1.0", "CC0-1.0", "CC-PDDC", "CDLA-Permissive-1.0",
	"CDLA-Permissive-2.0", "ECL-2.0", "EPL-1.0", "EPL-2.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "MS-PL", "NCSA",
	"ODC-By-1.0", "PDDL-1.0", "PostgreSQL", "Python-2.0", "Unlicense", "UPL-1.0", "WTFPL", "Zlib", "OGL-UK-3.0",
	"etalab-2.0", "C-UDA-1.0", "O-UDA-1.0", "LPPL-1.3c",
}

var shareAlikeLicenses = []string{"CDLA-Sharing-1.0", "EUPL-1.1", "EUPL-1.2", "LGPLLR", "ODbL-1.0", "OFL-1.1", "OSL-3.0"}
