package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

const (
	// SpecAnnotation holds the training spec of an object, in YAML or JSON.
	SpecAnnotation = "weir.dev/spec"
	// GateLabel puts a batch Job behind the gate. The other kinds always are.
	GateLabel = "weir.dev/gate"
	// TeamLabel gives the spec's team, when the spec names none.
	TeamLabel = "weir.dev/team"
)

// kind is a kind of object that trains, and what of its spec is machinery.
// Paths are below the object's spec; "*" is every member or item.
type kind struct {
	group, version, name string
	byLabel              bool     // gated only with GateLabel
	podSpecs             []string // scheduling is left out of these
	drop                 []string
	overrides            []string // lists of patches; one that only names what it patches says nothing
	programs             []string // things with an image, a command or arguments
	data                 []string // URIs of data that the object itself loads
	elsewhere            []string // names of things that run and that the gate has not seen
	suspend              string
}

// jobDrop is of a batch Job's spec: how it is run, not what.
var jobDrop = []string{"suspend", "selector", "manualSelector", "managedBy", "parallelism", "completions", "backoffLimit",
	"ttlSecondsAfterFinished", "activeDeadlineSeconds", "template/metadata"}

func below(path string, paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, path+"/"+p)
	}
	return out
}

// kinds is every kind that the gate reads, in the version that its rules name.
var kinds = []kind{
	{group: "batch", version: "v1", name: "Job", byLabel: true, podSpecs: []string{"template/spec"}, drop: jobDrop,
		programs: podPrograms("template/spec"), suspend: "suspend"},
	{group: "jobset.x-k8s.io", version: "v1alpha2", name: "JobSet",
		podSpecs: []string{"replicatedJobs/*/template/spec/template/spec"},
		drop: append([]string{"suspend", "managedBy", "ttlSecondsAfterFinished", "replicatedJobs/*/replicas", "replicatedJobs/*/template/metadata"},
			below("replicatedJobs/*/template/spec", jobDrop)...),
		programs: podPrograms("replicatedJobs/*/template/spec/template/spec"), suspend: "suspend"},
	{group: "kubeflow.org", version: "v1", name: "PyTorchJob", podSpecs: []string{"pytorchReplicaSpecs/*/template/spec"},
		drop:     []string{"runPolicy", "pytorchReplicaSpecs/*/replicas", "pytorchReplicaSpecs/*/template/metadata"},
		programs: podPrograms("pytorchReplicaSpecs/*/template/spec"), suspend: "runPolicy/suspend"},
	{group: "ray.io", version: "v1", name: "RayJob",
		podSpecs: []string{"rayClusterSpec/headGroupSpec/template/spec", "rayClusterSpec/workerGroupSpecs/*/template/spec", "submitterPodTemplate/spec"},
		drop: []string{"suspend", "managedBy", "jobId", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "preRunningDeadlineSeconds",
			"shutdownAfterJobFinishes", "deletionPolicy", "deletionStrategy", "submitterConfig", "submitterPodTemplate/metadata",
			"rayClusterSpec/suspend", "rayClusterSpec/managedBy", "rayClusterSpec/headGroupSpec/template/metadata",
			"rayClusterSpec/workerGroupSpecs/*/template/metadata", "rayClusterSpec/workerGroupSpecs/*/suspend",
			"rayClusterSpec/workerGroupSpecs/*/replicas", "rayClusterSpec/workerGroupSpecs/*/minReplicas",
			"rayClusterSpec/workerGroupSpecs/*/maxReplicas", "rayClusterSpec/workerGroupSpecs/*/scaleStrategy"},
		programs: append([]string{""}, podPrograms("rayClusterSpec/headGroupSpec/template/spec",
			"rayClusterSpec/workerGroupSpecs/*/template/spec", "submitterPodTemplate/spec")...),
		elsewhere: []string{"clusterSelector"}, suspend: "suspend"},
	{group: "trainer.kubeflow.org", version: "v1alpha1", name: "TrainJob",
		podSpecs: []string{"podSpecOverrides/*", "podTemplateOverrides/*/spec", runtimePatch + "/spec"},
		drop: []string{"suspend", "managedBy", "labels", "annotations", "activeDeadlineSeconds", "podTemplateOverrides/*/metadata",
			"podTemplateOverrides/*/manager", "runtimePatches/*/time", "runtimePatches/*/trainingRuntimeSpec/template/metadata",
			"runtimePatches/*/trainingRuntimeSpec/template/spec/replicatedJobs/*/template/metadata", runtimePatch + "/metadata"},
		overrides: []string{"podSpecOverrides", "podTemplateOverrides", "runtimePatches"},
		programs:  append([]string{"trainer", "initializer/dataset", "initializer/model"}, podPrograms("podSpecOverrides/*", "podTemplateOverrides/*/spec", runtimePatch+"/spec")...),
		data:      []string{"initializer/dataset/storageUri", "initializer/model/storageUri"},
		elsewhere: []string{"runtimeRef"}, suspend: "suspend"},
}

