package formats

import (
	"regexp"
	"slices"
	"strings"
)

func jobKind(s *source, group, kind string) int {
	if s.card {
		return 0
	}
	for _, d := range s.docs {
		if d.is(isMap) && strings.HasPrefix(d.get("apiVersion").words(), group) && (kind == "" || d.get("kind").words() == kind) {
			return certain
		}
	}
	return 0
}

func detectTrainJob(s *source) int   { return jobKind(s, "trainer.kubeflow.org/", "") }
func detectPyTorchJob(s *source) int { return jobKind(s, "kubeflow.org/", "PyTorchJob") }
func detectRayJob(s *source) int     { return jobKind(s, "ray.io/", "") }

// readJobOnly knows a job whose data and model are in a command line or in a
// program, where nothing is looked for.
func readJobOnly(r *reader) error {
	r.Run = true
	r.find(Unresolved, "dataset", "", "is named in the job's command or program at most, which is not read")
	r.find(Unresolved, "base_model", "", "is named in the job's command or program at most, which is not read")
	r.noObjective("is decided by the job's command or program, which is not read")
	return nil
}

// readTrainJob reads a TrainJob with the runtime it refers to, which holds the
// defaults. Secrets are not looked at.
func readTrainJob(r *reader) error {
	r.Run = true
	var jobs, runtimes []value
	for _, d := range r.source.docs {
		switch kind := d.get("kind").words(); kind {
		case "TrainJob":
			jobs = append(jobs, d)
			r.Version = d.get("apiVersion").words()
		case "TrainingRuntime", "ClusterTrainingRuntime":
			runtimes = append(runtimes, d)
		default:
			code := Note
			if strings.HasSuffix(kind, "Job") || kind == "List" || kind == "" {
				code = Unresolved
			}
			r.find(code, "job", d.at, "is another kind of object, which was passed over")
		}
	}
	if len(jobs) > 1 {
		return r.refuse(NotThisFormat, "the file has more than one TrainJob; a spec is of one run")
	}
	job, runtime := noValue, noValue
	if len(jobs) == 1 {
		job = jobs[0]
		runtime = r.runtimeOf(job, runtimes)
	} else {
		if len(runtimes) > 0 {
			runtime = runtimes[0]
		}
		r.find(Unresolved, "job", "", "the file holds a runtime and no TrainJob: a job can name other data and another model")
	}
	for _, part := range []struct{ name, kind string }{{"dataset", "dataset"}, {"model", "base_model"}} {
		initializer := job.get("spec", "initializer", part.name)
		uri, env := initializer.get("storageUri"), storageEnv(initializer.get("env"))
		switch {
		case uri.given() && env.given() && uri.words() != env.words():
			r.find(Contradiction, part.kind, env.at, "names another address than storageUri")
			r.refer(part.kind, part.kind, env)
		case !uri.given() && env.given():
			uri = env
		case !uri.given() && hasStorageEnv(initializer.get("env")): // out of a secret, over the default
			r.find(Unresolved, part.kind, initializer.at, "has its address in a secret or elsewhere in the cluster")
			continue
		case !uri.given():
			uri = storageURI(runtime, part.name+"-initializer")
		}
		if rec := r.refer(part.kind, part.kind, uri); rec == nil {
			r.find(Unresolved, part.kind, "", "is not named: no storageUri in the job and no STORAGE_URI in the runtime")
		}
	}
	for _, key := range []string{"podTemplateOverrides", "podSpecOverrides"} {
		if v := job.get("spec", key); v.given() {
			r.find(Unresolved, "dataset", v.at, "changes the job's pods, which can bring other data")
		}
	}
	r.trainer(job, runtime)
	r.noObjective("is decided by the trainer's command, which is not read")
	return nil
}

// runtimeOf finds the runtime that a job refers to, by name and kind.
func (r *reader) runtimeOf(job value, runtimes []value) value {
	ref := job.get("spec", "runtimeRef")
	kind, name := firstWords(ref.get("kind").words(), "ClusterTrainingRuntime"), ref.get("name").words()
	found := noValue
	for _, rt := range runtimes {
		if rt.get("metadata", "name").words() != name || rt.get("kind").words() != kind {
			continue
		}
		if found.given() {
			r.find(Contradiction, "runtime", rt.at, "is a second runtime of the same kind and name")
			continue
		}
		found = rt
	}
	if !found.given() && name != "" {
		r.find(Unresolved, "runtime", ref.at, "is not in the file; join the runtime to it, with a line of three dashes between, as defaults are there")
	}
	return found
}

var namesData = regexp.MustCompile(`(?i)data|model|checkpoint|ckpt|://`)

// trainer reports words of the trainer's command and variables that can name other
// data than the initializers fetch. They are a program's, and not read.
func (r *reader) trainer(job, runtime value) {
	own := job.get("spec", "trainer")
	parts := []value{own.get("command"), own.get("args"), own.get("env")}
	for _, rj := range replicatedJobs(runtime) {
		if strings.HasSuffix(rj.get("name").words(), "-initializer") {
			continue
		}
		for _, c := range rj.get("template", "spec", "template", "spec", "containers").each() {
			parts = append(parts, c.get("command"), c.get("args"), c.get("env"))
		}
	}
	for _, v := range parts {
		for _, item := range flatten(v) {
			if namesData.MatchString(item.words()) {
				r.find(Unresolved, "dataset", item.at, "is of the trainer's command, which can name other data and is not read")
				break
			}
		}
	}
}

func replicatedJobs(runtime value) []value {
	return runtime.get("spec", "template", "spec", "replicatedJobs").each()
}

// storageURI finds the default of an initializer in a runtime.
func storageURI(runtime value, job string) value {
	for _, rj := range replicatedJobs(runtime) {
		if rj.get("name").words() != job {
			continue
		}
		for _, c := range rj.get("template", "spec", "template", "spec", "containers").each() {
			if uri := storageEnv(c.get("env")); uri.given() {
				return uri
			}
		}
	}
	return noValue
}

func storageEnv(env value) value {
	for _, e := range env.each() {
		if e.get("name").words() == "STORAGE_URI" {
			return e.get("value")
		}
	}
	return noValue
}

func hasStorageEnv(env value) bool {
	return slices.ContainsFunc(env.each(), func(e value) bool { return e.get("name").words() == "STORAGE_URI" })
}
