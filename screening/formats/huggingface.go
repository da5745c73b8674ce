package formats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// Cards of the Hugging Face Hub: YAML between two lines of dashes, then Markdown.
// The Hub does not hold authors to a schema, so old names, maps for lists and
// sentences for codes are all there.
//
// https://huggingface.co/docs/hub/datasets-cards and /model-cards

var datasetCardKeys = strings.Fields(`license licenses license_name license_link license_details language languages language_bcp47 language_details
	tags annotations_creators language_creators pretty_name size_categories source_datasets task_categories tasks_categories task_ids
	paperswithcode_id multilinguality configs dataset_info extra_gated_prompt extra_gated_fields extra_gated_heading extra_gated_description
	extra_gated_button_content extra_gated_eu_disallowed gated viewer train-eval-index arxiv doi thumbnail version homepage citation dataset_summary
	description`)

var modelCardKeys = strings.Fields(`license license_name license_link license_details language languages tags base_model base_model_relation datasets
	new_version library_name pipeline_tag metrics model-index model_name co2_eq_emissions widget inference thumbnail extra_gated_prompt
	extra_gated_fields extra_gated_heading extra_gated_description extra_gated_button_content extra_gated_eu_disallowed gated arxiv doi
	license_link quantized_by model_creator model_type base_model_url prompt_template`)

// onlyModels are keys that no card of a data set has.
var onlyModels = []string{"base_model", "base_model_relation", "library_name", "pipeline_tag", "model-index", "model_name", "widget", "inference", "datasets",
	"quantized_by", "model_creator", "model_type", "metrics", "co2_eq_emissions", "new_version"}

var onlyDatasets = []string{"pretty_name", "annotations_creators", "language_creators", "size_categories", "source_datasets", "task_categories",
	"tasks_categories", "task_ids", "multilinguality", "dataset_info", "configs", "viewer", "train-eval-index"}

func detectModelCard(s *source) int {
	if !s.card || !s.docs[0].is(isMap) {
		return 0
	}
	if len(s.docs[0].all(onlyModels...)) > len(s.docs[0].all(onlyDatasets...)) {
		return certain
	}
	return 0
}

func detectDatasetCard(s *source) int {
	if !s.card || !s.docs[0].is(isMap) {
		return 0
	}
	return likely
}

func readDatasetCard(r *reader) error {
	v := r.source.docs[0]
	rec := r.add("dataset", v)
	if len(v.all(onlyDatasets...)) == 0 {
		r.find(Unresolved, "kind", "", "does not say whether it is of a data set or a model; it is taken for a data set's")
	}
	r.cardKeys(rec, v, datasetCardKeys)
	r.card(rec, v)
	r.set(rec, &rec.Name, "/name", v.any("pretty_name"))
	r.set(rec, &rec.Shape.SizeRaw, "/shape/size_raw", joined(v.any("size_categories")))
	for _, of := range []value{v, v.get("dataset_info")} {
		r.set(rec, &rec.Input.Version, "/version", of.any("version"))
	}
	for _, parents := range v.all("source_datasets") {
		r.sourceDatasets(rec, parents)
	}
	for _, by := range v.all("annotations_creators", "language_creators") {
		r.annotators(rec, by)
	}
	for _, tasks := range v.all("task_categories", "tasks_categories", "task_ids") {
		for _, item := range flatten(tasks) {
			r.taskModality(rec, item)
			r.topic(rec, item, "task of the card")
		}
	}
	if len(rec.Shape.Modalities) > 0 {
		if len(rec.Sources) > 0 { // language_creators made the text
			rec.source("unknown", "the card says nothing of what is not text", v.at)
		}
		rec.partly()
	}
	r.sweep(rec, v)
	r.sections(rec)
	return nil
}

func readModelCard(r *reader) error {
	v := r.source.docs[0]
	rec := r.add("base_model", v)
	r.cardKeys(rec, v, modelCardKeys)
	r.card(rec, v)
	r.set(rec, &rec.Name, "/name", v.any("model_name"))
	r.modelIndex(rec, v)
	for _, base := range v.all("base_model") {
		for _, item := range flatten(base) {
			r.parent(rec, "base_models", screening.LineageRef{Ref: r.text(item, "lineage"), Label: v.any("base_model_relation").words()}, item.at)
		}
	}
	for _, data := range v.all("datasets") {
		for _, item := range flatten(data) {
			r.parent(rec, "derived_from", screening.LineageRef{Ref: r.text(item, "lineage")}, item.at)
		}
	}
	r.sweep(rec, v)
	r.sections(rec)
	return nil
}

// modelIndex takes the name that evaluation results are filed under, if there is
// no better one.
func (r *reader) modelIndex(rec *Record, v value) {
	for _, item := range v.any("model-index").each() {
		if name := item.get("name"); rec.Name == "" && name.given() {
			r.set(rec, &rec.Name, "/name", name)
		}
	}
}

