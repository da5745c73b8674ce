package review

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

const maxFacts = 50

// checkFloor reports why nobody may admit a spec with what a voter states: a
// safety term of the packs in force is violated, or is not shown to be upheld.
// The packs may have changed since the spec was decided; those of now count.
// Errors: *screening.InvalidError for facts that cannot be added to the spec,
// *VoteError for ErrFloor or ErrConflict.
func (d *Desk) checkFloor(ctx context.Context, s *Screening, facts []Fact) error {
	raw, err := d.store.SpecBytes(ctx, s.Project, s.SpecSHA256)
	if err != nil {
		return err
	}
	day, err := d.store.Today(ctx)
	if err != nil {
		return err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return fmt.Errorf("%w: stored spec of screening %s: %w", ErrUnavailable, s.ID, err)
	}
	return floorHolds(spec, d.Setup().Vocabulary, day, facts)
}

// floorHolds is the pure part of checkFloor.
func floorHolds(spec *screening.ParsedSpec, v *screening.Vocabulary, day screening.Day, facts []Fact) error {
	found, err := screening.Classify(spec, v, day)
	if err != nil {
		return &VoteError{ErrConflict, "the packs in force cannot decide this spec any more; submit it again"}
	}
	violated, open := floor(found)
	if len(violated) > 0 {
		return &VoteError{ErrFloor, fmt.Sprintf("%s (%s)", ErrFloor, strings.Join(violated, ", "))}
	}
	if len(open) == 0 {
		if len(facts) > 0 {
			return invalidFact(0, "every safety term is checked; there is nothing to state")
		}
		return nil
	}
	stated, err := withFacts(spec, facts)
	if err != nil {
		return err
	}
	if found, err = screening.Classify(stated, v, day); err != nil {
		return invalidFact(0, "cannot be decided together with the spec")
	}
	if violated, open = floor(found); len(violated) > 0 {
		return &VoteError{ErrFloor, "what you state violates " + strings.Join(violated, ", ") + "; block it"}
	}
	if len(open) > 0 {
		return &VoteError{ErrConflict, "the safety floor is not checked (" + strings.Join(open, ", ") +
			"). An admit has to state, in facts, what upholds each of these terms; or the submitter states it in a new spec"}
	}
	return nil
}

// floor lists the safety terms that are violated, and those that are open.
func floor(d *screening.Decision) (violated, open []string) {
	for _, v := range d.Safety {
		for _, f := range v.Findings {
			switch id := string(screening.Safety) + ":" + f.Term; f.State {
			case screening.Upheld:
			case screening.Violated:
				violated = append(violated, id)
			default:
				open = append(open, id)
			}
		}
	}
	return violated, open
}

func invalidFact(i int, format string, args ...any) error {
	return &screening.InvalidError{What: "vote", Problems: []screening.Problem{
		{Pointer: fmt.Sprintf("/facts/%d", i), Detail: fmt.Sprintf(format, args...)}}}
}

// withFacts gives the spec as it would read with what a voter states. A voter
// fills in what the spec leaves out and adds disclosures; what the submitter
// stated stays as it is, and of two statements the worse holds.
func withFacts(spec *screening.ParsedSpec, facts []Fact) (*screening.ParsedSpec, error) {
	if len(facts) > maxFacts {
		return nil, invalidFact(maxFacts, "is more than %d", maxFacts)
	}
	var doc any
	if err := json.Unmarshal(spec.JSON(), &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for i, f := range facts {
		var value any
		if err := json.Unmarshal(f.Value, &value); err != nil || value == nil {
			return nil, invalidFact(i, "must have a value")
		}
		if why := state(doc, f.Pointer, value); why != "" {
			return nil, invalidFact(i, "%s", why)
		}
	}
	text, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return nil, invalidFact(0, "cannot be written")
	}
	stated, err := screening.ParseSpec(text)
	if err != nil {
		// Whose pointers are those of the spec; the facts are what is new in it.
		return nil, &screening.InvalidError{What: "vote", Problems: []screening.Problem{
			{Pointer: "/facts", Detail: "do not fit into a spec: " + oneLine(err)}}}
	}
	return stated, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// state puts a value at a place of a document that says nothing there; why it
// cannot be done is the answer, "" when it is done.
func state(doc any, pointer string, value any) (why string) {
	path := strings.Split(pointer, "/")
	if len(path) < 2 || path[0] != "" || !slices.Contains([]string{"disclosures", "objective", "inputs"}, path[1]) {
		return "pointer must name a place in /disclosures, /objective or /inputs"
	}
	at, _ := doc.(map[string]any)
	for i := 1; ; i++ {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
		if at == nil {
			return "pointer leads through something that is no object"
		}
		if i == len(path)-1 {
			return put(at, key, value)
		}
		switch child := at[key].(type) {
		case nil:
			fresh := map[string]any{}
			at[key], at = fresh, fresh
		case map[string]any:
			at = child
		case []any:
			i++
			n, err := strconv.Atoi(path[i])
			if err != nil || n < 0 || n >= len(child) || i == len(path)-1 {
				return "pointer must name a place in one of the spec's inputs, by its number"
			}
			at, _ = child[n].(map[string]any)
		default:
			return "pointer leads through something that is no object"
		}
	}
}

func put(at map[string]any, key string, value any) (why string) {
	if key == "disclosures" {
		list, _ := at[key].([]any)
		more, ok := value.([]any)
		if !ok {
			more = []any{value}
		}
		at[key] = append(list, more...)
		return ""
	}
	switch old := at[key].(type) {
	case nil:
	case string:
		if old != "" {
			return "the spec states this; only the submitter can correct it, in a new spec"
		}
	case []any:
		if len(old) > 0 {
			return "the spec states this; only the submitter can correct it, in a new spec"
		}
	default:
		return "the spec states this; only the submitter can correct it, in a new spec"
	}
	at[key] = value
	return ""
}
