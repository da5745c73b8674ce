package review

import (
	"fmt"
	"maps"
	"slices"

	"weir/screening"
)

// People are the declared persons, services and groups.
type People struct {
	persons map[string]string // id or alias → id
	service map[string]bool
	groups  map[string][]string // group → person ids
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
	ID string `json:"id"`
}

// LoadPeople reads people.yaml. The error is a [*screening.InvalidError].
func LoadPeople(name string, data []byte) (*People, error) {
	var file peopleFile
	if err := screening.Decode("people", name, data, &file); err != nil {
		return nil, err
	}
	p := &People{persons: map[string]string{}, service: map[string]bool{}, groups: map[string][]string{}}
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
	for i, person := range file.People {
		at := fmt.Sprintf("/people/%d", i)
		if !screening.IsID(person.ID) {
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
			continue
		}
		claim(at+"/id", person.ID)
		p.persons[person.ID] = person.ID
		other := func(pointer string, names []string) {
			for j, name := range names {
				pointer := fmt.Sprintf("%s/%s/%d", at, pointer, j)
				if screening.IsBlank(name) {
					bad(pointer, "must not be blank")
					continue
				}
				claim(pointer, name)
				p.persons[name] = person.ID
			}
		}
		other("subjects", person.Subjects)
		other("aliases", person.Aliases)
	}
	for i, s := range file.Services {
		at := fmt.Sprintf("/services/%d/id", i)
		if !screening.IsID(s.ID) {
			bad(at, "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
			continue
		}
		claim(at, s.ID)
		p.service[s.ID] = true
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

// now is who a kept name is today: people.yaml may have learnt an alias since.
func (p *People) now(name string) string {
	id, _ := p.Subject(name)
	return id
}

// Members gives the person ids of a group, nil for an unknown group: nobody, not everybody.
func (p *People) Members(group string) []string { return p.groups[group] }
