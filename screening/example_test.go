package screening_test

import (
	"fmt"
	"strings"

	"weir/screening"
)

// The smallest floor that a vocabulary takes.
const floorYAML = `
schema: weir/pack/v1
id: safety_floor
version: "1"
layer: safety
terms:
  - id: social_scoring
    title: Social scoring
    description: Trains a model to score people by their behaviour.
    severity: critical
    response: block
    remedy: Do not train for this purpose.
    violated_if: {fact: objective.purposes, has: social_scoring}
`

// Register adds a predicate of your own; a pack names it, and Classify asks it.
func Example() {
	reg := screening.NewRegistry()
	err := reg.Register("few_languages", func(s *screening.Spec) screening.Finding {
		for i, in := range s.Inputs {
			if in.Shape != nil && len(in.Shape.Languages) > 2 {
				return screening.Finding{State: screening.Violated, Reason: "an input has more than two languages",
					Evidence: []screening.Evidence{{Name: "shape.languages", Value: strings.Join(in.Shape.Languages, ", "),
						Pointer: fmt.Sprintf("/inputs/%d/shape/languages", i)}}}
			}
		}
		return screening.Finding{State: screening.Upheld, Reason: "every input has at most two languages"}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	floor, err := screening.LoadPack("safety_floor.yaml", []byte(floorYAML), reg)
	if err != nil {
		fmt.Println(err)
		return
	}
	pledge, err := screening.LoadPack("pledge.yaml", []byte(`
schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
terms:
  - id: reviewable_languages
    title: Languages that our reviewers read
    description: Data in many languages cannot be reviewed by the team.
    severity: low
    response: escalate
    remedy: Split the data, or name a reviewer for each language.
    predicate: few_languages
`), reg)
	if err != nil {
		fmt.Println(err)
		return
	}
	vocabulary, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, floor, pledge)
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := screening.ParseSpec([]byte(`
schema: weir/spec/v1
run_ref: nlp/support-bot@2026-11
owner: ana
objective: {kind: sft, purposes: [customer_support]}
inputs: [{id: tickets, kind: dataset, shape: {languages: [en, de, fr]}}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, err := screening.Classify(spec, vocabulary, "2026-11-30")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(decision.Outcome)
	for _, cause := range decision.Causes {
		finding, _ := decision.Finding(cause.Term)
		fmt.Println(cause.Term, "→", cause.Effect, "because", finding.Reason, finding.Evidence)
	}
	// Output:
	// escalate
	// ethics:reviewable_languages → escalate because an input has more than two languages [{shape.languages en, de, fr /inputs/0/shape/languages <nil>}]
}

// A spec that is refused names every problem with its place.
func ExampleParseSpec() {
	_, err := screening.ParseSpec([]byte(`schema: weir/spec/v1
run_ref: nlp/support-bot@2026-11
owner: ana
objective: {kind: finetune}
inputs:
  - {id: tickets, kind: dataset}
  - {id: tickets, kind: code}
`))
	fmt.Println(err)
	// Output:
	// training spec: line 4: /objective/kind: must be one of pretrain, continued_pretrain, sft, dpo, kto, orpo, grpo, ppo, reward_model, distill, embedding, classifier, other; line 7: /inputs/1/id: is also the id of /inputs/0; ids must differ
}

func ExampleInjectHedge() {
	fmt.Println(screening.InjectHedge("Perhaps", "This model may err."))
	fmt.Println(screening.InjectHedge("Perhaps", "PERHAPS this model errs."))
	// Output:
	// Perhaps This model may err.
	// PERHAPS this model errs.
}
