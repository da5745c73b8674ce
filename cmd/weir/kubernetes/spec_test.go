package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/cmd/weir/kubernetes"
	"weir/screening"
)

// recorded are the reviews in testdata, one of each kind.
var recorded = []string{"job", "jobset", "pytorchjob", "rayjob", "trainjob"}

// tree is a JSON value that a test changes.
type tree = map[string]any

func load(t interface{ Fatal(...any) }, name string) tree {
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var v tree
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

func request(review tree) tree { return review["request"].(tree) }
func objectOf(review tree) tree {
	return request(review)["object"].(tree)
}

// at gives a member of a tree by path, making the objects on the way.
func at(v any, path ...string) any {
	for _, key := range path {
		switch x := v.(type) {
		case tree:
			if x[key] == nil {
				x[key] = tree{}
			}
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil {
				panic(err)
			}
			v = x[i]
		}
	}
	return v
}

func put(v any, value any, path ...string) {
	switch x := at(v, path[:len(path)-1]...).(type) {
	case tree:
		x[path[len(path)-1]] = value
	case []any:
		i, err := strconv.Atoi(path[len(path)-1])
		if err != nil {
			panic(err)
		}
		x[i] = value
	}
}

func path(text string) []string { return strings.Split(text, "/") }

func specOf(t interface{ Fatal(...any) }, review tree) []byte {
	spec, err := kubernetes.SpecOf(encode(review))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// leaves lists the paths of all values below v that hold nothing else.
func leaves(v any, below string) (paths []string) {
	switch v := v.(type) {
	case tree:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			paths = append(paths, leaves(v[key], below+"/"+strings.ReplaceAll(key, "/", "~"))...)
		}
		return paths
	case []any:
		for i := range v {
			paths = append(paths, leaves(v[i], below+"/"+strconv.Itoa(i))...)
		}
		return paths
	}
	return []string{strings.TrimPrefix(below, "/")}
}

// notCounted is all of the recorded objects that can change without a new
// screening. Everything that is not listed changes the digest.
var notCounted = map[string][]string{
	"job": {"backoffLimit", "completions", "manualSelector", "parallelism", "selector/matchLabels/batch.kubernetes.io~controller-uid", "suspend",
		"template/metadata/creationTimestamp", "template/metadata/labels/batch.kubernetes.io~controller-uid",
		"template/metadata/labels/batch.kubernetes.io~job-name", "template/metadata/labels/controller-uid", "template/metadata/labels/job-name",
		"template/spec/schedulerName", "template/spec/terminationGracePeriodSeconds"},
	"jobset": {"replicatedJobs/0/replicas", "replicatedJobs/0/template/spec/backoffLimit", "replicatedJobs/0/template/spec/completions",
		"replicatedJobs/0/template/spec/parallelism", "replicatedJobs/0/template/spec/template/metadata/labels/app",
		"replicatedJobs/0/template/spec/template/spec/schedulerName", "replicatedJobs/0/template/spec/template/spec/terminationGracePeriodSeconds", "suspend"},
	"pytorchjob": {"pytorchReplicaSpecs/Master/replicas", "pytorchReplicaSpecs/Master/template/spec/schedulerName",
		"pytorchReplicaSpecs/Master/template/spec/terminationGracePeriodSeconds", "pytorchReplicaSpecs/Worker/replicas",
		"pytorchReplicaSpecs/Worker/template/spec/schedulerName", "pytorchReplicaSpecs/Worker/template/spec/terminationGracePeriodSeconds",
		"runPolicy/cleanPodPolicy", "runPolicy/suspend"},
	"rayjob": {"backoffLimit", "rayClusterSpec/headGroupSpec/template/metadata/creationTimestamp",
		"rayClusterSpec/headGroupSpec/template/spec/schedulerName", "rayClusterSpec/headGroupSpec/template/spec/terminationGracePeriodSeconds",
		"rayClusterSpec/workerGroupSpecs/0/maxReplicas", "rayClusterSpec/workerGroupSpecs/0/minReplicas", "rayClusterSpec/workerGroupSpecs/0/replicas",
		"rayClusterSpec/workerGroupSpecs/0/template/spec/schedulerName", "rayClusterSpec/workerGroupSpecs/0/template/spec/terminationGracePeriodSeconds",
		"shutdownAfterJobFinishes", "suspend", "ttlSecondsAfterFinished"},
	"trainjob": {"managedBy", "suspend"},
}

func TestEveryOtherFieldCounts(t *testing.T) {
	t.Parallel()
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := specOf(t, load(t, name))
			var same []string
			for _, leaf := range leaves(objectOf(load(t, name))["spec"], "") {
				changed := load(t, name)
				p := path(leaf)
				for i := range p {
					p[i] = strings.ReplaceAll(p[i], "~", "/")
				}
				put(objectOf(changed)["spec"], "changed", p...)
				spec, err := kubernetes.SpecOf(encode(changed))
				if err != nil { // refused: it counts
					continue
				}
				if string(spec) == string(plain) {
					same = append(same, leaf)
				}
			}
			if diff := cmp.Diff(notCounted[name], same); diff != "" {
				t.Errorf("fields that do not count (-want +got):\n%s", diff)
			}
		})
	}
}

