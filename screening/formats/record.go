package formats

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"

	"weir/screening"
)

// Limits of what one record takes over; what is beyond stays in the file.
const (
	maxText    = 16 << 10 // bytes
	maxProse   = 2 << 10  // bytes of one statement in prose
	maxDigests = 200
	maxList    = 200
	maxNames   = 50
)

// clip cuts a text to a number of bytes, at a character.
func clip(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…", true
}

// clean makes a text that a spec can hold.
func (r *reader) clean(s, field, at string) string {
	if strings.ContainsRune(s, 0) {
		s = strings.ReplaceAll(s, "\x00", "\ufffd")
		r.find(Unreadable, field, at, "holds a NUL character, which is replaced")
	}
	s, cut := clip(strings.TrimSpace(s), maxText)
	if cut {
		r.find(Unreadable, field, at, "is longer than 16 KiB and was cut; the whole is in the file")
	}
	return s
}

// text gives a value as one text: scalars as they are, language maps and lists
// joined. What is neither is reported.
func (r *reader) text(v value, field string) string {
	var parts []string
	for _, item := range v.each() {
		if item.kind == isMap {
			if s, ok := item.get("@value").scalar(); ok {
				parts = append(parts, s)
				continue
			}
			for i := range item.keys {
				m := item.member(i)
				if s, ok := m.scalar(); ok && m.kind == isText && !strings.HasPrefix(item.keys[i], "@") {
					parts = append(parts, s)
				} else if m.given() {
					r.find(Unreadable, field, m.at, "is no text")
				}
			}
			continue
		}
		s, ok := item.scalar()
		if !ok {
			r.find(Unreadable, field, item.at, "is no text")
			continue
		}
		if item.kind == isBool {
			r.find(Malformed, field, item.at, "is true or false where a text belongs")
		}
		parts = append(parts, s)
	}
	return r.clean(strings.Join(parts, " / "), field, v.at)
}

// set takes over a text. A placeholder stays as it is: it states nothing, and a
// reviewer sees what the source wrote.
func (r *reader) set(rec *Record, to *string, pointer string, v value) {
	field := strings.TrimPrefix(pointer, "/")
	s := r.text(v, field)
	if s == "" {
		return
	}
	if *to != "" && *to != s {
		r.find(Contradiction, field, v.at, "is given twice and differs")
		return
	}
	r.placeholder(s, field, v.at)
	*to = s
	rec.From[pointer] = v.at
}

func (r *reader) placeholder(s, field, at string) {
	if screening.IsPlaceholder(s) {
		r.find(Placeholder, field, at, "is a placeholder")
	}
}

// list takes over a list of texts.
func (r *reader) list(rec *Record, to *[]string, pointer string, v value) {
	field := strings.TrimPrefix(pointer, "/")
	for _, item := range flatten(v) {
		s := r.text(item, field)
		if s == "" || slices.Contains(*to, s) {
			continue
		}
		if len(*to) == maxList {
			r.find(Note, field, v.at, "has more than 200 items; the rest is in the file")
			return
		}
		r.placeholder(s, field, item.at)
		*to = append(*to, s)
		rec.From[pointer+"/"+strconv.Itoa(len(*to)-1)] = item.at
	}
}

// flatten gives the items of a list, and of the lists of a map.
func flatten(v value) (all []value) {
	for _, item := range v.each() {
		switch item.kind {
		case isMap:
			for i := range item.keys {
				all = append(all, flatten(item.member(i))...)
			}
		case isList:
			all = append(all, flatten(item)...)
		default:
			all = append(all, item)
		}
	}
	return all
}

// maxSame bounds statements that differ in nothing but their words.
const maxSame = 20

// disclose states something of a record.
func (rec *Record) disclose(tag, state, basis, detail, at string) {
	d := screening.Disclosure{Tag: tag, State: state, Basis: basis}
	d.Detail, _ = clip(detail, maxProse)
	same := 0
	for _, e := range rec.Disclosures {
		if e.Tag == tag && e.State == state && e.Basis == basis {
			same++
		}
	}
	if same < maxSame && !slices.Contains(rec.Disclosures, d) {
		rec.From["/disclosures/"+strconv.Itoa(len(rec.Disclosures))] = at
		rec.Disclosures = append(rec.Disclosures, d)
	}
}

// prose keeps what a named text field says. It states nothing: "no patient data"
// and "patient data" are told apart by people.
func (r *reader) prose(rec *Record, v value, tags ...string) {
	s := r.text(v, tags[0])
	if screening.IsBlank(s) {
		return
	}
	state := "not_assessed"
	if screening.IsPlaceholder(s) {
		state = "placeholder"
		r.find(Placeholder, tags[0], v.at, "is a placeholder")
	} else if len(s) > maxProse {
		r.find(Unreadable, tags[0], v.at, "is longer than 2 KiB and was cut; the whole is in the file")
	}
	for _, tag := range tags {
		rec.disclose(tag, state, "prose", s, v.at)
	}
}

