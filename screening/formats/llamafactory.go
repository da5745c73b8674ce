package formats

import (
	"strings"
)

// LLaMA-Factory: a run names its data sets by words that dataset_info.json, or a
// newer YAML map, resolves.
//
// https://llamafactory.readthedocs.io/en/latest/getting_started/data_preparation.html

func detectLlamaFactory(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || !root.get("model_name_or_path").given() || !root.get("stage").given() {
		return 0
	}
	return certain
}

var llamaStages = map[string]string{"pt": "continued_pretrain", "sft": "sft", "rm": "reward_model", "ppo": "ppo", "dpo": "dpo", "kto": "kto"}

func readLlamaFactory(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	r.refer("base_model", "base_model", root.get("model_name_or_path"))
	for _, key := range []string{"adapter_name_or_path", "ref_model", "ref_model_adapters"} {
		for _, v := range root.get(key).each() {
			r.refer("base_model", "base_model", v)
		}
	}
	for _, v := range root.get("reward_model").each() {
		r.refer("reward_model", "reward_model", v)
	}
	data := root.get("dataset")
	names := data.each()
	if data.kind == isText {
		names = nil
		for name := range strings.SplitSeq(data.text, ",") {
			names = append(names, value{&node{kind: isText, text: strings.TrimSpace(name)}, data.at})
		}
	}
	for _, name := range names {
		s := r.text(name, "dataset")
		if s == "" {
			continue
		}
		rec := r.add("dataset", name)
		rec.Name, rec.From["/name"], rec.ref = s, name.at, s // resolved by Merge, if a file of definitions comes along
	}
	if dir := root.get("dataset_dir"); dir.given() && (strings.HasPrefix(dir.words(), "REMOTE:") || dir.words() == "ONLINE") {
		r.find(Unresolved, "dataset", dir.at, "is fetched from elsewhere by the tool; give its dataset_info.json along")
	}
	r.remoteCode(root.get("trust_remote_code"), "base_model", "reward_model", "dataset")
	r.weightsFrom(root.get("resume_from_checkpoint"))
	r.onlyEvaluated(root.get("eval_dataset"))
	if v := root.get("tokenized_path"); v.words() != "" {
		r.find(Unresolved, "dataset", v.at, "is trained on instead, if it is there already; it does not say what is in it")
	}
	stage := root.get("stage")
	switch code, ok := llamaStages[strings.ToLower(stage.words())]; {
	case !ok:
		r.noObjective("is a stage that is not known")
	case code == "continued_pretrain" && root.get("train_from_scratch").words() == "true":
		r.objective("pretrain", stage.at)
	case code == "dpo" && root.get("pref_loss").words() == "orpo":
		r.objective("orpo", root.get("pref_loss").at)
	default:
		r.objective(code, stage.at)
	}
	r.needs("base_model", "dataset")
	return nil
}

var datasetInfoKeys = []string{"hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name", "file_name"}

func detectDatasetInfo(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || len(root.keys) == 0 {
		return 0
	}
	for i := range root.keys {
		d := root.member(i)
		old := false
		for _, key := range datasetInfoKeys {
			old = old || d.get(key).given()
		}
		if newer := d.get("path").given() && (d.get("converter").given() || d.get("split").given()); d.kind != isMap || !old && !newer {
			return 0
		}
	}
	return certain
}

// readDatasetInfo reads what names of data sets stand for.
func readDatasetInfo(r *reader) error {
	r.definitions = true
	root := r.source.docs[0]
	for i, name := range root.keys {
		d := root.member(i)
		before := len(r.Records)
		for _, key := range []string{"hf_hub_url", "path", "ms_hub_url", "om_hub_url", "cloud_file_name", "script_url", "file_name"} {
			v := d.get(key)
			if !v.given() || v.words() == "" {
				continue
			}
			otherHub := key == "ms_hub_url" || key == "om_hub_url"
			switch {
			case otherHub && len(r.Records) == before: // its ids look like those of the Hub and are not
				rec := r.add("dataset", v)
				rec.Name, rec.From["/name"] = r.text(v, "dataset"), v.at
				r.find(Unresolved, "dataset", v.at, "is on another hub than Hugging Face's; give its address")
			case otherHub:
				r.find(Note, "dataset", v.at, "is a copy on another hub, which can differ")
			case len(r.Records) == before:
				r.refer("dataset", "dataset", v)
			default:
				r.find(Note, "dataset", v.at, "is a second place for the same data, which can differ")
			}
			if key == "script_url" {
				r.find(Unresolved, "dataset", v.at, "is made by a program, which is not run")
			}
		}
		if len(r.Records) == before {
			continue
		}
		rec := &r.Records[before]
		rec.ref = name
		rec.at = d.at
		r.split(rec, d.get("split"))
		r.set(rec, &rec.Revision, "/revision", d.get("hf_revision"))
	}
	return nil
}
