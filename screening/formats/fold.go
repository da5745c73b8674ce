package formats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// fold adds what a record of another file says of an input.
func (m *merger) fold(into *input, im *Import, rec *Record) {
	f := folding{into, im, placesOf(im, rec), rec}
	a, b := &into.Input, &rec.Input
	f.first(&a.Name, b.Name, "/name")
	if a.Description != b.Description && a.Description != "" && b.Description != "" {
		a.Description, _ = clip(a.Description+"\n\n"+b.Description, 2*maxText)
	}
	f.first(&a.Description, b.Description, "/description")
	f.same(&a.Version, b.Version, "/version")
	f.same(&a.Revision, b.Revision, "/revision")
	f.same(&a.Split, b.Split, "/split")
	f.first(&a.Collection.Description, b.Collection.Description, "/collection/description")
	f.first(&a.Collection.Start, b.Collection.Start, "/collection/start")
	f.first(&a.Collection.End, b.Collection.End, "/collection/end")
	f.first(&a.Collection.Crawler, b.Collection.Crawler, "/collection/crawler")
	f.first(&a.License.Copyright, b.License.Copyright, "/license/copyright")
	f.first(&a.Shape.SizeRaw, b.Shape.SizeRaw, "/shape/size_raw")
	for _, d := range []struct {
		to   *string
		s    string
		name string
	}{{&a.Dates.Created, b.Dates.Created, "created"}, {&a.Dates.Issued, b.Dates.Issued, "issued"}, {&a.Dates.Modified, b.Dates.Modified, "modified"},
		{&a.Dates.Previous, b.Dates.Previous, "previous"}, {&a.Dates.Retrieved, b.Dates.Retrieved, "retrieved"}, {&a.Dates.Released, b.Dates.Released, "released"}} {
		f.first(d.to, d.s, "/dates/"+d.name)
	}
	f.parties(a.Publisher, *b.Publisher, "/publisher")
	f.parties(a.Issuer, *b.Issuer, "/issuer")
	f.licenses(&a.License, &b.License)
	foldList(f, &a.URIs, b.URIs, "/uris")
	foldList(f, &a.Digests, b.Digests, "/digests")
	foldList(f, &a.Sources, b.Sources, "/sources")
	foldList(f, &a.Creators, b.Creators, "/creators")
	foldList(f, &a.Collection.Methods, b.Collection.Methods, "/collection/methods")
	foldList(f, &a.Collection.Geography, b.Collection.Geography, "/collection/geography")
	foldList(f, &a.Shape.Languages, b.Shape.Languages, "/shape/languages")
	foldList(f, &a.Shape.Modalities, b.Shape.Modalities, "/shape/modalities")
	foldList(f, &a.Residency.StoredIn, b.Residency.StoredIn, "/residency/stored_in")
	foldList(f, &a.Residency.ProcessedIn, b.Residency.ProcessedIn, "/residency/processed_in")
	foldList(f, &a.Residency.Excluded, b.Residency.Excluded, "/residency/excluded")
	f.consent(&a.Consent, &b.Consent)
	f.lineage(a, im.qualified(b.Lineage))
	f.code(a, b)
	f.disclosures(a, b)
	for _, n := range rec.names {
		if !slices.Contains(into.names, n) {
			into.names = append(into.names, n)
		}
	}
	into.refs = append(into.refs, im.qualify(rec.ref))
}

// folding is one record on its way into an input.
type folding struct {
	into *input
	im   *Import
	from map[string]Place
	rec  *Record
}

// first keeps what is there, unless that is a placeholder.
func (f folding) first(to *string, s, pointer string) {
	if s != "" && (*to == "" || screening.IsPlaceholder(*to) && !screening.IsPlaceholder(s)) {
		*to, f.into.origin[pointer] = s, f.from[pointer]
	}
}

// same is first for what has only one truth.
func (f folding) same(to *string, s, pointer string) {
	if s != "" && *to != "" && *to != s && !screening.IsPlaceholder(s) && !screening.IsPlaceholder(*to) {
		f.contradicts(pointer, fmt.Sprintf("differs from what %s says", oneLine(f.into.origin[pointer].File)))
		return
	}
	f.first(to, s, pointer)
}

func (f folding) contradicts(pointer, detail string) {
	at := f.rec.From[pointer]
	if at == "" {
		at = f.rec.at
	}
	f.im.note(Contradiction, strings.TrimPrefix(pointer, "/"), at, detail)
}

