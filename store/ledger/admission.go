package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"
)

// Predicate types of what a trainer checks.
const (
	AdmissionType   = "urn:weir:admission:v1"
	RevocationsType = "urn:weir:revocations:v1"
)

// SpecSubject is the name of the spec among the subjects of an admission.
const SpecSubject = "spec"

// Admission says that a spec's bytes may train until a time, and why.
type Admission struct {
	Screening string       `json:"screening"`
	Project   string       `json:"project"`
	RunRef    string       `json:"run_ref"`
	DecidedBy string       `json:"decided_by"` // packs, people or waiver
	AsOf      string       `json:"as_of"`
	Engine    string       `json:"engine"`
	Packs     []PackRef    `json:"packs"`
	Upheld    []string     `json:"upheld"`             // terms that were checked and hold; one that could not be checked is never here
	Marks     []string     `json:"marks,omitempty"`    // unratified, audit_only: what weakens it
	Statement string       `json:"statement,omitzero"` // the disclosure statement that must go with the run, hedge text first
	Votes     []HumanVote  `json:"votes,omitempty"`    // when people decided
	IssuedAt  time.Time    `json:"issued_at"`
	ExpiresAt time.Time    `json:"expires_at"`
	Log       AdmissionLog `json:"log"`
}

// PackRef names a pack by its identity.
type PackRef struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// HumanVote is one person's vote for an admission.
type HumanVote struct {
	Person string    `json:"person"`
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
	Origin string    `json:"origin,omitzero"` // the review it was carried over from
}

// AdmissionLog shows that the decision is in the log.
type AdmissionLog struct {
	Checkpoint string   `json:"checkpoint"` // the signed note
	Index      int64    `json:"index"`
	Leaf       string   `json:"leaf"`  // the event of the decision
	Proof      []string `json:"proof"` // hex
}

// Revocations lists the admissions of a project that do not hold any more although
// their time is not up. It is short, signed, and good until NextUpdate.
type Revocations struct {
	Project    string       `json:"project"`
	IssuedAt   time.Time    `json:"issued_at"`
	NextUpdate time.Time    `json:"next_update"`
	Revoked    []Revocation `json:"revoked"`
}

// Revocation is one admission that ended early.
type Revocation struct {
	Screening  string    `json:"screening"`
	SpecSHA256 string    `json:"spec_sha256"`
	At         time.Time `json:"at"`
	Reason     string    `json:"reason"` // superseded, withdrawn, revoked (by a recall), blocked
}

// ErrAdmission: the admission does not say that these bytes may train now.
var ErrAdmission = errors.New("not admitted")

// AdmissionCheck is what a trainer knows.
type AdmissionCheck struct {
	Spec        []byte
	Admission   []byte // the envelope
	Revocations []byte // the envelope of a list; nil: it is not known whether the admission was revoked
	Now         time.Time
	Keys        []PublicKey // none: nothing shows whose the admission is
	Witnesses   []Witness   // whose cosignatures of the log count
}

// CheckedAdmission is an admission that holds for the bytes, and who signed it.
type CheckedAdmission struct {
	Admission
	SignedBy    []PublicKey
	Revocations *Revocations  // nil when no list was given
	Cosigned    []Cosignature // by those of the witnesses that cosigned the state of the log that the decision is in
}

// clockLeeway is how far clocks may differ.
const clockLeeway = time.Minute