func joined(v value) value {
	var parts []string
	for _, item := range flatten(v) {
		if s := item.words(); s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return noValue
	}
	return value{&node{kind: isText, text: strings.Join(parts, ", ")}, v.at}
}

func (r *reader) cardKeys(rec *Record, v value, known []string) {
	for i, key := range v.keys {
		switch at := v.member(i).at; {
		case slices.ContainsFunc(known, func(k string) bool { return sameKey(k, key) }):
		case strings.HasPrefix(r.form(key).same, "extragated"):
			rec.restrict("unknown", at)
			r.find(Restriction, "license", at, "is no key by which the Hub gates access; state what it restricts under license.restrictions")
		default:
			r.find(UnknownKey, "", at, "is no key of a card; only restrictions were looked for in it")
		}
	}
}

// card reads what cards of data sets and models share.
func (r *reader) card(rec *Record, v value) {
	for i, l := range v.all("license", "licenses") {
		before := len(rec.License.Declared)
		r.license(rec, l, "")
		if i > 0 && len(rec.License.Declared) > before {
			r.find(Contradiction, "license", l.at, "is a second statement of the licence under another spelling of the key")
		}
	}
	r.whichLicense(rec, v)
	if len(rec.License.Declared) == 0 {
		r.find(Missing, "license", "", "is not given")
	}
	for _, l := range v.all("language", "languages") {
		r.list(rec, &rec.Shape.Languages, "/shape/languages", l)
	}
	for _, l := range rec.Shape.Languages {
		if strings.ContainsAny(l, " ,") {
			r.find(Malformed, "languages", rec.From["/shape/languages/0"], "holds a language that is no code; it is kept as it is")
			break
		}
	}
	for _, tags := range v.all("tags") {
		for _, item := range flatten(tags) {
			r.tag(rec, item)
		}
	}
	r.gate(rec, v)
}

// whichLicense reads the keys that say which licence "other" is.
func (r *reader) whichLicense(rec *Record, v value) {
	link := v.any("license_link")
	r.take(link)
	for i, name := range append(v.all("license_name", "license_details"), noValue) {
		l := screening.DeclaredLicense{Raw: r.text(name, "license")}
		if r.take(name); i == 0 {
			l.URL = r.text(link, "license")
		}
		if l == (screening.DeclaredLicense{}) {
			continue
		}
		at := name.at
		if !name.given() {
			at = link.at
		}
		other := slices.IndexFunc(rec.License.Declared, func(d screening.DeclaredLicense) bool { return strings.EqualFold(d.Raw, "other") && d.URL == "" })
		if other < 0 {
			r.declare(rec, l, at)
			continue
		}
		l.Scope = rec.License.Declared[other].Scope
		rec.License.Declared[other] = l
		rec.readTo = 0
		if l.URL == "" {
			r.find(Unresolved, "license", at, "names another licence than those of the Hub, and no link to it; read it and state it under license.declared")
		}
	}
}

func (r *reader) tag(rec *Record, item value) {
	for s := range strings.SplitSeq(item.words(), ",") {
		s = strings.TrimSpace(s)
		switch form := r.form(s).same; {
		case form == "notforallaudiences": // the Hub shows a warning by it
			rec.disclose("not_for_all_audiences", "present", "structured", "", item.at)
		case form == "synthetic":
			rec.disclose("synthetic", "present", "structured", "tag of the card", item.at)
		case strings.HasPrefix(form, "license:"):
			r.license(rec, value{&node{kind: isText, text: strings.TrimSpace(s[strings.IndexByte(s, ':')+1:])}, item.at}, "")
		case strings.HasPrefix(form, "basemodel:") && rec.Kind == "base_model":
			parts := strings.Split(s, ":")
			r.parent(rec, "base_models", screening.LineageRef{Ref: parts[len(parts)-1]}, item.at)
		default:
			r.topic(rec, value{&node{kind: isText, text: s}, item.at}, "tag of the card")
		}
	}
}

// gate reads the conditions under which the Hub gives access.
func (r *reader) gate(rec *Record, v value) {
	gates := v.all("gated", "extra_gated_prompt", "extra_gated_fields", "extra_gated_heading", "extra_gated_description", "extra_gated_button_content")
	for _, g := range gates {
		if !g.given() {
			continue
		}
		if s := strings.ToLower(g.words()); sameKey(lastKey(g.at), "gated") && (s == "false" || s == "no") {
			rec.disclose("gated_access", "absent", "structured", "", g.at)
			continue
		}
		rec.disclose("gated_access", "present", "structured", "", g.at)
	}
	for _, g := range v.all("extra_gated_eu_disallowed") { // counts only if the repository is gated, which the card need not say
		switch s := strings.ToLower(g.words()); {
		case !g.given(), s == "false", s == "no":
		default:
			if s != "true" && s != "yes" {
				r.find(Unreadable, "license", g.at, "is neither true nor false; it is taken for true")
			}
			rec.restrict("eu_disallowed", g.at)
			rec.disclose("geo_restriction", "present", "structured", "not for the EU", g.at)
		}
	}
	for _, prompt := range v.all("extra_gated_prompt", "extra_gated_description") {
		if prompt.given() {
			r.agreement(rec, prompt)
		}
	}
	for _, fields := range v.all("extra_gated_fields") {
		r.gateFields(rec, fields)
	}
}

