package ledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// admit makes an admission of the first decision of a log; change may alter what
// it says before it is signed.
func admit(t *testing.T, l *exampleLog, key Key, index int64, change func(*Statement[Admission])) (spec, envelope []byte) {
	t.Helper()
	state := l.states[len(l.states)-1]
	note, err := state.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := ProveInclusion(state.Size, index, &l.tree)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := l.entries[index].Leaf()
	if err != nil {
		t.Fatal(err)
	}
	spec = l.payloads[index].Spec
	sum := sha256.Sum256(spec)
	s := Statement[Admission]{PredicateType: AdmissionType, Subject: []Subject{{SpecSubject, map[string]string{"sha256": fmt.Sprintf("%x", sum)}}},
		Predicate: Admission{Screening: l.entries[index].Subject, Project: "default", RunRef: "r", DecidedBy: "packs", AsOf: "2026-11-30", Engine: "1",
			Packs: []PackRef{}, Upheld: []string{}, IssuedAt: admitTime, ExpiresAt: admitTime.Add(time.Hour),
			Log: AdmissionLog{Checkpoint: string(note), Index: index, Leaf: string(leaf), Proof: ProofText(proof)}}}
	if change != nil {
		change(&s)
	}
	if envelope, err = SignStatement(t.Context(), s, key); err != nil {
		t.Fatal(err)
	}
	return spec, envelope
}

var admitTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestAdmissionHoldsForItsBytesAndTime(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	stranger, _, _ := newKey(t)
	l := newExampleLog(t)
	spec, envelope := admit(t, l, key, 0, nil)
	good := AdmissionCheck{Spec: spec, Admission: envelope, Now: admitTime.Add(time.Minute), Keys: []PublicKey{key.Public()}}
	if a, err := CheckAdmission(t.Context(), good); err != nil || len(a.SignedBy) != 1 {
		t.Fatal(a, err)
	}
	withoutKey := good
	withoutKey.Keys = nil
	if a, err := CheckAdmission(t.Context(), withoutKey); err != nil || len(a.SignedBy) != 0 {
		t.Fatal(a, err)
	}
	revocations := func(change func(*Revocations)) []byte {
		p := Revocations{Project: "default", IssuedAt: admitTime, NextUpdate: admitTime.Add(time.Hour), Revoked: []Revocation{}}
		change(&p)
		data, err := SignStatement(t.Context(), Statement[Revocations]{Subject: []Subject{}, PredicateType: RevocationsType, Predicate: p}, key)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	listed := good
	listed.Revocations = revocations(func(*Revocations) {})
	if a, err := CheckAdmission(t.Context(), listed); err != nil || a.Revocations == nil {
		t.Fatal(a, err)
	}
	signed := func(change func(*Statement[Admission])) func(*AdmissionCheck) {
		return func(c *AdmissionCheck) { _, c.Admission = admit(t, l, key, 0, change) }
	}
	for name, change := range map[string]func(*AdmissionCheck){
		"another byte":         func(c *AdmissionCheck) { c.Spec = append(bytes.Clone(c.Spec), '\n') },
		"no bytes":             func(c *AdmissionCheck) { c.Spec = nil },
		"too late":             func(c *AdmissionCheck) { c.Now = admitTime.Add(time.Hour) },
		"from the future":      func(c *AdmissionCheck) { c.Now = admitTime.Add(-2 * time.Minute) },
		"a stranger's key":     func(c *AdmissionCheck) { c.Keys = []PublicKey{stranger.Public()} },
		"signed by a stranger": func(c *AdmissionCheck) { _, c.Admission = admit(t, l, stranger, 0, nil) },
		"not an envelope":      func(c *AdmissionCheck) { c.Admission = []byte("{}") },
		"another decision's event": signed(func(s *Statement[Admission]) {
			_, other := admit(t, l, key, 3, nil)
			o, _, err := OpenStatement[Admission](t.Context(), other, AdmissionType)
			if err != nil {
				t.Fatal(err)
			}
			s.Predicate.Log = o.Predicate.Log
		}),
		"an event of another kind": signed(func(s *Statement[Admission]) {
			_, other := admit(t, l, key, 2, nil)
			o, _, err := OpenStatement[Admission](t.Context(), other, AdmissionType)
			if err != nil {
				t.Fatal(err)
			}
			s.Predicate.Log = o.Predicate.Log
		}),
		"another place in the log": signed(func(s *Statement[Admission]) { s.Predicate.Log.Index = 1 }),
		"no proof":                 signed(func(s *Statement[Admission]) { s.Predicate.Log.Proof = []string{} }),
		"no checkpoint":            signed(func(s *Statement[Admission]) { s.Predicate.Log.Checkpoint = "" }),
		"another project":          signed(func(s *Statement[Admission]) { s.Predicate.Project = "x" }),
		"no subject":               signed(func(s *Statement[Admission]) { s.Subject = nil }),
		"another statement":        signed(func(s *Statement[Admission]) { s.PredicateType = ManifestType }),
		"revoked": func(c *AdmissionCheck) {
			c.Revocations = revocations(func(r *Revocations) { r.Revoked = []Revocation{{Screening: "a", At: admitTime, Reason: "recalled"}} })
		},
		"stale list":      func(c *AdmissionCheck) { c.Revocations = revocations(func(r *Revocations) { r.NextUpdate = c.Now }) },
		"list of another": func(c *AdmissionCheck) { c.Revocations = revocations(func(r *Revocations) { r.Project = "x" }) },
		"future list": func(c *AdmissionCheck) {
			c.Revocations = revocations(func(r *Revocations) { r.IssuedAt = c.Now.Add(time.Hour) })
		},
		"unreadable list":   func(c *AdmissionCheck) { c.Revocations = []byte("x") },
		"admission as list": func(c *AdmissionCheck) { c.Revocations = c.Admission },
	} {
		c := good
		change(&c)
		if a, err := CheckAdmission(t.Context(), c); !errors.Is(err, ErrAdmission) {
			t.Errorf("%s: %+v, %v, want ErrAdmission", name, a, err)
		}
	}
	for i := range envelope {
		c := good
		c.Admission = bytes.Clone(envelope)
		c.Admission[i] ^= 1
		if _, err := CheckAdmission(t.Context(), c); !errors.Is(err, ErrAdmission) {
			t.Errorf("byte %d changed: %v, want ErrAdmission", i, err)
		}
	}
}

// What the floor blocked is admitted by nobody, and what the packs did not admit
// not by them.
func TestAdmissionIsHeldToTheOutcome(t *testing.T) {
	t.Parallel()
	key, _, _ := newKey(t)
	for outcome, want := range map[string]map[string]bool{
		`admit`: {"packs": true, "people": true, "waiver": true},
		`escalate","causes":["safety:minors"],"x":"`: {"packs": false, "people": true, "waiver": true},
		`block","causes":["ethics:a"],"x":"`:         {"packs": false, "people": true, "waiver": true},
		`block","causes":["safety:minors"],"x":"`:    {"packs": false, "people": false, "waiver": false},
	} {
		for by, ok := range want {
			l := newExampleLog(t)
			l.rewrite(t, 0, strings.Replace(string(l.entries[0].Body), "admit", outcome, 1))
			spec, envelope := admit(t, l, key, 0, func(s *Statement[Admission]) { s.Predicate.DecidedBy = by })
			_, err := CheckAdmission(t.Context(), AdmissionCheck{Spec: spec, Admission: envelope, Now: admitTime, Keys: []PublicKey{key.Public()}})
			if (err == nil) != ok {
				t.Errorf("%s by the packs, admitted by %s: %v, want it held: %t", outcome, by, err, ok)
			}
		}
	}
}

// rewrite makes the log anew with another body of one entry.
func (l *exampleLog) rewrite(t *testing.T, index int, body string) {
	t.Helper()
	l.entries[index].Body = []byte(body)
	sum := l.entries[index].sum()
	l.entries[index].Hash = sum[:]
	l.tree, l.states = stored{}, nil
	for _, e := range l.entries {
		leaf, err := e.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		l.states = append(l.states, l.tree.grow(t, LeafHash(leaf)))
	}
}
