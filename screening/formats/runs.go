package formats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// Training-run files name data and models in a few words. Each is taken as it
// stands: a path, a program or a variable is reported, never followed, run or
// expanded.

// refer makes a record of what a run file names. nil: the key says nothing.
func (r *reader) refer(kind, field string, v value) *Record {
	if !v.given() {
		return nil
	}
	s := r.text(v, field)
	if s == "" {
		if v.kind == isMap || v.kind == isList {
			r.find(Unresolved, field, v.at, "is written in a way that is not read")
		}
		return nil
	}
	if m := userInfo.FindStringSubmatch(s); m != nil {
		s, r.secret = m[1]+s[len(m[0]):], v.at
	}
	rec := r.add(kind, v)
	rec.Name, rec.From["/name"] = s, v.at
	switch {
	case strings.Contains(s, "${") || strings.Contains(s, "{{"):
		r.find(Unresolved, field, v.at, "is a variable that is filled in elsewhere; say what it stands for")
	case screening.IsPlaceholder(s):
		r.find(Unresolved, field, v.at, "is a placeholder")
	case strings.HasPrefix(s, "REMOTE:") || s == "ONLINE":
		r.find(Unresolved, field, v.at, "is fetched from elsewhere by the tool; give what it fetches")
	case strings.HasPrefix(s, "pvc:"), strings.HasPrefix(s, "file:"):
		r.find(Unresolved, field, v.at, "is a path on a disk: it does not say what is there")
	case hubURL.MatchString(s), absolute.MatchString(s):
		rec.URIs, rec.From["/uris/0"] = []string{s}, v.at
		rec.identify(s)
	case localPath.MatchString(s):
		r.find(Unresolved, field, v.at, "is a local path: it does not say what is there")
		rec.identify(s)
	case hubID.MatchString(s):
		uri := "hf://" + s
		if kind == "dataset" {
			uri = "hf://datasets/" + s
		}
		rec.URIs, rec.From["/uris/0"] = []string{uri}, v.at
		rec.identify(s)
	default: // one word: an old name of the Hub, or a directory
		r.find(Unresolved, field, v.at, "is a bare name: it can be a directory as well as a data set of the Hub")
		rec.identify(s)
	}
	return rec
}

// userInfo is who asks for an address, and often the password.
var userInfo = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://)[^/@\s]+@`)

// split takes over which part is trained on. A slice of a part is within it.
func (r *reader) split(rec *Record, v value) {
	s := v.words()
	if s == "" {
		return
	}
	name, _, _ := strings.Cut(strings.ToLower(s), "[")
	switch name {
	case "train", "training":
		rec.Split = "train"
	case "test":
		rec.Split = "test"
	case "validation", "valid", "val", "dev", "eval":
		rec.Split = "validation"
	case "all", "full":
		rec.Split = "all"
	default: // train_sft, train+test: what it holds is not said
		rec.Split = "custom"
		r.find(Note, "split", v.at, "is a part of the data set whose content is not said")
	}
	rec.From["/split"] = v.at
}

// remoteCode marks records whose loading runs code that comes with them.
func (r *reader) remoteCode(v value, kinds ...string) {
	for i := range r.Records {
		if rec := &r.Records[i]; slices.Contains(kinds, rec.Kind) {
			r.runsCode(rec, v)
		}
	}
}

// runsCode reads whether loading an input runs its code; what is not plainly no is yes.
func (r *reader) runsCode(rec *Record, v value) {
	if !v.given() {
		return
	}
	r.take(v)
	on := allowsCode(v)
	rec.TrustRemoteCode, rec.From["/trust_remote_code"] = &on, v.at
	if on {
		r.find(Note, "trust_remote_code", v.at, "runs code that comes with "+strings.ReplaceAll(rec.Kind, "_", " "))
	}
}

func allowsCode(v value) bool {
	s := strings.ToLower(v.words())
	return s != "false" && s != "no" && s != "0"
}

// codeAnywhere reads permissions to run code that stand elsewhere in a run file: of
// what is loaded there is not told, so it holds for everything.
func (r *reader) codeAnywhere(v value) {
	for i := range v.items {
		if v.kind == isList {
			r.codeAnywhere(value{&v.items[i], v.at + "/" + strconv.Itoa(i)})
			continue
		}
		m := v.member(i)
		if sameKey(v.keys[i], "trust_remote_code") && m.given() && !r.taken[m.at] && allowsCode(m) {
			r.remoteCode(m, "base_model", "tokenizer", "teacher", "reward_model", "dataset")
		}
		r.codeAnywhere(m)
	}
}

// weightsFrom reports keys by which a run starts from other weights than those of
// the base model.
func (r *reader) weightsFrom(vs ...value) {
	for _, v := range vs {
		if s := v.words(); v.given() && s != "false" && s != "" {
			r.find(Unresolved, "base_model", v.at, "continues from other weights, which do not say what they were trained on")
		}
	}
}

// dataFiles looks at files within a data set. Those that are elsewhere are another one.
func (r *reader) dataFiles(v value) {
	for _, file := range flatten(v) {
		switch s := file.words(); {
		case strings.Contains(s, "://"), strings.HasPrefix(s, "/"), strings.HasPrefix(s, "."), strings.HasPrefix(s, "~"), strings.Contains(s, ".."), strings.ContainsAny(s, "\\$"):
			r.find(Unresolved, "dataset", file.at, "takes files that are not of the data set it names; it does not say what is there")
		case s != "":
			r.find(Note, "dataset", file.at, "takes single files of the data set")
		}
	}
}

// onlyEvaluated tells of data that is not trained on.
func (r *reader) onlyEvaluated(vs ...value) {
	for _, v := range vs {
		if v.given() && (v.words() != "" || len(v.items) > 0) {
			r.find(Note, "split", v.at, "names data to evaluate on, which is no input of the run")
		}
	}
}

// rewards reads by what answers are rated: models, or programs.
func (r *reader) rewards(v value) {
	for _, item := range flatten(v) {
		if s := item.words(); hubID.MatchString(s) || strings.ContainsAny(s, "/\\") {
			r.refer("reward_model", "reward_model", item)
		}
	}
	r.pythonPaths("reward_model", v)
}

// objective settles what kind of training it is, or reports that it does not.
func (r *reader) objective(code, at string) {
	r.Objective, r.objectiveAt = code, at
}

func (r *reader) noObjective(why string) {
	r.find(Unresolved, "objective", "", "%s", why)
}

// pythonPaths reports values that name code instead of data.
func (r *reader) pythonPaths(field string, v value) {
	for _, item := range flatten(v) {
		if s := item.words(); strings.Contains(s, ".") && !strings.ContainsAny(s, "/ ") {
			r.find(Unresolved, field, item.at, "names a program; what it does with the data is not said")
		}
	}
}

// needs reports what a run must have and this file does not name.
func (r *reader) needs(kinds ...string) {
	for _, kind := range kinds {
		if !slices.ContainsFunc(r.Records, func(rec Record) bool { return rec.Kind == kind }) &&
			!slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Field == kind && f.Code == Unresolved }) {
			r.find(Unresolved, kind, "", "is not named in the file")
		}
	}
}

// firstGiven gives the first of some members that says something.
func firstGiven(v value, keys ...string) value {
	for _, key := range keys {
		if m := v.get(key); m.given() {
			return m
		}
	}
	return noValue
}
