package review

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"weir/screening"
)

// Policies say who reviews which escalation, and who is told.
type Policies struct {
	list      []Policy
	fallback  *Policy
	endpoints []Endpoint
}

// Policy is one review policy. A causing finding goes to the first policy of
// the file that matches it, else to the default.
type Policy struct {
	ID        string   `json:"id"`
	Match     Match    `json:"match"`
	Group     string   `json:"group"`
	Quorum    int      `json:"quorum"`
	Due       Duration `json:"due"`
	Endpoints []string `json:"endpoints"`
}

// Match selects findings; every key that is given must match. Empty selects nothing,
// except for the default policy.
type Match struct {
	Terms      []string `json:"terms"`      // ids or patterns like license_*
	Severities []string `json:"severities"` // low, medium, high, critical
	Teams      []string `json:"teams"`
}

// Endpoint is a declared webhook receiver. Secrets come from files or the
// environment, never from the policies file.
type Endpoint struct {
	ID           string   `json:"id"`
	URL          string   `json:"url"`
	SecretFile   string   `json:"secret_file"`
	SecretEnv    string   `json:"secret_env"`
	AllowHTTP    bool     `json:"allow_http"`
	AllowPrivate bool     `json:"allow_private"`
	Timeout      Duration `json:"timeout"`
}

// Duration is a time span written 90s, 30m or 48h.
type Duration time.Duration

// UnmarshalText reads the written form. What is none becomes -1, which no field
// allows: whoever checks the field can say what is wrong and where.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		v = -1
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

const maxDue = 30 * 24 * time.Hour

// severities that a term can have, and so a policy match.
var severities = []string{"low", "medium", "high", "critical"}

type policiesFile struct {
	Policies  []Policy   `json:"policies"`
	Default   string     `json:"default"`
	Endpoints []Endpoint `json:"endpoints"`
}

// LoadPolicies reads policies.yaml. Every group must be able to reach its
// quorum, every endpoint be declared, and a default policy be named, so that an
// escalation always has a panel. The error is a [*screening.InvalidError].
func LoadPolicies(name string, data []byte, people *People) (*Policies, error) {
	var file policiesFile
	if err := screening.Decode("policies", name, data, &file); err != nil {
		return nil, err
	}
	p := &Policies{list: file.Policies, endpoints: file.Endpoints}
	var found []screening.Problem
	bad := func(pointer, format string, args ...any) {
		found = append(found, screening.Problem{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	declared := map[string]bool{}
	for i, e := range file.Endpoints {
		at := fmt.Sprintf("/endpoints/%d", i)
		switch {
		case !screening.IsID(e.ID):
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		case declared[e.ID]:
			bad(at+"/id", "endpoint %s is declared twice", e.ID)
		}
		if (e.SecretFile == "") == (e.SecretEnv == "") {
			bad(at, "endpoint %s: give secret_file or secret_env, exactly one", e.ID)
		}
		if e.Timeout < 0 {
			bad(at+"/timeout", "endpoint %s: must be a time like 5s or 500ms", e.ID)
		}
		declared[e.ID] = true
	}
	ids := map[string]bool{}
	for i := range p.list {
		pol, at := &p.list[i], fmt.Sprintf("/policies/%d", i)
		pol.check(at, people, declared, bad)
		if ids[pol.ID] {
			bad(at+"/id", "policy %s is declared twice", pol.ID)
		}
		ids[pol.ID] = true
		if pol.ID == file.Default {
			p.fallback = pol
		} else if pol.Match.empty() {
			bad(at+"/match", "policy %s matches nothing; say terms, severities or teams, or make it the default", pol.ID)
		}
	}
	if p.fallback == nil {
		bad("/default", "must name one of the policies: an escalation always needs a panel")
	}
	if found != nil {
		return nil, &screening.InvalidError{What: "policies", Name: name, Problems: found}
	}
	return p, nil
}

func (p *Policy) check(at string, people *People, endpoints map[string]bool, bad func(string, string, ...any)) {
	if !screening.IsID(p.ID) {
		bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
	}
	members := people.Members(p.Group)
	if members == nil {
		bad(at+"/group", "policy %s: group is not declared in people.yaml", p.ID)
	}
	if p.Quorum < 1 {
		bad(at+"/quorum", "policy %s: must be at least 1", p.ID)
	} else if members != nil && len(members) < p.Quorum {
		bad(at+"/quorum", "policy %s: the group has %d members and can never reach a quorum of %d", p.ID, len(members), p.Quorum)
	}
	if due := time.Duration(p.Due); due < time.Minute || due > maxDue {
		bad(at+"/due", "policy %s: must be between 1m and 720h, written like 90m or 48h", p.ID)
	}
	for i, e := range p.Endpoints {
		if !endpoints[e] {
			bad(fmt.Sprintf("%s/endpoints/%d", at, i), "policy %s: endpoint %s is not declared under endpoints", p.ID, e)
		}
	}
	for i, pattern := range p.Match.Terms {
		if _, err := path.Match(pattern, ""); err != nil {
			bad(fmt.Sprintf("%s/match/terms/%d", at, i), "policy %s: is not a term id or pattern", p.ID)
		}
	}
	for i, s := range p.Match.Severities {
		if !slices.Contains(severities, s) {
			bad(fmt.Sprintf("%s/match/severities/%d", at, i), "policy %s: must be one of %s", p.ID, strings.Join(severities, ", "))
		}
	}
}

func (m *Match) empty() bool {
	return len(m.Terms) == 0 && len(m.Severities) == 0 && len(m.Teams) == 0
}

// matches reports whether a causing finding of a team's spec belongs here.
func (m *Match) matches(f screening.EffectiveFinding, team string) bool {
	if m.empty() {
		return false
	}
	id := f.ID()
	if len(m.Terms) > 0 && !slices.ContainsFunc(m.Terms, func(pattern string) bool {
		ok, err := path.Match(pattern, id)
		return err == nil && ok
	}) {
		return false
	}
	if len(m.Severities) > 0 && !slices.Contains(m.Severities, f.Severity) {
		return false
	}
	return len(m.Teams) == 0 || slices.Contains(m.Teams, team)
}

// Endpoints gives the declared endpoints.
func (p *Policies) Endpoints() []Endpoint { return p.endpoints }

// route makes one panel per policy that a causing finding goes to, in the order
// of the file; an escalation without one goes to the default.
func (p *Policies) route(d *screening.Decision, team string) []Panel {
	terms := map[string][]string{}
	for _, c := range d.Causes {
		if c.Effect != screening.Escalate {
			continue
		}
		pol := p.fallback
		if i := slices.IndexFunc(p.list, func(pol Policy) bool { return pol.Match.matches(c, team) }); i >= 0 {
			pol = &p.list[i]
		}
		terms[pol.ID] = append(terms[pol.ID], c.Term)
	}
	if len(terms) == 0 {
		terms[p.fallback.ID] = []string{}
	}
	var panels []Panel
	for i := range p.list {
		if ts, ok := terms[p.list[i].ID]; ok {
			panels = append(panels, Panel{Policy: p.list[i].ID, Group: p.list[i].Group, Quorum: p.list[i].Quorum,
				Due: time.Duration(p.list[i].Due), Terms: ts, Endpoints: p.list[i].Endpoints})
		}
	}
	return panels
}