// What nobody has heard of counts too, wherever a pod is described.
func TestUnknownFieldsCount(t *testing.T) {
	t.Parallel()
	for name, places := range map[string][]string{
		"job":        {"x", "template/x", "template/spec/x", "template/spec/containers/0/x", "template/spec/containers/0/securityContext/x"},
		"jobset":     {"x", "replicatedJobs/0/x", "replicatedJobs/0/template/spec/x", "replicatedJobs/0/template/spec/template/spec/initContainers/0/x"},
		"pytorchjob": {"x", "elasticPolicy/x", "pytorchReplicaSpecs/Master/x", "pytorchReplicaSpecs/Other/template/spec/x"},
		"rayjob":     {"x", "rayClusterSpec/x", "rayClusterSpec/headGroupSpec/x", "submitterPodTemplate/spec/x"},
		"trainjob":   {"x", "trainer/x", "initializer/dataset/x", "runtimeRef/x", "podSpecOverrides/x"},
	} {
		for _, place := range places {
			plain, changed := load(t, name), load(t, name)
			put(objectOf(changed)["spec"], "y", path(place)...)
			if string(specOf(t, plain)) == string(specOf(t, changed)) {
				t.Errorf("%s: %s does not count", name, place)
			}
		}
	}
}

// As doubles these two would be one.
func TestLargeNumbersCount(t *testing.T) {
	t.Parallel()
	with := func(uid string) []byte {
		text := strings.Replace(string(encode(load(t, "job"))), `"securityContext":{}`, `"securityContext":{"runAsUser":`+uid+`}`, 1)
		spec, err := kubernetes.SpecOf([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	if string(with("9007199254740993")) == string(with("9007199254740992")) {
		t.Error("9007199254740993 and 9007199254740992 are one spec")
	}
}

// Two creates of one manifest differ in what the API server, the controllers and
// the tools write into them, and in nothing else.
func TestTwoCreatesAreOneSpec(t *testing.T) {
	t.Parallel()
	names := rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`)
	labels := rapid.MapOfN(rapid.SampledFrom([]string{"controller-uid", "job-name", "kueue.x-k8s.io/queue-name", "workflows.argoproj.io/workflow", "app"}), names, 0, 5)
	texts := rapid.Map(labels, func(m map[string]string) tree {
		out := tree{}
		for k, v := range m {
			out[k] = v
		}
		return out
	})
	scheduling := func(t *rapid.T) tree {
		all := tree{"nodeSelector": texts.Draw(t, "nodeSelector"), "tolerations": []any{tree{"key": names.Draw(t, "toleration"), "operator": "Exists"}},
			"affinity": tree{"nodeAffinity": tree{}}, "schedulingGates": []any{tree{"name": names.Draw(t, "gate")}}, "priority": rapid.IntRange(0, 9).Draw(t, "priority"),
			"schedulerName": names.Draw(t, "scheduler"), "nodeName": names.Draw(t, "node")}
		for key := range all {
			if rapid.Bool().Draw(t, "leave out "+key) {
				delete(all, key)
			}
		}
		return all
	}
	pods := map[string][]string{
		"job": {"template"}, "jobset": {"replicatedJobs/0/template/spec/template"}, "trainjob": nil,
		"pytorchjob": {"pytorchReplicaSpecs/Master/template", "pytorchReplicaSpecs/Worker/template"},
		"rayjob":     {"rayClusterSpec/headGroupSpec/template", "rayClusterSpec/workerGroupSpecs/0/template"},
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(recorded).Draw(t, "kind")
		plain, again := load(t, name), load(t, name)
		o := objectOf(again)
		meta := o["metadata"].(tree)
		for key, value := range map[string]any{"uid": names.Draw(t, "uid"), "name": names.Draw(t, "name"), "namespace": names.Draw(t, "namespace"),
			"resourceVersion": strconv.Itoa(rapid.Int().Draw(t, "version")), "generation": rapid.IntRange(0, 99).Draw(t, "generation"),
			"creationTimestamp": "2026-11-04T00:00:00Z", "managedFields": []any{tree{"manager": names.Draw(t, "manager")}}, "selfLink": names.Draw(t, "link"),
			"finalizers":      []any{names.Draw(t, "finalizer")},
			"ownerReferences": []any{tree{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": names.Draw(t, "owner"), "uid": names.Draw(t, "owner uid"), "controller": true}},
		} {
			if rapid.Bool().Draw(t, "set "+key) {
				meta[key] = value
			}
		}
		maps.Copy(meta["labels"].(tree), texts.Draw(t, "labels"))
		put(meta, names.Draw(t, "last applied"), "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		put(o, names.Draw(t, "status"), "status", "conditions")
		spec := o["spec"].(tree)
		if name == "pytorchjob" {
			put(spec, rapid.Bool().Draw(t, "suspend"), "runPolicy", "suspend")
		} else {
			spec["suspend"] = rapid.Bool().Draw(t, "suspend")
		}
		for _, p := range pods[name] {
			put(spec, tree{"labels": texts.Draw(t, p), "name": names.Draw(t, p+" name"), "annotations": texts.Draw(t, p+" annotations")}, append(path(p), "metadata")...)
			maps.Copy(at(spec, append(path(p), "spec")...).(tree), scheduling(t))
		}
		if name == "trainjob" && rapid.Bool().Draw(t, "started by Kueue") {
			spec["runtimePatches"] = []any{tree{"manager": "kueue.x-k8s.io/manager", "time": "2026-11-04T00:00:00Z", "trainingRuntimeSpec": tree{"template": tree{"spec": tree{
				"replicatedJobs": []any{tree{"name": "node", "template": tree{"spec": tree{"template": tree{"metadata": tree{"labels": texts.Draw(t, "patch")}, "spec": scheduling(t)}}}}}}}}}}
			spec["podTemplateOverrides"] = []any{tree{"targetJobs": []any{tree{"name": "node"}}, "metadata": tree{"labels": texts.Draw(t, "override")}, "spec": scheduling(t)}}
			override := scheduling(t)
			override["targetJobs"] = []any{tree{"name": "node"}}
			spec["podSpecOverrides"] = []any{override}
		}
		if one, two := specOf(t, plain), specOf(t, again); string(one) != string(two) {
			t.Fatalf("two specs of one manifest:\n%s\n%s", one, two)
		}
	})
}

// What is screened is the annotation's spec and one more input; a reviewer sees
// in it what runs, and nothing of the environment's values.
func TestSpecOfWorkload(t *testing.T) {
	t.Parallel()
	for _, name := range recorded {
		raw := specOf(t, load(t, name))
		spec, err := screening.ParseSpec(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if spec.SHA256 != spec.CanonicalSHA256 {
			t.Errorf("%s: the bytes are not canonical", name)
		}
		if spec.RunRef != "nlp/help-desk@2026-11" || spec.Team != "nlp" || len(spec.Inputs) != 3 {
			t.Errorf("%s: run %s, team %s, %d inputs", name, spec.RunRef, spec.Team, len(spec.Inputs))
		}
		in := spec.Inputs[2]
		if in.ID != "workload" || in.Kind != "code" || len(in.URIs) == 0 || !strings.HasPrefix(in.URIs[0], "oci://registry.example/") {
			t.Errorf("%s: %+v", name, in)
		}
		var words []string
		for _, d := range in.Digests {
			if len(d.Value) != 64 {
				t.Errorf("%s: digest %+v", name, d)
			}
			words = append(words, d.Of)
		}
		if all := strings.Join(words, "\n"); !strings.Contains(all, "runs: ") || !strings.Contains(all, "train.py") || strings.Contains(all, "offline") {
			t.Errorf("%s: %s", name, all)
		}
	}
	job, err := screening.ParseSpec(specOf(t, load(t, "job")))
	if err != nil {
		t.Fatal(err)
	}
	const pin = "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab" // a recall of the image finds it by this
	if !slices.ContainsFunc(job.Inputs[2].Digests, func(d screening.Digest) bool { return d.Alg == "sha256" && d.Value == pin }) {
		t.Errorf("the image's own digest is missing: %+v", job.Inputs[2].Digests)
	}
}

// A declared workload keeps what is said of it.
func TestDeclaredWorkload(t *testing.T) {
	t.Parallel()
	r := load(t, "job")
	annotations := objectOf(r)["metadata"].(tree)["annotations"].(tree)
	declared := strings.Replace(annotations["weir.dev/spec"].(string), "inputs:\n",
		"inputs:\n  - id: workload\n    kind: code\n    name: Fine-tuning scripts\n    uris: [\"git+https://git.example/sft\"]\n"+
			"    digests: [{alg: sha1, value: 4e1f0c7f5ad9b0ba3a3e7e34be1d7b04c7e2a911, of: commit}]\n    license: {declared: [{spdx: Apache-2.0}]}\n", 1)
	annotations["weir.dev/spec"] = declared
	spec, err := screening.ParseSpec(specOf(t, r))
	if err != nil {
		t.Fatal(err)
	}
	in := spec.Inputs[0]
	if len(spec.Inputs) != 3 || in.Name != "Fine-tuning scripts" || in.License.Declared[0].SPDX != "Apache-2.0" || in.Digests[0].Of != "commit" ||
		len(in.Digests) != 4 || len(in.URIs) != 2 {
		t.Errorf("%+v", in)
	}
	annotations["weir.dev/spec"] = strings.Replace(declared, "kind: code", "kind: dataset", 1)
	if _, err := kubernetes.SpecOf(encode(r)); err == nil || !strings.Contains(err.Error(), "of kind code") {
		t.Errorf("a workload of another kind: %v", err)
	}
}

func TestSpecRefusals(t *testing.T) {
	t.Parallel()
	annotate := func(text string) func(tree) {
		return func(r tree) { put(objectOf(r), text, "metadata", "annotations", "weir.dev/spec") }
	}
	for name, c := range map[string]struct {
		kind   string
		change func(tree)
		want   string
	}{
		"no annotation":    {"job", func(r tree) { delete(objectOf(r)["metadata"].(tree), "annotations") }, "annotation weir.dev/spec is missing"},
		"blank annotation": {"job", annotate(" \n"), "annotation weir.dev/spec is missing"},
		"no YAML":          {"job", annotate("a: b: c"), "is not well-formed YAML"},
		"unknown key":      {"job", annotate("schema: weir/spec/v1\nrun: x\n"), "/run is not a known key"},
		"many faults":      {"job", annotate("schema: x\n"), "more, see weir check --offline"},
		"other team": {"job", func(r tree) {
			put(objectOf(r), "nlp", "metadata", "labels", "weir.dev/team")
			annotateTeam(r, "vision")
		}, "team differ"},
		"data not named":  {"trainjob", func(r tree) { put(objectOf(r), "hf://other/data", "spec", "initializer", "dataset", "storageUri") }, "spec.initializer.dataset.storageUri is data that no input"},
		"model not named": {"trainjob", func(r tree) { put(objectOf(r), "hf://other/model", "spec", "initializer", "model", "storageUri") }, "spec.initializer.model.storageUri"},
	} {
		r := load(t, c.kind)
		c.change(r)
		if spec, err := kubernetes.SpecOf(encode(r)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %s; want %q", name, err, spec, c.want)
		}
	}
}

func annotateTeam(r tree, team string) {
	annotations := objectOf(r)["metadata"].(tree)["annotations"].(tree)
	annotations["weir.dev/spec"] = fmt.Sprint("team: ", team, "\n", annotations["weir.dev/spec"])
}

// FuzzObject: whatever an object holds, it is read or refused, never both ways.
func FuzzObject(f *testing.F) {
	for _, name := range recorded {
		f.Add(encode(load(f, name)))
	}
	f.Fuzz(func(t *testing.T, review []byte) {
		var in struct {
			Request struct {
				Kind struct{ Group, Version, Kind string }
			}
		}
		if json.Unmarshal(review, &in) != nil || !slices.Contains([]string{"Job", "JobSet", "PyTorchJob", "RayJob", "TrainJob"}, in.Request.Kind.Kind) {
			return
		}
		spec, err := kubernetes.SpecOf(review)
		if err != nil {
			return
		}
		if parsed, err := screening.ParseSpec(spec); err != nil || len(parsed.Inputs) == 0 {
			return // too large together; the desk says so
		}
		if again, err := kubernetes.SpecOf(review); err != nil || string(again) != string(spec) {
			t.Errorf("read twice: %v", err)
		}
	})
}
