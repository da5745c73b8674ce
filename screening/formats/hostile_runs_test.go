package formats

import (
	"slices"
	"strings"
	"testing"
)

// TestRunSpellings: what a run file trains on or from is named as an input, or its
// place is an open point.
func TestRunSpellings(t *testing.T) {
	t.Parallel()
	after := func(run string) func(string) string { return func(s string) string { return run + s + "\n" } }
	job := func(spec string) string {
		return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  initializer:\n    dataset: {storageUri: hf://lab/talk}\n    model: {storageUri: hf://lab/base}\n" + spec
	}
	neverLost(t, []spelling{
		{"Axolotl", "a.yaml", after("base_model: lab/base\n"), "datasets: [{path: lab/talk}]", []string{
			"datasets: [{path: lab/talk, data_files: [https://x.example/d.jsonl]}]", "datasets: [{path: lab/talk, data_files: ../d.jsonl}]", "datasets: [{path: lab/talk, data_files: {train: /d.jsonl}}]",
			"datasets: [{path: lab/talk}]\nresume_from_checkpoint: ./out", "datasets: [{path: lab/talk}]\nplugins: [my.code.Plugin]", "datasets: [{path: lab/talk, type: my_prompts.load}]",
			"datasets: [{path: lab/talk}]\npretraining_dataset: ./more", "datasets: [[{path: ./d}]]", "datasets: {a: {path: ./d}}", "datasets: [{ds_type: json}]", "datasets: [{path: lab/talk}]\npretraining_dataset: [{name: x}]",
			"datasets: [{path: lab/talk}]\nrl: grpo\ntrl: {reward_funcs: [rewards.f]}", "datasets: [{path: json, data_files: d.jsonl}]", "datasets: [{path: s3:/d}]", "datasets: [{path: \"lab/talk \\u0000\"}]",
			"datasets: [{path: lab/talk}]\nlora_model_dir: ./adapter", "datasets: [{path: lab/talk}]\n---\ndatasets: [{path: ./d}]", "datasets: [{path: lab/talk}]\n---\n{}\n", "datasets: [null]", "datasets: []", "datasets: [{path: null}]"}},
		{"TRL", "a.yaml", after("model_name_or_path: lab/base\n"), "dataset_name: lab/talk", []string{
			"dataset_name: lab/talk\ndataset_mixture: ./mix.yaml", "dataset_name: lab/talk\ndataset_mixer: [./d]", "dataset_mixer: {./d: 0.5}", "dataset_mixer: {lab/talk: 1, other: 0.5}", "dataset_mixture: {datasets: {a: {id: ./d}}}",
			"dataset_mixture: {datasets: [{config: x}]}", "datasets: [{path: lab/talk, data_files: https://x.example/d}]", "dataset_name: lab/talk\nresume_from_checkpoint: ./out", "dataset_name: lab/talk\nreward_funcs: [./reward]",
			"dataset_name: lab/talk\nreward_funcs: my.rewards.f", "dataset_name: lab/talk\njudge: pair_rm", "dataset_name: lab/talk\nsft_model_path: ./sft", "dataset_name: lab/talk\nteacher_model_name_or_path: ./t",
			"dataset_name: lab/talk\ndataset_path: ./d", "dataset_name: [lab/talk, ./d]", "dataset_name: lab/talk, ./d", "dataset_name: {a: b}"}},
		{"torchtune", "a.yaml", after("model: {_component_: torchtune.models.x}\ncheckpointer: {_component_: torchtune.training.X, checkpoint_dir: lab/base}\n"),
			"dataset: {_component_: torchtune.datasets.chat_dataset, source: lab/talk}", []string{"dataset: {_component_: my.code.data, source: lab/talk}", "dataset: {_component_: torchtune.datasets.alpaca_dataset}", "dataset: [{source: lab/talk}, {source: json}]",
				"dataset: {_component_: torchtune.datasets.chat_dataset, source: lab/talk, data_files: https://x.example/d}", "dataset: {_component_: torchtune.datasets.chat_dataset, source: lab/talk}\nteacher_checkpointer: {checkpoint_dir: /tmp/t}",
				"dataset: {_component_: torchtune.datasets.chat_dataset, source: lab/talk}\nref_checkpointer: {checkpoint_dir: /tmp/t}", "dataset: {_component_: torchtune.datasets.chat_dataset, source: lab/talk}\nresume_from_checkpoint: true"}},
		{"llm-foundry", "a.yaml", after("model: {name: hf_causal_lm, pretrained: true, pretrained_model_name_or_path: lab/base}\n"), "train_loader: {dataset: {hf_name: lab/talk}}", []string{
			"train_loader: {dataset: {hf_name: lab/talk}}\nload_path: s3://x/ckpt", "train_loader: {dataset: {hf_name: lab/talk, streams: {a: {remote: s3://x/d}}}}", "train_loader: {dataset: {streams: {a: {local: ./d}}}}",
			"train_loader: {dataset: {hf_name: lab/talk, hf_kwargs: {data_files: ./d}}}", "train_loader: {dataset: {hf_name: lab/talk, preprocessing_fn: my.code:f}}", "train_loader: {dataset: ./d}"}},
		{"TrainJob", "a.yaml", after(""), job(""), []string{job("  trainer: {command: [tune, run, dataset=./d]}"), job("  trainer: {args: [--dataset, ./d]}"), job("  trainer: {env: [{name: DATASET_PATH, value: /d}]}"),
			job("  podTemplateOverrides: [{spec: {volumes: [{name: d, hostPath: {path: /d}}]}}]"), job("  podSpecOverrides: [{volumes: [{name: d}]}]"),
			strings.Replace(job(""), "{storageUri: hf://lab/talk}", "{storageUri: hf://lab/talk, env: [{name: STORAGE_URI, value: s3://x/d}]}", 1),
			strings.Replace(job(""), "{storageUri: hf://lab/talk}", "{env: [{name: STORAGE_URI, valueFrom: {secretKeyRef: {name: s}}}]}", 1),
			job("  runtimeRef: {name: gone}"), job("---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"), job("---\napiVersion: batch/v1\nkind: Job\n"),
			strings.Replace(job(""), "hf://lab/talk", "pvc://x", 1), strings.Replace(job(""), "hf://lab/talk", `""`, 1), job("---\nkind: List\nitems: [{kind: TrainJob}]\n")}},
	})
}

// TestRemoteCode: wherever a run file says that code may run, it is said of what is loaded.
func TestRemoteCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"base_model: lab/base\ndatasets: [{path: lab/talk}]\ntrust_remote_code: true\n", "base_model: lab/base\ndatasets: [{path: lab/talk}]\nmodel_kwargs: {trust_remote_code: true}\n",
		"base_model: lab/base\ndatasets: [{path: lab/talk}]\ntrust_remote_code: false\noverrides_of_model_kwargs: {trust_remote_code: on}\n",
		"model: {pretrained: true, pretrained_model_name_or_path: lab/base, trust_remote_code: true}\ntrain_loader: {dataset: {hf_name: lab/talk}}\n",
		"model: {pretrained: true, pretrained_model_name_or_path: lab/base}\ntrain_loader: {dataset: {hf_name: lab/talk, hf_kwargs: {trust_remote_code: 1}}}\n",
		"model_name_or_path: lab/base\nstage: sft\ndataset: a\ntrust_remote_code: True\n", "model_name_or_path: lab/base\ndataset_name: lab/talk\ntrust_remote_code: yes\n",
	} {
		im := imported(t, "a.yaml", text)
		if !slices.ContainsFunc(im.Records, func(rec Record) bool { return rec.TrustRemoteCode != nil && *rec.TrustRemoteCode }) {
			t.Errorf("%s\ngot %+v", text, im.Records)
		}
	}
	im := imported(t, "a.yaml", "base_model: lab/base\ndatasets: [{path: lab/a, trust_remote_code: true}, {path: lab/b, trust_remote_code: false}, {path: lab/c}]\n")
	for i, want := range []string{"nil", "true", "false", "nil"} {
		got := "nil"
		if p := im.Records[i].TrustRemoteCode; p != nil {
			got = map[bool]string{true: "true", false: "false"}[*p]
		}
		if got != want {
			t.Errorf("record %d: %s, want %s", i, got, want)
		}
	}
}