// modality adds a kind of content.
func (rec *Record) modality(m, at string) {
	if !slices.Contains(rec.Shape.Modalities, m) {
		rec.From["/shape/modalities/"+strconv.Itoa(len(rec.Shape.Modalities))] = at
		rec.Shape.Modalities = append(rec.Shape.Modalities, m)
	}
}

// partly says that modalities were told by a part or a purpose: what else is
// inside is not known.
func (rec *Record) partly() {
	if len(rec.Shape.Modalities) > 0 {
		rec.modality("unknown", rec.From["/shape/modalities/0"])
	}
}

// party reads a person or an organisation: an object, or just a name.
func (r *reader) party(v value, field string) (p screening.Party) {
	if v.kind != isMap {
		p.Name = r.text(v, field)
		return p
	}
	p.Name = r.text(v.any("name", "label", "title", "prov:label"), field)
	if p.Name == "" {
		p.Name = strings.TrimSpace(r.text(v.any("givenName"), field) + " " + r.text(v.any("familyName"), field))
	}
	p.Type = v.any("@type", "type").words()
	p.URL = r.text(v.any("url", "@id"), field)
	return p
}

func (r *reader) parties(rec *Record, v value, field string) {
	for _, item := range v.each() {
		p := r.party(item, field)
		if p.Name == "" && p.URL == "" || slices.Contains(rec.Creators, p) {
			continue
		}
		if len(rec.Creators) == maxList {
			r.find(Note, field, v.at, "names more than 200; the rest is in the file")
			return
		}
		r.placeholder(p.Name, field, item.at)
		rec.From["/creators/"+strconv.Itoa(len(rec.Creators))] = item.at
		rec.Creators = append(rec.Creators, p)
	}
}

// uri takes over an address as it is written.
func (r *reader) uri(rec *Record, v value) {
	s := r.text(v, "uris")
	if s == "" || slices.Contains(rec.URIs, s) || len(rec.URIs) == maxList {
		return
	}
	if screening.IsPlaceholder(s) {
		r.find(Placeholder, "uris", v.at, "is a placeholder")
	} else if !absolute.MatchString(s) || strings.Contains(s, "//localhost") {
		r.find(Malformed, "uris", v.at, "is no address that others can use; it is kept as it is")
	}
	rec.From["/uris/"+strconv.Itoa(len(rec.URIs))] = v.at
	rec.URIs = append(rec.URIs, s)
	rec.identify(s)
}