// CheckAdmission holds an admission to the bytes that are about to train. The
// error wraps ErrAdmission and says why not.
func CheckAdmission(ctx context.Context, c AdmissionCheck) (*CheckedAdmission, error) {
	refuse := func(format string, args ...any) (*CheckedAdmission, error) {
		return nil, fmt.Errorf("%w: %w", ErrAdmission, fmt.Errorf(format, args...))
	}
	s, signed, err := OpenStatement[Admission](ctx, c.Admission, AdmissionType, c.Keys...)
	if err != nil {
		return refuse("the admission: %w", err)
	}
	if len(c.Keys) > 0 && len(signed) == 0 {
		return refuse("the admission is not signed by the given key")
	}
	a := s.Predicate
	sum := sha256.Sum256(c.Spec)
	spec := hex.EncodeToString(sum[:])
	if i := slices.IndexFunc(s.Subject, func(s Subject) bool { return s.Name == SpecSubject }); i < 0 || s.Subject[i].Digest["sha256"] != spec {
		return refuse("the admission is for other bytes than this spec's")
	}
	switch {
	case !a.ExpiresAt.After(c.Now):
		return refuse("the admission ended at %s; ask the gate again", a.ExpiresAt.UTC().Format(time.RFC3339))
	case a.IssuedAt.After(c.Now.Add(clockLeeway)):
		return refuse("the admission is from the future, %s; look at this machine's clock", a.IssuedAt.UTC().Format(time.RFC3339))
	}
	if err := a.checkLog(spec, c.Keys); err != nil {
		return refuse("%w", err)
	}
	out := &CheckedAdmission{Admission: a, SignedBy: signed}
	if out.Cosigned, err = Cosignatures([]byte(a.Log.Checkpoint), c.Witnesses...); err != nil {
		return refuse("the checkpoint: %w", err)
	}
	if c.Revocations == nil {
		return out, nil
	}
	r, signed, err := OpenStatement[Revocations](ctx, c.Revocations, RevocationsType, c.Keys...)
	if err != nil {
		return refuse("the revocation list: %w", err)
	}
	list := r.Predicate
	switch {
	case len(c.Keys) > 0 && len(signed) == 0:
		return refuse("the revocation list is not signed by the given key")
	case list.Project != a.Project:
		return refuse("the revocation list is of another project")
	case !list.NextUpdate.After(c.Now):
		return refuse("the revocation list is stale since %s; fetch it again", list.NextUpdate.UTC().Format(time.RFC3339))
	case list.IssuedAt.After(c.Now.Add(clockLeeway)):
		return refuse("the revocation list is from the future; look at this machine's clock")
	}
	if i := slices.IndexFunc(list.Revoked, func(r Revocation) bool { return r.Screening == a.Screening }); i >= 0 {
		return refuse("the admission was revoked at %s: %s", list.Revoked[i].At.UTC().Format(time.RFC3339), list.Revoked[i].Reason)
	}
	out.Revocations = &list
	return out, nil
}

// checkLog holds the admission to the event of the decision, and that to the log.
func (a *Admission) checkLog(spec string, keys []PublicKey) error {
	var checkpoint Checkpoint
	var err error
	if len(keys) > 0 {
		checkpoint, _, err = ReadCheckpoint([]byte(a.Log.Checkpoint), keys...)
	} else {
		checkpoint, err = ReadUnsigned([]byte(a.Log.Checkpoint))
	}
	if err != nil {
		return err
	}
	proof, err := readHashes(a.Log.Proof)
	if err != nil {
		return fmt.Errorf("the proof: %w", err)
	}
	leaf := []byte(a.Log.Leaf)
	if err := checkpoint.CheckInclusion(a.Log.Index, LeafHash(leaf), proof); err != nil {
		return errors.New("the decision is not shown to be in the log")
	}
	e, err := ParseEntry(leaf)
	if err != nil {
		return err
	}
	var body struct {
		decided
		Causes []string `json:"causes"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return fmt.Errorf("the event of the decision cannot be read: %w", err)
	}
	switch {
	case e.Type != DecidedEvent || e.Subject != a.Screening || e.Project != a.Project || body.Spec != spec:
		return errors.New("the event in the log is of another decision")
	case body.Outcome != "admit" && a.DecidedBy == "packs":
		return errors.New("the log says that the packs did not admit it")
	case body.Outcome == "block" && slices.ContainsFunc(body.Causes, func(term string) bool { return strings.HasPrefix(term, "safety:") }):
		return errors.New("the log says that the safety floor blocked it, which nobody can lift")
	}
	return nil
}

// ProofText writes hashes of a proof in hex.
func ProofText(proof []tlog.Hash) []string {
	out := make([]string, len(proof))
	for i, h := range proof {
		out[i] = hex.EncodeToString(h[:])
	}
	return out
}
