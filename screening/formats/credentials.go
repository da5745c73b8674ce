package formats

import (
	"regexp"
	"strconv"

	"weir/screening"
)

// Run files and manifests are kept with a spec, where many people can read them.
// One that holds a credential is not: its digest is enough.

var (
	credentialKey = regexp.MustCompile(`(?i)(?:^|[_-])(?:(?:hub|hf|auth|access|api|wandb|hugging_?face)[_-]?token|secret(?:[_-]?key)?|password|passwd|api[_-]?key|private[_-]?key)$`)
	credential    = regexp.MustCompile(`\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16}|sk-[A-Za-z0-9_-]{20,}|xox[abp]-[A-Za-z0-9-]{10,})\b|-----BEGIN [A-Z ]*PRIVATE KEY-----`)
)

// credentials looks for one in a run file: in keys with a value, in names of
// variables beside their value, and in the form of texts.
func (r *reader) credentials() {
	if !r.Run {
		return
	}
	for _, d := range r.source.docs {
		if r.secret == "" {
			r.secret = credentialIn(d)
		}
	}
	if r.secret != "" {
		r.find(Note, "", r.secret, "looks like a credential; the file is not kept with the spec, only its digest. Change the credential")
	}
}

func credentialIn(v value) string {
	switch v.kind {
	case isText:
		if len(v.text) >= 20 && credential.MatchString(v.text) {
			return v.at
		}
	case isList:
		for i := range v.items {
			if at := credentialIn(value{&v.items[i], v.at + "/" + strconv.Itoa(i)}); at != "" {
				return at
			}
		}
	case isMap:
		if credentialKey.MatchString(v.get("name").words()) && secretText(v.get("value")) {
			return v.at + "/value"
		}
		for i, key := range v.keys {
			m := v.member(i)
			if credentialKey.MatchString(key) && secretText(m) {
				return m.at
			}
			if at := credentialIn(m); at != "" {
				return at
			}
		}
	}
	return ""
}

// secretText: a name of a variable or a placeholder is no secret.
func secretText(v value) bool {
	return v.kind == isText && v.text != "" && !screening.IsPlaceholder(v.text) && v.text[0] != '$'
}
