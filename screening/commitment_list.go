package screening

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// commitmentListSchema is the schema_version of a pack in the commitment-list form.
const commitmentListSchema = "1.0.0"

var domains = []string{"general", "medical", "legal", "financial", "robotics", "custom", "engineering", "research"}

// commitmentList is a pack as a list of commitments: what the deployment
// pledges, and which pledges refuse, escalate or hedge when they are violated.
// The three lists are opt-ins: a commitment in none of them is observed.
type commitmentList struct {
	SchemaVersion          string                 `json:"schema_version"`
	PackID                 string                 `json:"pack_id"`
	Version                string                 `json:"version"`
	Description            string                 `json:"description"`
	Domain                 string                 `json:"domain"`
	CommitmentIDs          []string               `json:"commitment_ids"`
	CommitmentDescriptions map[string]string      `json:"commitment_descriptions"`
	CommitmentReferences   map[string][]Reference `json:"commitment_references"` // weir's own, optional
	RefusalCommitments     []string               `json:"refusal_commitments"`
	EscalationCommitments  []string               `json:"escalation_commitments"`
	HedgeCommitments       []string               `json:"hedge_commitments"`
	PreferredHedgeSoft     string                 `json:"preferred_hedge_soft"`
	PreferredHedgeStrong   string                 `json:"preferred_hedge_strong"`
	Seal                   string                 `json:"mastery_report_sha256"`
}

// isCommitmentList tells the two forms apart by the key that names the form.
func isCommitmentList(d *document) bool {
	var form struct {
		SchemaVersion *string `json:"schema_version"`
	}
	return d.peek(&form) == nil && form.SchemaVersion != nil
}

// pack reads the list as the pack it means.
func (l *commitmentList) pack(reg *Registry) (*Pack, problems) {
	var ps problems
	if l.SchemaVersion != commitmentListSchema {
		ps.add("/schema_version", "must be %q", commitmentListSchema)
	}
	if !IsID(l.PackID) {
		ps.add("/pack_id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
	}
	if !slices.Contains(domains, l.Domain) {
		ps.add("/domain", "must be one of %s", oneOf(domains))
	}
	if len(l.CommitmentIDs) == 0 {
		ps.add("/commitment_ids", "must not be empty: a pack that checks nothing would look like one that passes")
	}
	declared := map[string]bool{}
	for i, id := range l.CommitmentIDs {
		at := "/commitment_ids/" + strconv.Itoa(i)
		switch {
		case !IsID(id):
			ps.add(at, "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		case declared[id]:
			ps.add(at, "commitment %s is listed twice", id)
		}
		declared[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(l.CommitmentReferences)) {
		at := "/commitment_references/" + id
		if !declared[id] {
			ps.add(at, "is not one of commitment_ids")
		}
		for i, r := range l.CommitmentReferences[id] {
			if !r.whole() {
				ps.add(at+"/"+strconv.Itoa(i), "needs scheme, id and a relation of %s", oneOf(relations))
			}
		}
	}
	checkSeal(&ps, l.Seal)
	responses := l.responses(&ps, declared)
	p := &Pack{ID: l.PackID, Version: l.Version, Layer: Ethics, Title: spaced(l.PackID), Description: l.Description,
		PreferredHedgeSoft: l.PreferredHedgeSoft, PreferredHedgeStrong: l.PreferredHedgeStrong, Seal: l.Seal}
	for _, id := range slices.Sorted(maps.Keys(declared)) {
		t := Term{ID: id, Title: spaced(id), Description: l.CommitmentDescriptions[id], Severity: "medium", References: l.CommitmentReferences[id],
			Response: cmp.Or(responses[id], Observe), Structural: structuralCommitments[id],
			Remedy: "Supply the evidence that shows the commitment was kept, or keep it; docs/packs.md says which key shows what."}
		if reg.has(id) { // a deployment that can check a structural commitment does
			t.Predicate, t.Structural = id, ""
		}
		p.Terms = append(p.Terms, t)
	}
	return p, ps
}

// responses reads the three opt-in lists, which must name declared commitments
// and exclude each other: a typing error here would change what a deployment does.
func (l *commitmentList) responses(ps *problems, declared map[string]bool) map[string]Response {
	responses, where := map[string]Response{}, map[string]string{}
	for _, list := range []struct {
		key      string
		ids      []string
		response Response
	}{
		{"refusal_commitments", l.RefusalCommitments, Block},
		{"escalation_commitments", l.EscalationCommitments, Escalate},
		{"hedge_commitments", l.HedgeCommitments, Hedge},
	} {
		for i, id := range list.ids {
			at := fmt.Sprintf("/%s/%d", list.key, i)
			switch {
			case !declared[id]:
				ps.add(at, "is not one of commitment_ids")
			case where[id] == list.key:
				ps.add(at, "commitment %s is listed twice", id)
			case where[id] != "":
				ps.add(at, "commitment %s is also in %s; keep one", id, where[id])
			}
			where[id], responses[id] = list.key, list.response
		}
	}
	return responses
}

func spaced(id string) string { return strings.ReplaceAll(id, "_", " ") }
