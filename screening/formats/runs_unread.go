package formats

import "strings"

func detectTorchtune(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) {
		return 0
	}
	for _, key := range []string{"model", "dataset", "checkpointer", "tokenizer"} {
		if root.get(key).get("_component_").given() {
			return certain
		}
	}
	return 0
}

// readTorchtune knows the file; data sets and objective are Python names in it.
func readTorchtune(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	for _, d := range root.get("dataset").each() {
		if src := d.get("source"); src.given() && hubID.MatchString(src.words()) {
			rec := r.refer("dataset", "dataset", src)
			r.split(rec, d.get("split"))
			r.dataFiles(d.get("data_files"))
			if by := d.get("_component_"); !strings.HasPrefix(by.words(), "torchtune.") {
				r.find(Unresolved, "dataset", d.at, "is loaded by a program of its own; what it makes of the data is not said")
			}
			continue
		}
		r.find(Unresolved, "dataset", d.at, "is named by a program (_component_) and not by what it loads")
	}
	if dir := root.get("checkpointer").get("checkpoint_dir"); dir.given() {
		r.refer("base_model", "base_model", dir)
	}
	for _, other := range []struct{ key, kind string }{{"teacher_checkpointer", "teacher"}, {"ref_checkpointer", "base_model"}, {"ref_policy_checkpointer", "base_model"},
		{"reward_checkpointer", "reward_model"}, {"value_checkpointer", "reward_model"}, {"reward_and_value_checkpointer", "reward_model"}} {
		if dir := root.get(other.key).get("checkpoint_dir"); dir.given() {
			r.refer(other.kind, other.kind, dir)
		}
	}
	r.weightsFrom(root.get("resume_from_checkpoint"))
	r.needs("base_model", "dataset")
	r.noObjective("is named by a program (the recipe and loss._component_)")
	return nil
}

func detectFoundry(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || !root.get("train_loader").given() || !root.get("model").given() {
		return 0
	}
	return certain
}

// readFoundry knows llm-foundry's files, in which most is a variable.
func readFoundry(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	data := root.get("train_loader").get("dataset")
	named := false
	places := []value{data.get("hf_name"), data.get("remote")}
	if data.get("remote").words() == "" { // else it is the copy of that
		places = append(places, data.get("local"))
	}
	for _, v := range places {
		if v.given() && v.words() != "" {
			if rec := r.refer("dataset", "dataset", v); rec != nil {
				r.split(rec, data.get("split"))
				named = true
			}
		}
	}
	for _, key := range []string{"streams", "preprocessing_fn"} {
		if v := data.get(key); v.given() {
			r.find(Unresolved, "dataset", v.at, "names more data, or a program that makes it, which is not read")
		}
	}
	r.dataFiles(data.get("hf_kwargs").get("data_files"))
	r.dataFiles(data.get("hf_kwargs").get("data_dir"))
	r.weightsFrom(root.get("load_path"))
	if !named {
		r.find(Unresolved, "dataset", root.get("train_loader").at, "is not named")
	}
	if v := root.get("model").get("pretrained_model_name_or_path"); v.given() && root.get("model").get("pretrained").words() != "false" {
		r.refer("base_model", "base_model", v)
	} else {
		r.find(Unresolved, "base_model", root.get("model").at, "is not named; say whether the run trains from nothing")
	}
	r.refer("tokenizer", "tokenizer", root.get("tokenizer").get("name"))
	r.noObjective("is not in the file")
	return nil
}

func detectOLMo(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || root.get("train_loader").given() {
		return 0
	}
	if root.get("data").get("paths").kind == isList && (root.get("model").kind == isMap || root.get("run_name").given()) {
		return certain
	}
	return 0
}

// readOLMo knows OLMo's files: thousands of paths, and where they come from in
// comments, which are not read.
func readOLMo(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	paths := root.get("data").get("paths")
	rec := r.add("dataset", paths)
	rec.Name, rec.From["/name"] = "data.paths", paths.at
	r.list(rec, &rec.URIs, "/uris", paths)
	r.find(Unresolved, "dataset", paths.at, "is a list of %d paths, which do not say what is there", len(paths.items))
	if v := root.get("load_path"); v.given() && v.words() != "" {
		r.refer("base_model", "base_model", v)
	}
	if more := root.get("data").get("datasets"); more.given() {
		r.find(Unresolved, "dataset", more.at, "names more data, which is not read")
	}
	r.noObjective("is not in the file; OLMo's files are of pretraining")
	return nil
}
