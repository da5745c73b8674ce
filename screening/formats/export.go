package formats

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

// Export is a spec in the form of another format. Both forms hold models and
// data; what they have no field for stands in NotHeld, and in the export itself,
// so that nobody takes it for the whole.
type Export struct {
	Bytes   []byte
	NotHeld []string // pointers into the spec
}

// ExportOptions is what the formats ask for and a spec does not say.
type ExportOptions struct {
	Created    string // when the export was made, 2026-01-02T03:04:05Z
	Namespace  string // address under which ids of SPDX elements are unique, without # at its end
	SpecSHA256 string // of the bytes of the spec: what the export is of; may be empty
}

// object is a JSON object that keeps the order in which it was written.
type object struct{ members []member }

type member struct {
	key string
	val any
}

// put adds a member unless it says nothing.
func (o *object) put(key string, val any) {
	switch v := val.(type) {
	case string:
		if v == "" {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	case *object:
		if len(v.members) == 0 {
			return
		}
	}
	o.members = append(o.members, member{key, val})
}

// MarshalJSONTo writes the members in order.
func (o *object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o.members {
		if err := enc.WriteToken(jsontext.String(m.key)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.val); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func newObject(members ...any) *object {
	o := &object{}
	for i := 0; i+1 < len(members); i += 2 {
		o.put(members[i].(string), members[i+1])
	}
	return o
}

// export writes a spec twice: what the first text loses when it is read back is
// what the second one lists.
func export(name string, spec *screening.Spec, write func(spec *screening.Spec, notHeld []string) *object) (*Export, error) {
	full := *spec
	full.Inputs = slices.Clone(spec.Inputs)
	for i := range full.Inputs {
		full.Inputs[i] = whole(full.Inputs[i])
	}
	text, err := indented(write(&full, nil))
	if err != nil {
		return nil, err
	}
	lost, err := notHeld(name, spec, text)
	if err != nil {
		return nil, err
	}
	if text, err = indented(write(&full, lost)); err != nil {
		return nil, err
	}
	return &Export{text, lost}, nil
}

func indented(o *object) ([]byte, error) {
	var out bytes.Buffer
	err := json.MarshalWrite(&out, o, jsontext.WithIndent("  "))
	return append(out.Bytes(), '\n'), err
}

// notHeld reads an export and gives what of the spec is not in it.
func notHeld(name string, spec *screening.Spec, text []byte) (lost []string, err error) {
	read, err := Read(name, text)
	if err != nil {
		return nil, err
	}
	back := map[string]value{}
	for i := range read.Records {
		rec := &read.Records[i]
		if rec.ref = localID(rec.ref); rec.Lineage != nil {
			for _, refs := range [][]screening.LineageRef{rec.Lineage.DerivedFrom, rec.Lineage.BaseModels, rec.Lineage.GeneratedByModels} {
				for k := range refs {
					refs[k].Ref = localID(refs[k].Ref)
				}
			}
		}
		if back[rec.ref], err = treeOf(&rec.Input); err != nil {
			return nil, err
		}
	}
	whole, err := treeOf(spec)
	if err != nil {
		return nil, err
	}
	for i, key := range whole.keys {
		if m := whole.member(i); key != "inputs" && key != "schema" && key != "run_ref" && key != "base_model" {
			lost = append(lost, leavesOf(m)...)
		}
	}
	for i, in := range whole.get("inputs").each() {
		id := spec.Inputs[i].ID
		for k, key := range in.keys {
			if key != "id" {
				lost = append(lost, missingIn(in.member(k), back[id].orNone().get(key))...)
			}
		}
	}
	return lost, nil
}

func (v value) orNone() value {
	if v.node == nil {
		return noValue
	}
	return v
}

// localID is the id of an input in the id of an SPDX element.
func localID(id string) string { return id[strings.LastIndexByte(id, '#')+1:] }

func treeOf(v any) (value, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return noValue, err
	}
	root, err := readJSON("spec", raw)
	if err != nil {
		return noValue, err
	}
	prune(root, "")
	return value{node: root}, nil
}

func leavesOf(v value) (all []string) {
	switch v.kind {
	case isMap:
		for i := range v.keys {
			all = append(all, leavesOf(v.member(i))...)
		}
	case isList:
		for i := range v.items {
			all = append(all, v.at+"/"+strconv.Itoa(i))
		}
	default:
		all = []string{v.at}
	}
	return all
}

// missingIn gives what of a value another one has not. Items of lists may stand in
// another order.
func missingIn(v, back value) (all []string) {
	switch v.kind {
	case isMap:
		if len(v.items) == 0 && !back.is(isMap) {
			return []string{v.at}
		}
		for i, key := range v.keys {
			all = append(all, missingIn(v.member(i), back.get(key))...)
		}
	case isList:
		for i := range v.items {
			item := value{&v.items[i], v.at + "/" + strconv.Itoa(i)}
			if !slices.ContainsFunc(back.each(), func(o value) bool { return sameItem(item, o) }) {
				all = append(all, item.at)
			}
		}
	default:
		if back.kind != v.kind || back.text != v.text {
			all = []string{v.at}
		}
	}
	return all
}

// sameItem reports whether an item says the same, where another says no less: a
// licence is the same in any spelling.
func sameItem(v, back value) bool {
	if licence := declared(v); licence.Name() != "" {
		other := declared(back)
		return other.Name() == licence.Name() && other.Scope == licence.Scope
	}
	if v.kind != isMap {
		return v.kind == back.kind && v.text == back.text
	}
	for i, key := range v.keys {
		if o := back.get(key); o.kind != v.items[i].kind || o.text != v.items[i].text {
			return false
		}
	}
	return true
}

func declared(v value) *screening.DeclaredLicense {
	if v.kind != isMap || v.get("tag").given() || v.get("kind").given() || v.get("alg").given() {
		return &screening.DeclaredLicense{}
	}
	return &screening.DeclaredLicense{Raw: v.get("raw").text, SPDX: v.get("spdx").text, URL: v.get("url").text, Scope: v.get("scope").text}
}

// isModel tells inputs that are models from data and code.
func isModel(in *screening.Input) bool { return family(in.Kind) == "model" && in.Kind != "tokenizer" }

// inputByID finds an input of the spec.
func inputByID(spec *screening.Spec, id string) *screening.Input {
	for i := range spec.Inputs {
		if spec.Inputs[i].ID == id {
			return &spec.Inputs[i]
		}
	}
	return nil
}

// nameOf is what an input is called.
func nameOf(in *screening.Input) string {
	if in.Name != "" {
		return in.Name
	}
	return in.ID
}

// tagState gives what an input states of a tag in a coded way: the worst of its own.
func tagState(in *screening.Input, tag string) (state string) {
	rank := []string{"", "not_assessed", "absent", "placeholder", "unknown", "present"}
	for _, d := range in.Disclosures {
		if d.Tag == tag && d.Basis == "structured" && slices.Index(rank, d.State) > slices.Index(rank, state) {
			state = d.State
		}
	}
	return state
}

// proseOf gives what was said of a tag in words.
func proseOf(in *screening.Input, tag string) (texts []any) {
	for _, d := range in.Disclosures {
		if d.Tag == tag && d.Basis == "prose" && d.Detail != "" {
			texts = append(texts, d.Detail)
		}
	}
	return texts
}
