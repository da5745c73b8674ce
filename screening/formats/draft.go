package formats

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// YAML writes the draft for people: each value with the place it came from, each
// open point, and a line for everything that is not known. Those lines are
// comments where a spec may leave the key out, so a gap stays unsaid until it is
// filled in; a required key is left empty, and the spec is no spec until then.
func (d *Draft) YAML() ([]byte, error) {
	raw, err := json.Marshal(&d.Spec)
	if err != nil {
		return nil, err
	}
	root, err := readJSON("draft", raw)
	if err != nil {
		return nil, err
	}
	prune(root, "")
	w := &draftWriter{from: d.From}
	w.line(0, "# A draft of a training spec, made by weir import. Lines that begin with #? are gaps:")
	w.line(0, "# fill one in and take the #? away, or leave it and let the gate ask for it.")
	w.line(0, "# After # at the end of a line stands the file, and the place in it, of the value.")
	spec := &d.Spec
	w.field(0, root, "schema", "")
	w.required(root, "run_ref", spec.RunRef, "the run's name over resubmissions, for example nlp/support-bot@2026-11")
	w.required(root, "owner", spec.Owner, "who answers for the run: id or alias in people.yaml")
	w.optional(root, "on_behalf_of", "on_behalf_of: PERSON", "needed when a service submits")
	w.optional(root, "team", "team: TEAM", "review policies may match on it")
	w.line(0, "objective:")
	if spec.Objective.Kind != "" {
		w.line(1, "kind: "+scalar(spec.Objective.Kind)+w.origin("/objective/kind"))
	} else {
		w.line(1, `kind: ""  #? pretrain, continued_pretrain, sft, dpo, kto, orpo, grpo, ppo, reward_model, distill, embedding, classifier or other`)
	}
	w.gap(1, `purpose: "…"`, "what the model is for, in words")
	w.gap(1, "purposes: [CODE]", "customer_support, code_assistance, research, …: docs/spec.md has all codes")
	w.gap(1, "markets: [EU]", "where the model will be offered: country codes, EU, worldwide")
	w.optional(root, "base_model", "base_model: ID", "id of an input of kind base_model")
	w.line(0, "inputs:")
	for i, item := range root.member("inputs").each() {
		w.input(i, item, &spec.Inputs[i])
	}
	w.statements()
	if spec.DisclosureStatement != "" {
		w.field(0, root, "disclosure_statement", "")
	} else {
		w.line(0, "disclosure_statement: \"\"  #? what goes with the model to its users; needed if a pack in force can hedge")
	}
	w.sources(root.member("sources"))
	return []byte(w.out.String()), nil
}

// Gaps lists what a spec must have and the draft has not.
func (d *Draft) Gaps() (missing []string) {
	for _, key := range []struct{ name, value string }{{"run_ref", d.Spec.RunRef}, {"owner", d.Spec.Owner}, {"objective.kind", d.Spec.Objective.Kind}} {
		if key.value == "" {
			missing = append(missing, key.name)
		}
	}
	return missing
}

// member gives a member of a map of the draft.
func (n *node) member(key string) value { return value{node: n}.get(key) }

// prune takes out what says nothing. An empty lineage says something.
func prune(n *node, key string) (empty bool) {
	switch n.kind {
	case isNull:
		return true
	case isText:
		return n.text == ""
	case isList:
		for i := range n.items {
			prune(&n.items[i], "")
		}
		return len(n.items) == 0
	case isMap:
		var keys []string
		var items []node
		for i := range n.items {
			if !prune(&n.items[i], n.keys[i]) {
				keys, items = append(keys, n.keys[i]), append(items, n.items[i])
			}
		}
		n.keys, n.items = keys, items
		return len(items) == 0 && key != "lineage" && key != ""
	}
	return false
}

type draftWriter struct {
	out  strings.Builder
	from map[string]Place
}

func (w *draftWriter) line(depth int, text string) {
	w.out.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

// gap writes a line to fill in.
func (w *draftWriter) gap(depth int, text, say string) {
	w.out.WriteString(strings.Repeat("  ", depth) + "#? " + text)
	if say != "" {
		w.out.WriteString("  # " + say)
	}
	w.out.WriteByte('\n')
}

func (w *draftWriter) origin(pointer string) string {
	if at, ok := w.from[pointer]; ok {
		return "  # " + at.String()
	}
	return ""
}

// oneLine keeps a hostile file name or key from leaving its comment.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
	s, _ = clip(s, 200)
	return s
}

func (w *draftWriter) required(root *node, key, is, say string) {
	if is != "" {
		w.field(0, root, key, "")
		return
	}
	w.line(0, key+`: ""  #? `+say)
}

func (w *draftWriter) optional(root *node, key, gap, say string) {
	if v := root.member(key); v.given() {
		w.field(0, root, key, "")
		return
	}
	w.gap(0, gap, say)
}

// field writes one member of a map; at is the pointer to the map.
func (w *draftWriter) field(depth int, n *node, key, at string) {
	w.member(depth, key, n.member(key), at+"/"+key)
}