func foldList[T comparable](f folding, to *[]T, items []T, pointer string) {
	for i, x := range items {
		if !slices.Contains(*to, x) {
			if at, ok := f.from[pointer+"/"+strconv.Itoa(i)]; ok {
				f.into.origin[pointer+"/"+strconv.Itoa(len(*to))] = at
			}
			*to = append(*to, x)
		}
	}
}

func (f folding) parties(to *screening.Party, p screening.Party, pointer string) {
	if p != (screening.Party{}) && *to == (screening.Party{}) {
		*to, f.into.origin[pointer] = p, f.from[pointer]
	}
}

func (f folding) licenses(a, b *screening.License) {
	names := func(l *screening.License) (all []string) {
		for i := range l.Declared {
			if n := l.Declared[i].Name(); !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		slices.Sort(all)
		return all
	}
	if len(a.Declared) > 0 && len(b.Declared) > 0 && !slices.Equal(names(a), names(b)) {
		f.contradicts("/license/declared/0", "is another licence than the one in "+oneLine(f.into.origin["/license/declared/0"].File))
	}
	foldList(f, &a.Declared, b.Declared, "/license/declared")
	foldList(f, &a.Restrictions, b.Restrictions, "/license/restrictions")
	if c := a.Concluded; c != "" && b.Concluded != "" && c != b.Concluded {
		f.contradicts("/license/concluded", "is another conclusion than the one in "+oneLine(f.into.origin["/license/concluded"].File))
		a.Concluded = "(" + c + ") AND (" + b.Concluded + ")" // both hold
	}
	f.first(&a.Concluded, b.Concluded, "/license/concluded")
	worst := []string{"reserved", "unknown", "not_reserved"}
	if b.TDM != "" && (a.TDM == "" || slices.Index(worst, b.TDM) < slices.Index(worst, a.TDM)) {
		a.TDM = b.TDM
	}
}

func (f folding) consent(a, b *screening.Consent) {
	worst := []string{"absent", "unknown", "claimed", "documented", "not_applicable"}
	if a.Status != "" && b.Status != "" && a.Status != b.Status {
		f.contradicts("/consent", "consent is "+b.Status+" here and "+a.Status+" in "+oneLine(f.into.origin["/consent"].File))
	}
	if b.Status != "" && (a.Status == "" || slices.Index(worst, b.Status) < slices.Index(worst, a.Status)) {
		a.Status, f.into.origin["/consent"] = b.Status, f.from["/consent"]
	}
	for _, d := range b.Docs {
		if !slices.Contains(a.Docs, d) {
			a.Docs = append(a.Docs, d)
		}
	}
}

func (f folding) lineage(a *screening.Input, b *screening.Lineage) {
	if b == nil {
		return
	}
	parents := func(l *screening.Lineage) int { return len(l.DerivedFrom) + len(l.BaseModels) }
	if a.Lineage == nil {
		a.Lineage = &screening.Lineage{}
		f.into.origin["/lineage"] = f.from["/lineage"]
	} else if (parents(a.Lineage) == 0) != (parents(b) == 0) {
		f.contradicts("/lineage", "one file names parents, another says that there are none")
	}
	foldList(f, &a.Lineage.DerivedFrom, b.DerivedFrom, "/lineage/derived_from")
	foldList(f, &a.Lineage.BaseModels, b.BaseModels, "/lineage/base_models")
	foldList(f, &a.Lineage.GeneratedByModels, b.GeneratedByModels, "/lineage/generated_by_models")
	foldList(f, &a.Lineage.Activities, b.Activities, "/lineage/activities")
}

func (f folding) code(a, b *screening.Input) {
	if b.TrustRemoteCode != nil && (a.TrustRemoteCode == nil || *b.TrustRemoteCode) {
		a.TrustRemoteCode, f.into.origin["/trust_remote_code"] = b.TrustRemoteCode, f.from["/trust_remote_code"]
	}
}

func (f folding) disclosures(a, b *screening.Input) {
	for i, d := range b.Disclosures {
		for _, e := range a.Disclosures {
			if d.Tag == e.Tag && d.Basis == "structured" && e.Basis == "structured" && opposite(d.State, e.State) {
				f.contradicts("/disclosures/"+strconv.Itoa(i), d.Tag+" is "+d.State+" here and "+e.State+" in another file")
			}
		}
	}
	foldList(f, &a.Disclosures, b.Disclosures, "/disclosures")
}

func opposite(a, b string) bool {
	return a == "present" && b == "absent" || a == "absent" && b == "present"
}