var absolute = regexp.MustCompile(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*://\S+|(?:doi|purl|urn|pkg|hdl|ark):\S+)$`)

// identify adds a name by which other files may refer to the record.
func (rec *Record) identify(names ...string) {
	for _, name := range names {
		if n := normalName(rec.Kind, name); n != "" && len(rec.names) < maxNames && !slices.Contains(rec.names, n) {
			rec.names = append(rec.names, n)
		}
	}
}

var digestNames = map[string]string{"sha256": "sha256", "sha-256": "sha256", "sha384": "sha384", "sha-384": "sha384", "sha512": "sha512",
	"sha-512": "sha512", "blake3": "blake3", "md5": "md5", "sha1": "sha1", "sha-1": "sha1"}

var digestBytes = map[string]int{"sha256": 32, "sha384": 48, "sha512": 64, "blake3": 32, "md5": 16, "sha1": 20}

// digest takes over a checksum and reports whether it can be one. One that
// cannot is kept for the reader and counts for nothing.
func (r *reader) digest(rec *Record, alg string, v value, of string) bool {
	s := r.text(v, "digests")
	name, known := digestNames[strings.ToLower(strings.TrimSpace(alg))]
	if !known {
		r.find(Malformed, "digests", v.at, "is of an algorithm that a spec has no name for")
		return false
	}
	raw, err := hex.DecodeString(s)
	valid := err == nil && len(raw) == digestBytes[name]
	if raw, err = base64.StdEncoding.DecodeString(s); !valid && err == nil && len(raw) == digestBytes[name] {
		s, valid = hex.EncodeToString(raw), true
		r.find(Note, "digests", v.at, "was in base64 and is written in hex")
	}
	if !valid && screening.IsPlaceholder(s) {
		r.find(Placeholder, "digests", v.at, "is a placeholder")
	}
	d := screening.Digest{Alg: name, Value: s, Of: of}
	if len(rec.Digests) < maxDigests && !slices.Contains(rec.Digests, d) {
		rec.From["/digests/"+strconv.Itoa(len(rec.Digests))] = v.at
		rec.Digests = append(rec.Digests, d)
	}
	return valid
}

// files counts the parts of a record and those with a checksum.
type files struct {
	all, pinned, given int
	firstLoose         string // pointer
}

func (f *files) count(pinned bool, given int, at string) {
	f.all++
	f.given += given
	if pinned {
		f.pinned++
	} else if f.firstLoose == "" {
		f.firstLoose = at
	}
}

// settle reports files that nothing pins: one good checksum is not all.
func (f *files) settle(r *reader, rec *Record) {
	if f.all > f.pinned {
		r.find(Checksum, "digests", f.firstLoose, "%d of %d files have no checksum that can be one", f.all-f.pinned, f.all)
	}
	if f.given > maxDigests {
		r.find(Note, "digests", rec.at, "has %d checksums, of which the first 200 were taken over; the rest is in the file", f.given)
	}
}

// region gives the code of a country, "" if it is not understood.
func region(s string) string {
	s = strings.TrimSpace(s)
	switch key := strings.ToLower(s); key {
	case "eu", "european union", "eea", "european economic area":
		return "EU"
	case "worldwide", "global", "any", "all":
		return "worldwide"
	default:
		if code, ok := countryNames[key]; ok {
			return code
		}
	}
	if len(s) != 2 && len(s) != 3 {
		return ""
	}
	reg, err := language.ParseRegion(s)
	if err != nil || !reg.IsCountry() {
		return ""
	}
	return reg.Canonicalize().String()
}

var countryNames = map[string]string{
	"austria": "AT", "belgium": "BE", "bulgaria": "BG", "cyprus": "CY", "czechia": "CZ", "czech republic": "CZ", "germany": "DE",
	"denmark": "DK", "estonia": "EE", "spain": "ES", "finland": "FI", "france": "FR", "greece": "GR", "croatia": "HR", "hungary": "HU",
	"ireland": "IE", "italy": "IT", "lithuania": "LT", "luxembourg": "LU", "latvia": "LV", "malta": "MT", "netherlands": "NL",
	"poland": "PL", "portugal": "PT", "romania": "RO", "sweden": "SE", "slovenia": "SI", "slovakia": "SK",
	"australia": "AU", "brazil": "BR", "canada": "CA", "china": "CN", "india": "IN", "iceland": "IS", "israel": "IL", "japan": "JP",
	"mexico": "MX", "norway": "NO", "russia": "RU", "singapore": "SG", "south africa": "ZA", "south korea": "KR", "switzerland": "CH",
	"turkey": "TR", "united arab emirates": "AE", "united kingdom": "GB", "uk": "GB", "united states": "US",
	"united states of america": "US", "usa": "US",
}

var (
	hubID     = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*$`)
	hubURL    = regexp.MustCompile(`^(?:https?://(?:www\.)?(?:huggingface\.co|hf\.co)/|hf://|pkg:huggingface/)(datasets/)?([\w.-]+(?:/[\w.-]+)?)(?:[@/?#].*)?$`)
	localPath = regexp.MustCompile(`^(?:[./~\\]|[A-Za-z]:[\\/])|\$|\.(?:jsonl?|csv|tsv|parquet|txt|arrow|gz|zip|bin|safetensors|pt)$`)
)

// normalName gives one form to the many ways of naming the same thing on the
// Hub, and keeps other addresses apart from each other. "" names nothing.
func normalName(kind, name string) string {
	name = strings.TrimSuffix(strings.TrimSpace(name), "/")
	if name == "" || screening.IsPlaceholder(name) || strings.Contains(name, "${") {
		return ""
	}
	if m := hubURL.FindStringSubmatch(name); m != nil {
		if m[1] != "" || kind == "dataset" && !strings.HasPrefix(name, "http") {
			return "dataset:" + strings.ToLower(m[2])
		}
		return "model:" + strings.ToLower(m[2])
	}
	switch {
	case absolute.MatchString(name):
		_, rest, _ := strings.Cut(name, ":")
		return "uri:" + strings.TrimPrefix(strings.ToLower(rest), "//")
	case localPath.MatchString(name):
		return "path:" + path.Clean(name)
	case hubID.MatchString(name):
		if kind == "dataset" {
			return "dataset:" + strings.ToLower(name)
		}
		return "model:" + strings.ToLower(name)
	}
	return "name:" + strings.ToLower(name)
}

// parent adds to a lineage. The lineage comes into being with the first parent:
// one that is there and empty says that there are none.
func (r *reader) parent(rec *Record, list string, ref screening.LineageRef, at string) {
	if rec.Lineage == nil {
		rec.Lineage = &screening.Lineage{}
	}
	to := map[string]*[]screening.LineageRef{"derived_from": &rec.Lineage.DerivedFrom, "base_models": &rec.Lineage.BaseModels,
		"generated_by_models": &rec.Lineage.GeneratedByModels, "activities": &rec.Lineage.Activities}[list]
	if slices.Contains(*to, ref) {
		return
	}
	if len(*to) == maxList {
		r.find(Unreadable, "lineage", at, "names more than 200 parents; the rest is in the file")
		return
	}
	rec.From[fmt.Sprintf("/lineage/%s/%d", list, len(*to))] = at
	*to = append(*to, ref)
}