const runtimePatch = "runtimePatches/*/trainingRuntimeSpec/template/spec/replicatedJobs/*/template/spec/template"

func podPrograms(podSpecs ...string) (paths []string) {
	for _, p := range podSpecs {
		paths = append(paths, p+"/containers/*", p+"/initContainers/*")
	}
	return paths
}

// scheduling says where and when a pod runs, not what it does. Kueue writes into
// it when it starts a job.
var scheduling = []string{"nodeSelector", "nodeName", "affinity", "tolerations", "schedulingGates", "schedulerName", "priority",
	"priorityClassName", "preemptionPolicy", "topologySpreadConstraints", "terminationGracePeriodSeconds"}

func (k *kind) String() string { return k.group + "/" + k.version + " " + k.name }

// kindOf finds the kind of an object; ok is false for one that the gate does not read.
func kindOf(group, version, name string) (*kind, bool) {
	for i := range kinds {
		if k := &kinds[i]; k.group == group && k.version == version && k.name == name {
			return k, true
		}
	}
	return nil, false
}

// kindNames lists what the gate reads, for a message.
func kindNames() string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].String()
	}
	return strings.Join(names, ", ")
}

// object is what the gate reads of one object. Its name, uid, status and managed
// fields are not among it.
type object struct {
	kind      *kind
	spec      string // the annotation
	hasSpec   bool
	team      string
	gate      string   // the label's value
	owners    []string // kinds ("group/version Name") of the controller that owns it
	suspended bool
	workload  []byte    // canonical JSON of what runs
	programs  []program // in a fixed order
	data      []located // URIs that it loads
	elsewhere []string  // places of what runs too and was not seen
}

// located is a text and where it stands in the object's spec.
type located struct{ at, text string }

// program is one thing of the workload that runs.
type program struct {
	Path  string // where it stands in the object's spec
	Name  string
	Image string
	Runs  string // command and arguments, or entrypoint
	bytes []byte // canonical JSON of all of it
}