func (w *draftWriter) member(depth int, key string, v value, at string) {
	switch v.kind {
	case isMap:
		if len(v.items) == 0 {
			w.line(depth, key+": {}"+w.origin(at))
			return
		}
		w.line(depth, key+":"+w.origin(at))
		for i, k := range v.keys {
			w.member(depth+1, k, value{node: &v.items[i]}, at+"/"+k)
		}
	case isList:
		if len(v.items) == 0 {
			w.line(depth, key+": []")
			return
		}
		w.line(depth, key+":"+w.origin(at))
		for i := range v.items {
			w.item(depth, &v.items[i], at+"/"+strconv.Itoa(i))
		}
	case isText:
		w.line(depth, key+": "+scalar(v.text)+w.origin(at))
	default:
		w.line(depth, key+": "+v.text+w.origin(at))
	}
}

func (w *draftWriter) item(depth int, n *node, at string) {
	if n.kind != isMap {
		w.line(depth, "- "+scalar(n.text)+w.origin(at))
		return
	}
	var parts []string
	for i, k := range n.keys {
		if n.items[i].kind != isText { // only disclosures, digests and the like are items, and those are flat
			return
		}
		parts = append(parts, k+": "+quoted(n.items[i].text))
	}
	w.line(depth, "- {"+strings.Join(parts, ", ")+"}"+w.origin(at))
}

func (w *draftWriter) input(i int, v value, sparse *screening.Input) {
	in := whole(*sparse)
	at := "/inputs/" + strconv.Itoa(i)
	w.line(0, "")
	w.line(1, "- id: "+scalar(in.ID)+w.origin(at))
	for k, key := range v.keys {
		if key != "id" {
			w.member(2, key, value{node: &v.items[k]}, at+"/"+key)
		}
	}
	data := in.Kind == "dataset"
	for _, g := range []struct {
		missing   bool
		text, say string
	}{
		{in.Description == "", `description: "…"`, "what it holds"},
		{len(in.Creators) == 0 && in.Publisher.Name == "", `creators: [{name: "…"}]`, "who made it"},
		{len(in.URIs) == 0, `uris: ["…"]`, "where it is"},
		{len(in.Digests) == 0 && in.Revision == "", "revision: COMMIT", "40 hex digits; or digests: [{alg: sha256, value: …}]"},
		{data && len(in.Sources) == 0, `sources: [{kind: KIND, detail: "…"}]`,
			"web_crawl, public_dataset, licensed, private_third_party, user_interactions, user_other_services, synthetic, sensor, human_authored or unknown"},
		{len(in.License.Declared) == 0, `license: {declared: [{raw: "…"}]}`, "as the source states it; or spdx: EXPRESSION"},
		{data && in.Consent.Status == "", "consent: {status: STATUS}", "documented, claimed, absent, unknown or not_applicable"},
		{in.Lineage == nil, "lineage: {derived_from: [{ref: ID}]}", "ids of inputs or outside names; lineage: {} says that it has no parents"},
		{data && len(in.Shape.Modalities) == 0 && in.Shape.SizeRaw == "" && len(in.Shape.Languages) == 0, "shape: {modalities: [MODALITY]}",
			"text, code, image, video, audio, tabular, time_series, graph, sensor, three_d or unknown; all that are inside"},
		{data && len(in.Residency.StoredIn) == 0, "residency: {stored_in: [DE], processed_in: [DE], excluded: []}", "country codes, EU, worldwide"},
		{data && in.Split == "", "split: train", "train, validation, test, all or custom"},
		{in.TrustRemoteCode == nil, "trust_remote_code: false", "whether loading it runs code that came with it"},
	} {
		if g.missing {
			w.gap(2, g.text, g.say)
		}
	}
}

// statements writes a line for each tag: about all inputs, so a state that holds
// for one input only belongs to that input.
func (w *draftWriter) statements() {
	w.line(0, "")
	w.line(0, "disclosures:  # about every input; say present, absent or unknown, and take the #? away")
	for _, tag := range screening.DisclosureTags() {
		w.gap(1, "- {tag: "+tag.Name+", state: STATE, basis: structured}", tag.Means)
	}
}

// sources writes the files, with every open point on a line of its own.
func (w *draftWriter) sources(v value) {
	if !v.given() {
		return
	}
	w.line(0, "")
	w.line(0, "# What the files leave open. Settle it above, then take the point out.")
	w.line(0, "sources:")
	for _, f := range v.each() {
		w.line(1, "- name: "+scalar(f.get("name").text))
		for _, key := range []string{"format", "sha256"} {
			w.line(2, key+": "+scalar(f.get(key).text))
		}
		if points := f.get("open").each(); len(points) > 0 {
			w.line(2, "open:")
			for _, p := range points {
				w.item(2, p.node, "")
			}
		}
		if parts := f.get("bytes").each(); len(parts) > 0 {
			w.line(2, "bytes:")
			for _, p := range parts {
				w.line(2, `- "`+p.text+`"`)
			}
		}
	}
}

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/@+-]*$`)
	// words that some reader takes for something else than text
	otherwise = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "inf", "nan"}
)

func scalar(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains(otherwise, strings.ToLower(s)) {
		return s
	}
	return quoted(s)
}

// quoted writes a text in double quotes as YAML and JSON both read it, with
// everything escaped that one of them could take for a break or not show.
func quoted(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains(otherwise, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == ' ' || unicode.IsPrint(c) && c != '\ufeff':
			b.WriteRune(c)
		case c <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
