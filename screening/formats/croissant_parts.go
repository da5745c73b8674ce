package formats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// parts reads what files, file sets, record sets and fields say for themselves:
// they have licences, terms of use, parents and disclosures of their own. What
// holds for a part restricts the whole.
func (r *reader) parts(rec *Record, o linked) {
	var walk func(v value, scope string)
	walk = func(v value, scope string) {
		if v.kind == isList {
			for i := range v.items {
				if len(v.items[i].items) > 0 {
					walk(value{&v.items[i], v.at + "/" + strconv.Itoa(i)}, scope)
				}
			}
			return
		}
		part := linked{v, o.t}
		if name := firstWords(part.any("name").words(), v.get("@id").words()); name != "" {
			scope = name
		}
		for i, key := range v.keys {
			switch name := o.t.expand(key).name; name {
			case "data", "examples": // records, not what is said of them
			case "license":
				r.license(rec, v.member(i), scope)
			case "usageinfo", "conditionsofaccess":
				r.usage(rec, v.member(i))
			case "wasderivedfrom", "isbasedon":
				r.derived(rec, v.member(i), o.t)
			case "hassyntheticdata":
				if m := v.member(i); m.text != "false" { // no for a part is not no for the whole
					r.raiTerm(rec, name, m)
				}
			default:
				if raiKeys[name] != nil {
					r.raiTerm(rec, name, v.member(i))
				} else if len(v.items[i].items) > 0 {
					walk(v.member(i), scope)
				}
			}
		}
	}
	for _, v := range o.all("distribution", "recordset", "recordsets", "haspart") {
		walk(v, "")
	}
	if column := r.columnOfParents(o); column != "" {
		r.find(Unresolved, "lineage", column, "says that each record names its own parent: the parents are in the data, not in this file")
	}
}

// derived reads the seven shapes in which files name parents.
func (r *reader) derived(rec *Record, v value, t *terms) {
	for _, item := range v.each() {
		ref := r.parentOf(item, t)
		if ref.Ref == "" && ref.Label == "" {
			r.find(Unreadable, "lineage", item.at, "names a parent by nothing that can be read")
		}
		r.parent(rec, "derived_from", ref, item.at)
	}
}

// activities reads how the data was made, and by whom or what.
func (r *reader) activities(rec *Record, o linked) {
	for _, v := range o.all("wasgeneratedby") {
		for _, item := range v.each() {
			act := linked{item, o.t}
			text := r.text(act.any("label", "name"), "collection")
			if d := r.text(act.any("description"), "collection"); d != "" && d != text {
				text = strings.TrimPrefix(text+": "+d, ": ")
			}
			if item.kind != isMap {
				text = r.text(item, "collection")
			}
			for _, agents := range act.all("wasassociatedwith", "isassociatedwith") {
				for _, agent := range agents.each() {
					name := r.party(agent, "collection").Name
					if name == "" {
						continue
					}
					text = strings.TrimSpace(text + " (by " + name + ")")
					if modelNames.MatchString(name) {
						rec.disclose("model_generated", "present", "inferred", "made with "+name, agent.at)
					}
				}
			}
			if text == "" {
				continue
			}
			text, _ = clip(text, maxProse)
			if len(rec.Collection.Methods) < maxList && !slices.Contains(rec.Collection.Methods, text) {
				rec.From["/collection/methods/"+strconv.Itoa(len(rec.Collection.Methods))] = item.at
				rec.Collection.Methods = append(rec.Collection.Methods, text)
			}
		}
	}
}

// modelNames are models that write; tools that clean are agents too.
var modelNames = regexp.MustCompile(`(?i)\b(?:chat)?gpt|\bllms?\b|language model|\b(?:claude|gemini|gemma|llama|mistral|mixtral|qwen|vicuna|deepseek|phi-?[0-9])`)

func (r *reader) parentOf(item value, t *terms) (ref screening.LineageRef) {
	if item.kind != isMap {
		ref.Ref = r.text(item, "lineage")
		return ref
	}
	o := linked{item, t}
	id := item.get("@id").words()
	ref.Label = r.text(o.any("label", "name"), "lineage")
	ref.License = r.parentLicense(o)
	if absolute.MatchString(id) {
		ref.Ref = id
		return ref
	}
	for _, name := range []string{"atlocation", "locatedat", "url", "contenturl"} {
		if s := r.text(firstOf(o.any(name)), "lineage"); s != "" {
			ref.Ref = s
			return ref
		}
	}
	if ref.Ref = id; id == "" {
		ref.Ref = ref.Label
	}
	return ref
}

// parentLicense gives the licence of a parent; of several all hold.
func (r *reader) parentLicense(o linked) string {
	parent := Record{From: map[string]string{}}
	for _, v := range o.all("license") {
		r.license(&parent, v, "")
	}
	return allOf(&parent.License)
}

// columnOfParents finds a field that is mapped to prov:wasDerivedFrom.
func (r *reader) columnOfParents(o linked) string {
	var look func(v value, depth int) string
	look = func(v value, depth int) string {
		if v.kind == isMap {
			for i, key := range v.keys {
				if o.t.expand(key).name == "equivalentproperty" && strings.HasSuffix(strings.ToLower(v.items[i].text), "wasderivedfrom") {
					return v.member(i).at
				}
			}
		}
		for i := range v.items {
			if len(v.items[i].items) == 0 {
				continue
			}
			item := value{&v.items[i], v.at + "/" + strconv.Itoa(i)}
			if v.kind == isMap {
				item = v.member(i)
			}
			if found := look(item, depth+1); found != "" {
				return found
			}
		}
		return ""
	}
	for _, v := range o.all("recordset", "recordsets") {
		if found := look(v, 0); found != "" {
			return found
		}
	}
	return ""
}

// mediaModalities are what a media type surely holds.
var mediaModalities = map[string]string{"image": "image", "audio": "audio", "video": "video"}

func (r *reader) distribution(rec *Record, o linked) {
	var parts files
	for _, v := range o.all("distribution") {
		for _, item := range v.each() {
			f := linked{item, o.t}
			if media := f.any("encodingformat").words(); media != "" {
				major, _, _ := strings.Cut(media, "/")
				if m := mediaModalities[major]; m != "" {
					rec.modality(m, item.at)
				}
			}
			if !f.isA("fileobject", "datadownload") && (f.isA("fileset") || !f.any("contenturl").given()) {
				continue
			}
			of := f.any("name").words()
			if of == "" {
				of = item.get("@id").words()
			}
			good, given := false, 0
			for _, alg := range []string{"sha256", "md5", "sha512", "sha1"} {
				if sum := f.any(alg); sum.given() {
					given++
					good = r.digest(rec, alg, sum, of) || good
				}
			}
			if url := f.any("contenturl"); len(rec.URIs) < 50 && url.given() {
				r.contentURL(rec, url)
			}
			parts.count(good, given, item.at)
		}
	}
	parts.settle(r, rec)
	if parts.all == 0 {
		r.find(Note, "distribution", "", "names no file")
	}
	rec.partly()
}

// contentURL keeps the address of one file. It names a part, so it is no name of the whole.
func (r *reader) contentURL(rec *Record, v value) {
	names := rec.names
	r.uri(rec, v)
	rec.names = names
}
