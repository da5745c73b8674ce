package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/screening"
)

// People are the declared persons, services and groups.
type People struct {
	persons map[string]string // id, alias or subject → id
	service map[string]bool
	groups  map[string][]string // group → person ids
	tokens  map[string]string   // subject → id of the person or service
}

type peopleFile struct {
	People   []personEntry       `json:"people"`
	Services []serviceEntry      `json:"services"`
	Groups   map[string][]string `json:"groups"`
}

type personEntry struct {
	ID       string   `json:"id"`
	Subjects []string `json:"subjects"` // token subjects, "issuer|sub"
	Aliases  []string `json:"aliases"`
}

type serviceEntry struct {
	ID       string   `json:"id"`
	Subjects []string `json:"subjects"`
}

// TokenSubject is how people.yaml writes whom a token speaks for: who issued it
// and the subject that it has there. Names and mail addresses can be given to
// somebody else, and mean nothing.
func TokenSubject(issuer, sub string) string { return issuer + "|" + sub }

// ClusterUsers is the issuer of the user names that the Kubernetes API server
// tells its hook. No token can be from it.
const ClusterUsers = "kubernetes"

// CutSubject undoes TokenSubject. The issuer has no |, the rest may.
func CutSubject(subject string) (issuer, sub string, ok bool) {
	issuer, sub, ok = strings.Cut(subject, "|")
	return issuer, sub, ok && (issuer == ClusterUsers || strings.Contains(issuer, "://")) && !screening.IsBlank(sub)
}

// LoadPeople reads people.yaml. The error is a [*screening.InvalidError].
func LoadPeople(name string, data []byte) (*People, error) {
	var file peopleFile
	if err := screening.Decode("people", name, data, &file); err != nil {
		return nil, err
	}
	p := &People{persons: map[string]string{}, service: map[string]bool{}, groups: map[string][]string{}, tokens: map[string]string{}}
	var found []screening.Problem
	bad := func(pointer, format string, args ...any) {
		found = append(found, screening.Problem{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	taken := map[string]bool{}
	claim := func(pointer, id string) {
		if taken[id] {
			bad(pointer, "%s is declared twice; ids, aliases and subjects must differ", id)
		}
		taken[id] = true
	}
	subjects := func(at, id string, list []string) {
		for j, subject := range list {
			pointer := fmt.Sprintf("%s/subjects/%d", at, j)
			if _, _, ok := CutSubject(subject); !ok {
				bad(pointer, "must be the issuer, a | and the subject that its tokens have, like https://idp.example|00u1")
				continue
			}
			claim(pointer, subject)
			p.tokens[subject] = id
		}
	}
	for i, person := range file.People {
		at := fmt.Sprintf("/people/%d", i)
		if !screening.IsID(person.ID) {
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
			continue
		}
		claim(at+"/id", person.ID)
		p.persons[person.ID] = person.ID
		subjects(at, person.ID, person.Subjects)
		for _, subject := range person.Subjects {
			p.persons[subject] = person.ID
		}
		for j, alias := range person.Aliases {
			pointer := fmt.Sprintf("%s/aliases/%d", at, j)
			if screening.IsBlank(alias) {
				bad(pointer, "must not be blank")
				continue
			}
			claim(pointer, alias)
			p.persons[alias] = person.ID
		}
	}
	for i, s := range file.Services {
		at := fmt.Sprintf("/services/%d", i)
		if !screening.IsID(s.ID) {
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
			continue
		}
		claim(at+"/id", s.ID)
		p.service[s.ID] = true
		subjects(at, s.ID, s.Subjects)
	}
	for _, group := range slices.Sorted(maps.Keys(file.Groups)) {
		at := "/groups/" + group
		if !screening.IsID(group) {
			bad(at, "a group's name must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		}
		for i, member := range file.Groups[group] {
			id, ok := p.persons[member]
			if !ok || p.service[member] {
				bad(fmt.Sprintf("%s/%d", at, i), "is not a declared person")
			} else if slices.Contains(p.groups[group], id) {
				bad(fmt.Sprintf("%s/%d", at, i), "is in the group twice")
			} else {
				p.groups[group] = append(p.groups[group], id)
			}
		}
		if len(file.Groups[group]) == 0 {
			bad(at, "must not be empty: a group of nobody can decide nothing")
		}
	}
	if found != nil {
		return nil, &screening.InvalidError{What: "people", Name: name, Problems: found}
	}
	return p, nil
}

// Person resolves an id, alias or token subject to a person's id.
func (p *People) Person(name string) (id string, ok bool) {
	id, ok = p.persons[name]
	return id, ok
}

// IsService reports whether id is a declared service.
func (p *People) IsService(id string) bool { return p.service[id] }

// Subject resolves the subject of a key to the id of the person or service that
// it speaks for; ok is false for one that is declared as neither.
func (p *People) Subject(name string) (id string, ok bool) {
	if id, ok = p.persons[name]; ok {
		return id, true
	}
	return name, p.service[name]
}

// OfToken gives the person or service that a token of an issuer speaks for. Only
// declared subjects count: no id or alias is one.
func (p *People) OfToken(issuer, sub string) (id string, ok bool) {
	id, ok = p.tokens[TokenSubject(issuer, sub)]
	return id, ok
}

// TokenSubjects lists the declared subjects, in order.
func (p *People) TokenSubjects() []string { return slices.Sorted(maps.Keys(p.tokens)) }

// now is who a kept name is today: people.yaml may have learnt an alias since.
func (p *People) now(name string) string {
	id, _ := p.Subject(name)
	return id
}

// names gives every name under which people may be kept, whatever they are
// called in a row: their ids, aliases and subjects, and the names that were asked for.
func (p *People) names(ids ...string) (all []string) {
	for _, id := range ids {
		now := p.now(id)
		all = append(all, id, now)
		for name, person := range p.persons {
			if person == now {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Members gives the person ids of a group, nil for an unknown group: nobody, not everybody.
func (p *People) Members(group string) []string { return p.groups[group] }

// GroupsOf names the groups that a person belongs to, in order.
func (p *People) GroupsOf(person string) (groups []string) {
	for _, name := range slices.Sorted(maps.Keys(p.groups)) {
		if slices.Contains(p.groups[name], person) {
			groups = append(groups, name)
		}
	}
	return groups
}

// Groups names all groups, in order.
func (p *People) Groups() []string { return slices.Sorted(maps.Keys(p.groups)) }
