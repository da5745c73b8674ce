package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/screening"
	"weir/store/ledger"
)

// replayBundle decides every spec of a verified bundle again, by the packs that
// are in it and as of the day it was decided, and holds the decision to the one
// that is in it. It returns how many came out the same: all, or it is broken.
func replayBundle(files fs.FS, m ledger.Manifest) (same int, err error) {
	if m.Payloads != "included" {
		return 0, errors.New("the bundle has only digests of specs and decisions; nothing can be decided again")
	}
	again := &redecider{packs: map[string]*screening.Pack{}, vocabularies: map[string]*screening.Vocabulary{}, reg: screening.NewRegistry()}
	for _, p := range m.Packs {
		data, err := fs.ReadFile(files, p.File)
		if err != nil {
			return 0, err
		}
		pack, err := screening.LoadPack(p.File, data, again.reg)
		if err != nil || pack.SHA256.String() != p.SHA256 {
			return 0, &ledger.BrokenError{File: p.File, Index: -1, Detail: fmt.Sprintf("is not the pack with sha256 %s (%v)", p.SHA256, err)}
		}
		again.packs[p.SHA256] = pack
	}
	index := m.First - 1
	err = ledger.EachPayload(files, m, func(e ledger.Entry, p ledger.Payload) error {
		index = p.Index
		if p.Erased != nil {
			return nil
		}
		var body struct {
			Engine string `json:"engine"`
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return err
		}
		if body.Engine != screening.EngineVersion {
			return fmt.Errorf("entry %d was decided by engine %s, this is engine %s; replay it with a weir of that engine (weir version)", index, body.Engine, screening.EngineVersion)
		}
		decision, err := again.decide(p)
		if err != nil {
			return &ledger.BrokenError{File: ledger.PayloadsFile, Index: index, Detail: "cannot be decided again: " + err.Error()}
		}
		if !bytes.Equal(decision, p.Decision) {
			return &ledger.BrokenError{File: ledger.PayloadsFile, Index: index, Detail: "decided again, the decision is another"}
		}
		same++
		return nil
	})
	return same, err
}

// redecider decides by packs that decisions name.
type redecider struct {
	reg          *screening.Registry
	packs        map[string]*screening.Pack // by digest
	vocabularies map[string]*screening.Vocabulary
}

func (r *redecider) decide(p ledger.Payload) ([]byte, error) {
	var was screening.Decision
	if err := json.Unmarshal(p.Decision, &was); err != nil {
		return nil, err
	}
	v, err := r.vocabulary(&was)
	if err != nil {
		return nil, err
	}
	spec, err := screening.ParseSpec(p.Spec)
	if err != nil {
		return nil, err
	}
	d, err := screening.Classify(spec, v, was.AsOf)
	if err != nil {
		return nil, err
	}
	return screening.MarshalDecision(d)
}

// vocabulary is made of the packs that a decision names, and of its mode.
func (r *redecider) vocabulary(d *screening.Decision) (*screening.Vocabulary, error) {
	cfg := screening.VocabularyConfig{AuditOnly: d.AuditOnly, Unratified: d.Unratified}
	var digests []string
	for _, ref := range d.Packs {
		digests = append(digests, ref.SHA256.String())
	}
	key := fmt.Sprint(cfg, digests)
	if v, ok := r.vocabularies[key]; ok {
		return v, nil
	}
	packs := make([]*screening.Pack, len(digests))
	for i, digest := range digests {
		if packs[i] = r.packs[digest]; packs[i] == nil {
			return nil, fmt.Errorf("pack %s with sha256 %s is not in the bundle", d.Packs[i].ID, strings.ToLower(digest))
		}
	}
	v, err := screening.NewVocabulary(r.reg, cfg, packs...)
	if err == nil {
		r.vocabularies[key] = v
	}
	return v, err
}
