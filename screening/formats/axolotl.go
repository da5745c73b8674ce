package formats

import (
	"regexp"
	"strings"
)

func detectAxolotl(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || !root.get("base_model").given() {
		return 0
	}
	if root.get("datasets").given() || root.get("pretraining_dataset").given() || root.get("rl").given() {
		return certain
	}
	if root.get("micro_batch_size").given() || root.get("sequence_len").given() {
		return likely
	}
	return 0
}

var axolotlObjectives = map[string]string{"dpo": "dpo", "ipo": "dpo", "simpo": "dpo", "kto": "kto", "orpo": "orpo", "grpo": "grpo"}

// readAxolotl reads https://docs.axolotl.ai/docs/config-reference.html.
func readAxolotl(r *reader) error {
	r.Run = true
	root := r.source.docs[0]
	if rec := r.refer("base_model", "base_model", root.get("base_model")); rec != nil {
		r.set(rec, &rec.Revision, "/revision", root.get("revision_of_model"))
	}
	if v := root.get("lora_model_dir"); v.given() {
		r.refer("base_model", "base_model", v)
	}
	r.refer("tokenizer", "tokenizer", root.get("tokenizer_config"))
	for _, key := range []string{"datasets", "pretraining_dataset"} {
		for _, d := range root.get(key).each() {
			r.axolotlDataset(d)
		}
	}
	r.remoteCode(root.get("trust_remote_code"), "base_model", "tokenizer")
	switch rl := root.get("rl"); {
	case rl.given() && rl.words() != "":
		code, ok := axolotlObjectives[strings.ToLower(rl.words())]
		if !ok {
			code = "other"
			r.find(Note, "objective", rl.at, "is a kind of reinforcement learning that a spec has no code for")
		}
		r.objective(code, rl.at)
	case root.get("reward_model").words() == "true":
		r.objective("reward_model", root.get("reward_model").at)
	case root.get("process_reward_model").words() == "true":
		r.objective("reward_model", root.get("process_reward_model").at)
	case root.get("pretraining_dataset").given() && root.get("reinit_weights").words() == "true":
		r.objective("pretrain", root.get("pretraining_dataset").at)
	case root.get("pretraining_dataset").given(): // from the weights of base_model
		r.objective("continued_pretrain", root.get("pretraining_dataset").at)
	default:
		r.objective("sft", "")
	}
	r.rewards(root.get("trl").get("reward_funcs"))
	r.weightsFrom(root.get("resume_from_checkpoint"))
	r.onlyEvaluated(root.get("test_datasets"))
	for _, plugin := range root.get("plugins").each() {
		if !strings.HasPrefix(plugin.words(), "axolotl.integrations.") {
			r.find(Unresolved, "dataset", plugin.at, "is a program that can change what is trained on")
		}
	}
	r.needs("base_model", "dataset")
	return nil
}

func (r *reader) axolotlDataset(d value) {
	if d.kind != isMap {
		r.refer("dataset", "dataset", d)
		return
	}
	path := d.get("path")
	if !path.given() {
		r.find(Unresolved, "dataset", d.at, "has no path")
		return
	}
	rec := r.refer("dataset", "dataset", path)
	if rec == nil {
		return
	}
	rec.at = d.at
	r.split(rec, d.get("split"))
	r.set(rec, &rec.Revision, "/revision", d.get("revision"))
	r.dataFiles(d.get("data_files"))
	r.runsCode(rec, d.get("trust_remote_code"))
	if t := d.get("type"); t.kind == isText && strings.Contains(t.text, ".") && !strings.HasPrefix(t.text, "chat_template") &&
		!strings.HasPrefix(t.text, "bradley_terry") && !builtinType.MatchString(t.text) {
		r.find(Unresolved, "dataset", t.at, "is prepared by a program of its own; what it makes of the data is not said")
	}
}

// builtinType matches prompt formats that come with Axolotl, such as
// "alpaca.load_open_orca" or "chatml.intel": those do nothing but format.
var builtinType = regexp.MustCompile(`^(?:alpaca|chatml|llama3|sharegpt|zephyr|completion|input_output|context_qa|gpteacher|pygmalion|oasst|summarizetldr|user_defined|passthrough)\b`)