// agreement keeps open what has to be agreed to: nobody can tell from here.
func (r *reader) agreement(rec *Record, v value) {
	rec.restrict("unknown", v.at)
	r.find(Restriction, "license", v.at, "asks for agreement to terms in words; read them and state them under license.restrictions")
}

var ageWords = regexp.MustCompile(`(?i)\b(?:age|birth|birthday|born|adult|18)\b`)

// gateFields looks at what has to be filled in to get access: a box to check is an
// agreement, and who is asked for the day of birth may be too young.
func (r *reader) gateFields(rec *Record, v value) {
	for i := range v.items {
		item := value{&v.items[i], v.at + "/" + strconv.Itoa(i)}
		label := ""
		if v.kind == isMap {
			item, label = v.member(i), v.keys[i]
		}
		s := item.words()
		if s == "checkbox" {
			r.agreement(rec, item)
		}
		if s == "date_picker" || ageWords.MatchString(label) || ageWords.MatchString(s) {
			rec.disclose("not_for_all_audiences", "present", "inferred", "access is asked for with a date, often that of birth, or an age", item.at)
		}
		r.gateFields(rec, item)
	}
}

// sourceDatasets reads "original" and "extended|name".
func (r *reader) sourceDatasets(rec *Record, v value) {
	for _, item := range flatten(v) {
		s := r.text(item, "lineage")
		from, name, isExtended := strings.Cut(s, "|")
		switch {
		case s == "":
		case screening.IsPlaceholder(s):
			r.find(Placeholder, "lineage", item.at, "is a placeholder")
			r.parent(rec, "derived_from", screening.LineageRef{Label: s}, item.at)
		case s == "original":
			if rec.Lineage == nil {
				rec.Lineage = &screening.Lineage{}
				rec.From["/lineage"] = item.at
			}
		case isExtended && strings.HasPrefix(from, "extended"):
			r.parent(rec, "derived_from", screening.LineageRef{Ref: name}, item.at)
		case s == "extended": // of what?
			r.find(Unresolved, "lineage", item.at, "says that it extends a data set, not which")
			r.parent(rec, "derived_from", screening.LineageRef{}, item.at)
		default:
			r.parent(rec, "derived_from", screening.LineageRef{Ref: s}, item.at)
		}
	}
}

var machineWords = regexp.MustCompile(`(?i)machine|model|synthetic|generat|\b(?:ai|llms?|gpt|chatgpt|claude|gemini|llama|mistral|mixtral|qwen|vicuna|deepseek)\b`)

// annotators reads by whom texts and labels were made.
func (r *reader) annotators(rec *Record, v value) {
	key := lastKey(v.at)
	texts := sameKey(key, "language_creators")
	for _, item := range flatten(v) {
		for s := range strings.SplitSeq(strings.ToLower(r.text(item, "sources")), ",") {
			s = strings.TrimSpace(s)
			kind, known := map[string]string{"machine-generated": "synthetic", "crowdsourced": "human_authored", "expert-generated": "human_authored",
				"found": "unknown", "other": "unknown", "unknown": "unknown", "no-annotation": "", "": ""}[strings.NewReplacer("_", "-", " ", "-").Replace(s)]
			switch {
			case kind == "synthetic":
				rec.disclose("model_generated", "present", "structured", key+": machine-generated", item.at)
			case !known:
				kind = "unknown"
				r.find(Malformed, "sources", item.at, "is no code of the Hub's for who made it")
				if machineWords.MatchString(s) {
					rec.disclose("model_generated", "present", "inferred", key+": "+s, item.at)
				}
			}
			if texts && kind != "" {
				rec.source(kind, key+": "+s, item.at)
			}
		}
	}
}

var taskModalities = []struct{ part, modality string }{{"image", "image"}, {"video", "video"}, {"audio", "audio"}, {"speech", "audio"}, {"visual", "image"},
	{"face", "image"}, {"object-detection", "image"}, {"tabular", "tabular"}, {"time-series", "time_series"}, {"voice", "audio"}}

func (r *reader) taskModality(rec *Record, item value) {
	s := strings.ToLower(item.words())
	for _, t := range taskModalities {
		if strings.Contains(s, t.part) {
			rec.modality(t.modality, item.at)
		}
	}
}