// TestEvaluationData: what a run only evaluates on is told, not trained on.
func TestEvaluationData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"base_model: lab/base\ndatasets: [{path: lab/talk}]\ntest_datasets: [{path: lab/test}]\n",
		"model_name_or_path: lab/base\nstage: sft\ndataset: a\neval_dataset: b\n", "model_name_or_path: lab/base\ndataset_name: lab/talk\neval_dataset: lab/test\n"} {
		im := imported(t, "a.yaml", text)
		if !has(Note, "split")(im) || slices.ContainsFunc(im.Records, func(rec Record) bool { return rec.Name == "lab/test" || rec.Name == "b" }) {
			t.Errorf("%s\ngot %+v", text, im.Findings)
		}
	}
}

// TestTwoDefinitions: a word that two files define differently stays open.
func TestTwoDefinitions(t *testing.T) {
	t.Parallel()
	run := imported(t, "run.yaml", "model_name_or_path: lab/base\nstage: sft\ndataset: talk")
	one := imported(t, "one.json", `{"talk": {"hf_hub_url": "lab/talk"}}`)
	two := imported(t, "two.json", `{"talk": {"hf_hub_url": "lab/other"}}`)
	same := imported(t, "same.json", `{"talk": {"hf_hub_url": "lab/talk"}}`)
	if open := openIn(merged(t, Options{}, run, one, two)); !slices.Equal(open, []string{"contradiction /talk"}) {
		t.Errorf("got %v", open)
	}
	if open := openIn(merged(t, Options{}, run, one, same)); len(open) != 0 {
		t.Errorf("the same twice: %v", open)
	}
}

