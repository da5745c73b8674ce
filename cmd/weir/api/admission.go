package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
	"weir/store/ledger"
)

// envelopeType is the media type of signed statements.
const envelopeType = "application/vnd.dsse.envelope.v1+json"

// revocationPeriod is how long a list of revocations may be used.
const revocationPeriod = time.Hour

// admission gives the signed statement that a screening's bytes may train.
func (s *Server) admission(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	g, ctx := gateOf(c), c.Request().Context()
	if len(g.SigningKeys) == 0 {
		return errNoSigningKey
	}
	a, err := g.Desk.Admission(ctx, principalOf(c), id)
	if err != nil {
		return err
	}
	statement, err := admissionStatement(ctx, g.Record, a)
	if err != nil {
		return err
	}
	envelope, err := ledger.SignStatement(ctx, *statement, g.SigningKeys...)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.Blob(http.StatusOK, envelopeType, append(envelope, '\n'))
}

// admissionStatement says what an admission says, with the proof that its decision
// is in the log. errNotInLog while it is not.
func admissionStatement(ctx context.Context, record Record, a *review.Admission) (*ledger.Statement[ledger.Admission], error) {
	sc, d := a.Screening, a.Decision
	const decidedSeq = 1 // the first event of every screening
	checkpoint, index, proof, err := record.ProveEvent(ctx, sc.Project, sc.ID, decidedSeq)
	if err != nil {
		return nil, notInLog(err)
	}
	leaves, err := record.LogEntries(ctx, sc.Project, index, 1)
	if err != nil {
		return nil, err
	}
	if len(leaves) != 1 || leaves[0].Index != index {
		return nil, errNotInLog
	}
	p := ledger.Admission{Screening: sc.ID, Project: sc.Project, RunRef: sc.RunRef, DecidedBy: string(sc.DecidedBy), AsOf: string(sc.AsOf), Engine: sc.Engine,
		Packs: []ledger.PackRef{}, Upheld: a.Upheld(), Statement: a.Statement, IssuedAt: a.At, ExpiresAt: sc.AdmittedUntil.UTC(),
		Log: ledger.AdmissionLog{Checkpoint: string(checkpoint), Index: index, Leaf: string(leaves[0].Bytes), Proof: ledger.ProofText(proof)}}
	for _, ref := range d.Packs {
		p.Packs = append(p.Packs, ledger.PackRef{ID: ref.ID, Version: ref.Version, SHA256: ref.SHA256.String()})
	}
	if d.Unratified {
		p.Marks = append(p.Marks, "unratified")
	}
	if d.AuditOnly {
		p.Marks = append(p.Marks, "audit_only")
	}
	for _, v := range a.Votes {
		p.Votes = append(p.Votes, ledger.HumanVote{Person: v.Person, Policy: v.Policy, At: v.CastAt.UTC(), Origin: v.Origin})
	}
	return &ledger.Statement[ledger.Admission]{Subject: subjects(a.Spec), PredicateType: ledger.AdmissionType, Predicate: p}, nil
}

// subjects are the digests of the spec's bytes and of every input that has one. What
// a spec writes in its place ("TBD") is none.
func subjects(spec *screening.ParsedSpec) []ledger.Subject {
	out := []ledger.Subject{{Name: ledger.SpecSubject, Digest: map[string]string{"sha256": spec.SHA256.String()}}}
	for _, in := range spec.Inputs {
		for _, d := range in.Digests {
			if !d.Valid() {
				continue
			}
			name := "input/" + in.ID
			if d.Of != "" {
				name += "/" + d.Of
			}
			out = append(out, ledger.Subject{Name: name, Digest: map[string]string{d.Alg: strings.ToLower(d.Value)}})
		}
	}
	return out
}

// revocations gives the list of admissions that ended early.
func (s *Server) revocations(c echo.Context) error {
	g, ctx := gateOf(c), c.Request().Context()
	if len(g.SigningKeys) == 0 {
		return errNoSigningKey
	}
	project := principalOf(c).Project
	revoked, at, err := g.Record.Revoked(ctx, project)
	if err != nil {
		return err
	}
	p := ledger.Revocations{Project: project, IssuedAt: at, NextUpdate: at.Add(revocationPeriod), Revoked: make([]ledger.Revocation, len(revoked))}
	for i, r := range revoked {
		p.Revoked[i] = ledger.Revocation{Screening: r.ScreeningID, SpecSHA256: r.SpecSHA256.String(), At: r.At.UTC(), Reason: r.Reason}
	}
	envelope, err := ledger.SignStatement(ctx, ledger.Statement[ledger.Revocations]{Subject: []ledger.Subject{},
		PredicateType: ledger.RevocationsType, Predicate: p}, g.SigningKeys...)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, envelopeType, append(envelope, '\n'))
}