// readObject reads an object strictly enough that no two readers take it for
// different things: no duplicate keys, no case variants.
func readObject(k *kind, raw []byte) (*object, error) {
	var in struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Labels          map[string]string `json:"labels"`
			Annotations     map[string]string `json:"annotations"`
			OwnerReferences []struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Controller bool   `json:"controller"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &in, exactNumbers); err != nil {
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	}
	if in.APIVersion != strings.TrimPrefix(k.group+"/"+k.version, "/") || in.Kind != k.name {
		return nil, fmt.Errorf("the object is not a %s", k)
	}
	spec, ok := in.Spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the %s has no spec", k.name)
	}
	o := &object{kind: k, team: in.Metadata.Labels[TeamLabel], gate: in.Metadata.Labels[GateLabel]}
	o.spec, o.hasSpec = in.Metadata.Annotations[SpecAnnotation]
	for _, r := range in.Metadata.OwnerReferences {
		if r.Controller {
			o.owners = append(o.owners, r.APIVersion+" "+r.Kind)
		}
	}
	each(spec, k.suspend, func(_ string, v any) { o.suspended = o.suspended || v == true })
	return o, o.read(spec)
}

func (o *object) read(spec map[string]any) (err error) {
	k := o.kind
	for _, path := range k.drop {
		remove(spec, path)
	}
	for _, path := range k.podSpecs {
		for _, key := range scheduling {
			remove(spec, path+"/"+key)
		}
	}
	for _, path := range k.overrides {
		if list, ok := spec[path].([]any); ok {
			spec[path] = slices.DeleteFunc(list, namesOnly)
		}
	}
	spec = withoutEmpty(spec).(map[string]any)
	for _, path := range k.programs {
		each(spec, path, func(at string, v any) {
			if m, ok := v.(map[string]any); ok && err == nil {
				err = o.addProgram(at, m)
			}
		})
	}
	if err != nil {
		return err
	}
	for _, path := range k.data {
		each(spec, path, func(at string, v any) {
			if uri, ok := v.(string); ok && uri != "" {
				o.data = append(o.data, located{dotted(at), uri})
			}
		})
	}
	for _, path := range k.elsewhere {
		each(spec, path, func(at string, _ any) { o.elsewhere = append(o.elsewhere, dotted(at)) })
	}
	o.workload, err = canonical(map[string]any{"apiVersion": k.group + "/" + k.version, "kind": k.name, "spec": spec})
	return err
}

func (o *object) addProgram(path string, m map[string]any) (err error) {
	p := program{Path: path, Name: text(m["name"]), Image: text(m["image"])}
	var words []string
	for _, key := range []string{"command", "args"} {
		list, _ := m[key].([]any)
		for _, w := range list {
			words = append(words, text(w))
		}
	}
	if e := text(m["entrypoint"]); e != "" {
		words = append(words, e)
	}
	p.Runs = strings.Join(words, " ")
	if p.Image == "" && p.Runs == "" {
		return nil
	}
	if path == "" { // the object itself, of which only the entrypoint runs
		m = map[string]any{"entrypoint": m["entrypoint"], "runtimeEnvYAML": m["runtimeEnvYAML"]}
	}
	p.bytes, err = canonical(m)
	o.programs = append(o.programs, p)
	return err
}

// dotted is a path as people who write manifests have it.
func dotted(at string) string { return "spec." + strings.ReplaceAll(at, "/", ".") }

func text(v any) string { s, _ := v.(string); return s }

// each visits what a path leads to, in a fixed order.
func each(v any, path string, visit func(at string, v any)) {
	var walk func(v any, at string, rest []string)
	walk = func(v any, at string, rest []string) {
		if len(rest) == 0 {
			visit(strings.TrimPrefix(at, "/"), v)
			return
		}
		switch v := v.(type) {
		case map[string]any:
			if rest[0] == "*" {
				for _, key := range slices.Sorted(maps.Keys(v)) {
					walk(v[key], at+"/"+key, rest[1:])
				}
			} else if next, ok := v[rest[0]]; ok {
				walk(next, at+"/"+rest[0], rest[1:])
			}
		case []any:
			if rest[0] == "*" {
				for i, item := range v {
					walk(item, at+"/"+strconv.Itoa(i), rest[1:])
				}
			}
		}
	}
	var rest []string
	if path != "" {
		rest = strings.Split(path, "/")
	}
	walk(v, "", rest)
}

// remove takes out the member that a path leads to.
func remove(v any, path string) {
	i := strings.LastIndexByte(path, '/')
	parent, key := path[:max(i, 0)], path[i+1:]
	each(v, parent, func(_ string, v any) {
		if m, ok := v.(map[string]any); ok {
			delete(m, key)
		}
	})
}

// withoutEmpty drops members that say nothing. Items of lists stay: an empty
// argument is one.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			switch m := withoutEmpty(member).(type) {
			case nil:
				delete(v, key)
			case map[string]any:
				if len(m) == 0 {
					delete(v, key)
				}
			case []any:
				if len(m) == 0 {
					delete(v, key)
				}
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}

// namesOnly reports whether a patch names what it patches and changes nothing.
func namesOnly(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if key != "name" && key != "manager" && key != "targetJobs" && !namesOnly(member) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !namesOnly(item) })
	}
	return v == nil
}

// exactNumbers keeps numbers as they are written: as doubles, two large ones
// could become the same.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	number, err := dec.ReadValue()
	*v = jsontext.Value(bytes.Clone(number))
	return err
}))

// canonical gives one form of a JSON value: sorted keys, numbers as they are.
func canonical(v any) ([]byte, error) {
	out, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(out)
	err = value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return value, err
}

// digest is a checksum in the words of a training spec.
func digest(data []byte, of string) map[string]any {
	return map[string]any{"alg": "sha256", "value": screening.Sum(data).String(), "of": of}
}
