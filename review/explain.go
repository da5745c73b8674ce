package review

import (
	"bytes"
	"context"

	"weir/screening"
)

// Explain works out what would change the findings of a screening that the
// caller may read. It is nil when the spec does not give the kept decision any
// more: other packs are in force since, or another engine decides.
func (d *Desk) Explain(ctx context.Context, p Principal, s *Screening) (*screening.Explanation, error) {
	raw, err := d.SpecBytes(ctx, p, s.ID)
	if err != nil {
		return nil, err
	}
	return d.explain(raw, s.AsOf, s.Decision), nil
}

// ExplainPreview is Explain for what Preview gave.
func (d *Desk) ExplainPreview(raw []byte, decision *screening.Decision) (*screening.Explanation, error) {
	kept, err := screening.MarshalDecision(decision)
	if err != nil {
		return nil, err
	}
	return d.explain(raw, decision.AsOf, kept), nil
}

func (d *Desk) explain(raw []byte, asOf screening.Day, kept []byte) *screening.Explanation {
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil
	}
	decision, x, err := screening.Explain(spec, d.Setup().Vocabulary, asOf)
	if err != nil {
		return nil
	}
	if again, err := screening.MarshalDecision(decision); err != nil || !bytes.Equal(again, kept) {
		return nil
	}
	return x
}