// TestRunTwice: what a file says of a data set holds for each input that is it.
func TestRunTwice(t *testing.T) {
	t.Parallel()
	run := imported(t, "a.yaml", "base_model: lab/base\ndatasets:\n- {path: lab/talk, split: train}\n- {path: lab/talk, split: test}\n")
	rock := imported(t, "c.json", croissant(`"name": "x", "license": "cc-by-nc-4.0", "url": "https://huggingface.co/datasets/lab/talk"`))
	for _, in := range merged(t, Options{}, run, rock).Spec.Inputs[1:] {
		if codes, _ := in.License.Stated(); !slices.Contains(codes, "nc") {
			t.Errorf("%s: %v", in.ID, codes)
		}
	}
	card := imported(t, "c.md", cardOf("pretty_name: x\nlicense: cc-by-nc-4.0"))
	for _, in := range merged(t, Options{For: map[string]string{"c.md": "lab/talk"}}, run, card).Spec.Inputs[1:] {
		if codes, _ := in.License.Stated(); !slices.Contains(codes, "nc") {
			t.Errorf("told, %s: %v", in.ID, codes)
		}
	}
}

// TestRuntimeOfAJob: the runtime is the one of the kind that the job names.
func TestRuntimeOfAJob(t *testing.T) {
	t.Parallel()
	runtime := func(kind, uri string) string {
		return "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: " + kind + "\nmetadata: {name: rt}\nspec: {template: {spec: {replicatedJobs: [{name: dataset-initializer, template: {spec: {template: {spec: {containers: [{env: [{name: STORAGE_URI, value: " + uri + "}]}]}}}}}]}}}\n"
	}
	job := func(ref string) string {
		return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: {runtimeRef: {name: rt" + ref + "}, initializer: {model: {storageUri: hf://lab/base}}}\n"
	}
	both := runtime("ClusterTrainingRuntime", "hf://lab/cluster") + runtime("TrainingRuntime", "hf://lab/own")
	for ref, want := range map[string]string{"": "hf://lab/cluster", ", kind: TrainingRuntime": "hf://lab/own", ", kind: ClusterTrainingRuntime": "hf://lab/cluster"} {
		if got := imported(t, "j.yaml", job(ref)+both).Records[0].Name; got != want {
			t.Errorf("%q: got %s, want %s", ref, got, want)
		}
	}
	if im := imported(t, "j.yaml", job("")+runtime("TrainingRuntime", "hf://lab/own")); !has(Unresolved, "runtime")(im) {
		t.Errorf("a runtime of another kind: %+v", im.Findings)
	}
	if im := imported(t, "j.yaml", job("")+both+runtime("ClusterTrainingRuntime", "hf://lab/second")); !has(Contradiction, "runtime")(im) {
		t.Errorf("two runtimes of one name: %+v", im.Findings)
	}
}
