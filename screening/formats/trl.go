package formats

func detectTRL(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || !root.get("model_name_or_path").given() || root.get("stage").given() {
		return 0
	}
	if root.get("dataset_name").given() || root.get("datasets").given() || root.get("dataset_mixture").given() || root.get("dataset_mixer").given() {
		return certain
	}
	return 0
}

// readTRL reads files of TRL's commands and of the alignment handbook. Which
// command runs one is not in the file.
func readTRL(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	if rec := r.refer("base_model", "base_model", root.get("model_name_or_path")); rec != nil {
		r.set(rec, &rec.Revision, "/revision", root.get("model_revision"))
	}
	r.refer("teacher", "teacher", root.get("teacher_model_name_or_path"))
	if v := root.get("sft_model_path"); v.given() { // what the policy starts from
		r.refer("base_model", "base_model", v)
	}
	for _, key := range []string{"reward_model", "reward_model_path", "reward_model_name_or_path"} {
		for _, v := range root.get(key).each() {
			r.refer("reward_model", "reward_model", v)
		}
	}
	r.refer("tokenizer", "tokenizer", root.get("tokenizer_name_or_path"))
	for _, name := range root.get("dataset_name").each() {
		if rec := r.refer("dataset", "dataset", name); rec != nil {
			r.split(rec, root.get("dataset_train_split"))
		}
	}
	mixture := root.get("dataset_mixture")
	if mixture.given() && !mixture.get("datasets").given() {
		r.find(Unresolved, "dataset", mixture.at, "is a mixture of data sets that is written in a way that is not read")
	}
	for _, list := range []value{root.get("datasets"), mixture.get("datasets")} {
		for _, d := range list.each() {
			if d.kind != isMap {
				r.refer("dataset", "dataset", d)
				continue
			}
			name := firstGiven(d, "id", "path", "name")
			if rec := r.refer("dataset", "dataset", name); rec != nil {
				r.split(rec, d.get("split"))
				r.set(rec, &rec.Revision, "/revision", d.get("revision"))
				r.dataFiles(d.get("data_files"))
			} else {
				r.find(Unresolved, "dataset", d.at, "has no id")
			}
		}
	}
	mixer := root.get("dataset_mixer")
	for i, name := range mixer.keys {
		r.refer("dataset", "dataset", value{&node{kind: isText, text: name}, mixer.member(i).at})
	}
	if mixer.given() && mixer.kind != isMap {
		r.find(Unresolved, "dataset", mixer.at, "is a mixture of data sets that is written in a way that is not read")
	}
	if v := root.get("dataset_path"); v.given() {
		r.refer("dataset", "dataset", v)
	}
	r.dataFiles(root.get("data_files"))
	r.remoteCode(root.get("trust_remote_code"), "base_model", "tokenizer", "teacher")
	r.rewards(root.get("reward_funcs"))
	if v := root.get("judge"); v.given() {
		r.find(Unresolved, "reward_model", v.at, "rates answers; say which model it is")
	}
	r.weightsFrom(root.get("resume_from_checkpoint"))
	r.onlyEvaluated(root.get("eval_dataset"))
	r.noObjective("depends on the command that runs the file (sft, dpo, grpo, reward, …); say which")
	r.needs("base_model", "dataset")
	return nil
}
