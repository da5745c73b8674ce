package review

import (
	"fmt"
	"maps"
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
	projects  map[string]Project
	retention Retention
}

// Policy is one review policy. A causing finding goes to the first policy of
// the file that matches it, else to the default.
type Policy struct {
	ID        string   `json:"id"`
	Match     Match    `json:"match"`
	Group     string   `json:"group"`
	Quorum    int      `json:"quorum"`
	Due       Duration `json:"due"`
	Then      string   `json:"then"` // the policy that takes over at the due time; "" = the review expires
	OnExpiry  string   `json:"on_expiry"`
	Endpoints []string `json:"endpoints"`
}

// Match selects findings; every key that is given must match. Empty selects nothing,
// except for the default policy.
type Match struct {
	Terms      []string `json:"terms"`      // ids or patterns like license_*
	Severities []string `json:"severities"` // low, medium, high, critical
	Tags       []string `json:"tags"`       // disclosure tags that the term asks about
	Teams      []string `json:"teams"`
}

// Project is how a project uses the gate.
type Project struct {
	ID    string        `json:"id"`
	Mode  string        `json:"mode"`  // enforce or report
	Until screening.Day `json:"until"` // of mode report: the first day on which it enforces again
}

// MaxReportDays is how far away the end of report mode may be.
const MaxReportDays = 90

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
	Projects  []Project  `json:"projects"`
	Retention struct {
		Admit    Days `json:"admit"`
		Escalate Days `json:"escalate"`
		Block    Days `json:"block"`
	} `json:"retention"`
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
		e.check(at, bad)
		if declared[e.ID] {
			bad(at+"/id", "endpoint %s is declared twice", e.ID)
		}
		declared[e.ID] = true
	}
	ids, tiers := map[string]bool{}, map[string]bool{}
	for i := range p.list {
		tiers[p.list[i].Then] = true
	}
	for i := range p.list {
		pol, at := &p.list[i], fmt.Sprintf("/policies/%d", i)
		pol.check(at, people, declared, bad)
		if ids[pol.ID] {
			bad(at+"/id", "policy %s is declared twice", pol.ID)
		}
		ids[pol.ID] = true
		if pol.ID == file.Default {
			p.fallback = pol
		} else if pol.Match.empty() && !tiers[pol.ID] {
			bad(at+"/match", "policy %s matches nothing; say terms, severities, tags or teams, make it the default, or name it in the then of another", pol.ID)
		}
	}
	p.checkTiers(people, bad)
	p.checkProjects(file.Projects, bad)
	p.retention = Retention{screening.OutcomeAdmit: file.Retention.Admit, screening.OutcomeEscalate: file.Retention.Escalate,
		screening.OutcomeBlock: file.Retention.Block}
	p.retention.check(bad)
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
	switch p.OnExpiry {
	case "":
	case "admit":
		bad(at+"/on_expiry", "policy %s: expiry never admits; leave it out, or name the next policy in then", p.ID)
	default:
		bad(at+"/on_expiry", "policy %s: is not a known key; name the next policy in then", p.ID)
	}
	for i, tag := range p.Match.Tags {
		if !screening.IsTag(tag) {
			bad(fmt.Sprintf("%s/match/tags/%d", at, i), "policy %s: is not a disclosure tag; docs/spec.md has the list", p.ID)
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

// checkTiers: every then names a policy, and the way ends.
func (p *Policies) checkTiers(people *People, bad func(string, string, ...any)) {
	for i := range p.list {
		pol, at := &p.list[i], fmt.Sprintf("/policies/%d/then", i)
		if pol.Then == "" {
			continue
		}
		if p.policy(pol.Then) == nil {
			hint := ""
			if people.Members(pol.Then) != nil {
				hint = "; it is a group, so declare a policy for that group and name the policy"
			}
			bad(at, "policy %s: must name one of the policies%s", pol.ID, hint)
			continue
		}
		seen := map[string]bool{pol.ID: true}
		for next := p.policy(pol.Then); next != nil; next = p.policy(next.Then) {
			if seen[next.ID] {
				bad(at, "policy %s: comes back to %s, so a review could go round for ever", pol.ID, next.ID)
				break
			}
			seen[next.ID] = true
		}
	}
}

func (p *Policies) checkProjects(projects []Project, bad func(string, string, ...any)) {
	p.projects = map[string]Project{}
	for i, project := range projects {
		at := fmt.Sprintf("/projects/%d", i)
		if !screening.IsID(project.ID) {
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		}
		if _, twice := p.projects[project.ID]; twice {
			bad(at+"/id", "project %s is declared twice", project.ID)
		}
		switch project.Mode {
		case "enforce":
			if project.Until != "" {
				bad(at+"/until", "project %s: only mode report ends", project.ID)
			}
		case "report":
			if project.Until == "" {
				bad(at+"/until", "project %s: mode report needs a day on which it ends, at most %d days away", project.ID, MaxReportDays)
			}
		default:
			bad(at+"/mode", "project %s: must be enforce or report", project.ID)
		}
		p.projects[project.ID] = project
	}
}

// ReportUntil gives the day on which a project's report mode ends, "" when it
// enforces on the day that is asked about. An end that is too far away is none:
// then it enforces.
func (p *Policies) ReportUntil(project string, today screening.Day) screening.Day {
	until := p.projects[project].Until
	if p.projects[project].Mode != "report" || until <= today || until > lastReportDay(today) {
		return ""
	}
	return until
}

// CheckDays reports a report mode that is to last too long, as seen on a day.
// The error is a [*screening.InvalidError].
func (p *Policies) CheckDays(name string, today screening.Day) error {
	var found []screening.Problem
	for _, id := range slices.Sorted(maps.Keys(p.projects)) {
		if p.projects[id].Until > lastReportDay(today) {
			found = append(found, screening.Problem{Pointer: "/projects", Detail: fmt.Sprintf(
				"project %s: until must be at most %d days away, that is %s", id, MaxReportDays, lastReportDay(today))})
		}
	}
	if found != nil {
		return &screening.InvalidError{What: "policies", Name: name, Problems: found}
	}
	return nil
}

func lastReportDay(today screening.Day) screening.Day {
	t, err := time.Parse(time.DateOnly, string(today))
	if err != nil {
		return "" // no day at all: nothing may be reported only
	}
	return screening.Day(t.AddDate(0, 0, MaxReportDays).Format(time.DateOnly))
}

func (m *Match) empty() bool {
	return len(m.Terms) == 0 && len(m.Severities) == 0 && len(m.Tags) == 0 && len(m.Teams) == 0
}

// matches reports whether a finding of a team's spec belongs here; tags are those
// that its term asks about.
func (m *Match) matches(f *FindingRow, tags []string, team string) bool {
	if m.empty() {
		return false
	}
	_, id, _ := strings.Cut(f.Term, ":")
	if len(m.Terms) > 0 && !slices.ContainsFunc(m.Terms, func(pattern string) bool {
		ok, err := path.Match(pattern, id)
		return err == nil && ok
	}) {
		return false
	}
	if len(m.Severities) > 0 && !slices.Contains(m.Severities, f.Severity) {
		return false
	}
	if len(m.Tags) > 0 && !slices.ContainsFunc(m.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) {
		return false
	}
	return len(m.Teams) == 0 || slices.Contains(m.Teams, team)
}

// Retention says how long payloads are kept.
func (p *Policies) Retention() Retention { return p.retention }

// Endpoints gives the declared endpoints.
func (p *Policies) Endpoints() []Endpoint { return p.endpoints }

// policy finds one by its id; nil when there is none.
func (p *Policies) policy(id string) *Policy {
	if i := slices.IndexFunc(p.list, func(pol Policy) bool { return pol.ID == id }); i >= 0 {
		return &p.list[i]
	}
	return nil
}

// of gives the policy that a finding goes to: the first that matches, else the default.
func (p *Policies) of(f *FindingRow, v *screening.Vocabulary, team string) *Policy {
	var tags []string
	if v != nil {
		tags = v.Tags(f.Term)
	}
	if i := slices.IndexFunc(p.list, func(pol Policy) bool { return pol.Match.matches(f, tags, team) }); i >= 0 {
		return &p.list[i]
	}
	return p.fallback
}

// route makes one panel per policy that a weighing finding goes to, in the order
// of the file, and after them the panels of later tiers; a review without such a
// finding goes to the default. Every panel knows who takes over from it.
func (s Setup) route(findings []FindingRow, team string) []Panel {
	p, terms := s.Policies, map[string][]string{}
	for i := range findings {
		if f := &findings[i]; f.weighs() {
			id := p.of(f, s.Vocabulary, team).ID
			terms[id] = append(terms[id], f.Term)
		}
	}
	if len(terms) == 0 {
		terms[p.fallback.ID] = []string{}
	}
	var panels []Panel
	add := func(pol *Policy, terms []string) {
		panels = append(panels, Panel{Number: len(panels) + 1, Policy: pol.ID, Group: pol.Group, Quorum: pol.Quorum,
			Due: time.Duration(pol.Due), Terms: terms, Endpoints: pol.Endpoints, members: s.People.names(s.People.Members(pol.Group)...)})
	}
	for i := range p.list {
		if ts, ok := terms[p.list[i].ID]; ok {
			add(&p.list[i], ts)
		}
	}
	for i := 0; i < len(panels); i++ { // it grows on the way
		if next := p.policy(p.policy(panels[i].Policy).Then); next != nil {
			panels[i].Next = len(panels) + 1
			add(next, panels[i].Terms)
		}
	}
	for i := range panels { // the first ones begin at once
		if !slices.ContainsFunc(panels, func(o Panel) bool { return o.Next == panels[i].Number }) {
			panels[i].DueAt = new(time.Time)
		}
	}
	return panels
}
