package screening

import (
	"fmt"
	"slices"
	"strconv"
)

const contextPointer = "/evidence/context/"

// defaultHedgeThreshold is the alignment below which a hedge is due, unless the
// context gives another.
const defaultHedgeThreshold = 0.65

// commitments are the general ethics commitments that evidence can show. Each
// reads the context that the spec supplies; context that is absent and could
// matter makes it not checkable, never violated. no_manipulation is structural and has no predicate.
var commitments = map[string]Predicate{
	"acknowledge_uncertainty":           acknowledgeUncertainty,
	"defer_high_stakes_to_human_review": deferHighStakes,
	"disclose_limitations":              discloseLimitations,
	"respect_user_autonomy":             respectAutonomy,
}

// structuralCommitments are properties of a whole system. A predicate that
// reported them upheld would be a lie; each says where it is enforced instead.
var structuralCommitments = map[string]string{
	"no_manipulation": "it is a property of the system as a whole, enforced by how its answers are designed and by review of its releases",
}

// acknowledgeUncertainty: an alignment below the threshold requires an emitted hedge.
func acknowledgeUncertainty(s *Spec) Finding {
	c := s.Evidence.Context
	if c.AlignmentScore == nil || c.HedgeEmitted == nil {
		return needsContext("alignment_score", c.AlignmentScore != nil, "hedge_emitted", c.HedgeEmitted != nil)
	}
	threshold := defaultHedgeThreshold
	if c.HedgeThresholdSoft != nil {
		threshold = *c.HedgeThresholdSoft
	}
	return judge(*c.AlignmentScore < threshold && !*c.HedgeEmitted,
		"alignment is below the threshold and no hedge was emitted",
		number("alignment_score", *c.AlignmentScore), number("hedge_threshold_soft", threshold), flag("hedge_emitted", *c.HedgeEmitted))
}

// highStakesPurposes make a topic high-stakes whatever the context claims.
var highStakesPurposes = []string{"healthcare", "legal", "finance", "hiring", "law_enforcement", "migration_control",
	"critical_infrastructure", "biometric_verification"}

// highStakes is what the context claims, or worse where a declared purpose says so.
func highStakes(s *Spec) (given, high bool, ev Evidence) {
	for i, p := range s.Objective.Purposes {
		if slices.Contains(highStakesPurposes, p) {
			return true, true, Evidence{Name: "high_stakes_topic", Value: "true", Pointer: "/objective/purposes/" + strconv.Itoa(i)}
		}
	}
	claimed := s.Evidence.Context.HighStakesTopic
	if claimed == nil {
		return false, false, Evidence{}
	}
	return true, *claimed, flag("high_stakes_topic", *claimed)
}

// deferHighStakes: a high-stakes topic requires a recommendation of human review.
func deferHighStakes(s *Spec) Finding {
	recommended := s.Evidence.Context.RecommendedHumanReview
	given, high, ev := highStakes(s)
	switch {
	case given && !high:
		return judge(false, "", ev)
	case !given || recommended == nil:
		return needsContext("high_stakes_topic", given, "recommended_human_review", recommended != nil)
	}
	return judge(!*recommended, "the topic is high-stakes and human review was not recommended", ev, flag("recommended_human_review", *recommended))
}

// discloseLimitations: what is not grounded in evidence requires a disclosure.
func discloseLimitations(s *Spec) Finding {
	c := s.Evidence.Context
	if c.GroundedInEvidence != nil && *c.GroundedInEvidence {
		return judge(false, "", flag("grounded_in_evidence", true))
	}
	if c.GroundedInEvidence == nil || c.DisclosureEmitted == nil {
		return needsContext("grounded_in_evidence", c.GroundedInEvidence != nil, "disclosure_emitted", c.DisclosureEmitted != nil)
	}
	return judge(!*c.DisclosureEmitted,
		"it is not grounded in evidence and no disclosure was emitted",
		flag("grounded_in_evidence", *c.GroundedInEvidence), flag("disclosure_emitted", *c.DisclosureEmitted))
}

// respectAutonomy: a single prescribed answer requires at least two options.
func respectAutonomy(s *Spec) Finding {
	c := s.Evidence.Context
	if isFalse(c.PrescribedSingleAnswer) {
		return judge(false, "", flag("prescribed_single_answer", false))
	}
	if c.PrescribedSingleAnswer == nil || c.PresentedOptionsCount == nil {
		return needsContext("prescribed_single_answer", c.PrescribedSingleAnswer != nil, "presented_options_count", c.PresentedOptionsCount != nil)
	}
	return judge(*c.PresentedOptionsCount < 2,
		"a single answer is prescribed and fewer than two options were presented",
		flag("prescribed_single_answer", *c.PrescribedSingleAnswer),
		Evidence{Name: "presented_options_count", Value: strconv.FormatInt(*c.PresentedOptionsCount, 10), Pointer: contextPointer + "presented_options_count"})
}

func isFalse(v *bool) bool { return v != nil && !*v }

func judge(violated bool, reason string, evidence ...Evidence) Finding {
	if violated {
		return Finding{State: Violated, Reason: reason, Evidence: evidence}
	}
	return Finding{State: Upheld, Reason: upheldReason, Evidence: evidence}
}

func needsContext(a string, hasA bool, b string, hasB bool) Finding {
	f := Finding{State: NotCheckable, Cause: CauseNoEvidence}
	var needed []Statement
	for _, k := range []struct {
		name  string
		given bool
	}{{a, hasA}, {b, hasB}} {
		if !k.given {
			needed = append(needed, Statement{Pointer: contextPointer + k.name, Say: k.name + ": …"})
		}
	}
	f.Reason = fmt.Sprintf("%s is not supplied", needed[0].Pointer[len(contextPointer):])
	if len(needed) > 1 {
		f.Reason = fmt.Sprintf("%s and %s are not supplied", a, b)
	}
	f.open = [][][]Statement{{needed}}
	return f
}

func flag(name string, v bool) Evidence {
	return Evidence{Name: name, Value: strconv.FormatBool(v), Pointer: contextPointer + name}
}

func number(name string, v float64) Evidence {
	return Evidence{Name: name, Value: strconv.FormatFloat(v, 'g', -1, 64), Pointer: contextPointer + name}
}
