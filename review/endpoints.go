package review

import (
	"fmt"
	"time"

	"weir/screening"
)

// Endpoint is a declared webhook receiver. What is secret comes from files or
// the environment, never from the policies file.
type Endpoint struct {
	ID           string   `json:"id"`
	URL          string   `json:"url"`
	SecretFile   string   `json:"secret_file"`
	SecretEnv    string   `json:"secret_env"`
	Secrets      []Secret `json:"secrets"` // in place of the two, when there are several
	AllowHTTP    bool     `json:"allow_http"`
	AllowPrivate bool     `json:"allow_private"`
	Timeout      Duration `json:"timeout"`
	MaxInFlight  int      `json:"max_in_flight"`
	Format       string   `json:"format"` // of the bodies: standard, chat, ticket or cloudevents
	Types        []string `json:"types"`  // of messages; all when left out
	BearerFile   string   `json:"bearer_file"`
	BearerEnv    string   `json:"bearer_env"`
	CertFile     string   `json:"cert_file"` // PEM, shown to the receiver, with its key
	KeyFile      string   `json:"key_file"`
	CAFile       string   `json:"ca_file"` // PEM, in place of the system's authorities
}

// Secret says where one signing secret is, and until when it signs.
type Secret struct {
	File  string    `json:"file"`
	Env   string    `json:"env"`
	Until time.Time `json:"until"` // zero for the current one
}

// AllSecrets gives the secrets in whichever way they are declared.
func (e *Endpoint) AllSecrets() []Secret {
	if e.Secrets != nil {
		return e.Secrets
	}
	return []Secret{{File: e.SecretFile, Env: e.SecretEnv}}
}

func (e *Endpoint) check(at string, bad func(pointer, format string, args ...any)) {
	if !screening.IsID(e.ID) {
		bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
	}
	switch {
	case e.Secrets != nil && (e.SecretFile != "" || e.SecretEnv != ""):
		bad(at+"/secrets", "endpoint %s: give secrets, or one secret_file or secret_env, not both", e.ID)
	case e.Secrets == nil && (e.SecretFile == "") == (e.SecretEnv == ""):
		bad(at, "endpoint %s: give secret_file or secret_env, exactly one, or secrets while one is being replaced", e.ID)
	}
	lasting := e.Secrets == nil
	for i, s := range e.Secrets {
		if (s.File == "") == (s.Env == "") {
			bad(fmt.Sprintf("%s/secrets/%d", at, i), "endpoint %s: give file or env, exactly one", e.ID)
		}
		lasting = lasting || s.Until.IsZero()
	}
	if !lasting {
		bad(at+"/secrets", "endpoint %s: needs one secret without until, or there would be a day with nothing to sign with", e.ID)
	}
	if e.Timeout < 0 {
		bad(at+"/timeout", "endpoint %s: must be a time like 5s or 500ms", e.ID)
	}
	if e.BearerFile != "" && e.BearerEnv != "" {
		bad(at+"/bearer_env", "endpoint %s: give bearer_file or bearer_env, not both", e.ID)
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		bad(at, "endpoint %s: a client certificate needs both cert_file and key_file", e.ID)
	}
}

// Operator gives a principal that may manage endpoints and deliveries under the
// id that people.yaml has for it: what it does is recorded under that.
func (d *Desk) Operator(p Principal) (Principal, error) { return d.Setup().declared(p, ScopePolicy) }
