package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/screening"
	"weir/screening/packs"
)

// defaultPacks are the shipped packs that decide beside the floor when nothing
// else is said.
var defaultPacks = []string{"content_hazards", "data_rights", "general_ethics"}

// loadBundle reads a pack with its cases and report: a shipped pack by id, any
// other by the path of its file.
func loadBundle(ref string, reg *screening.Registry) (*screening.Bundle, error) {
	read, path := os.ReadFile, ref
	if !isFile(ref) {
		path = ref + ".yaml"
		read = func(name string) ([]byte, error) {
			data, err := fs.ReadFile(packs.FS, name)
			if errors.Is(err, fs.ErrNotExist) && name == path {
				return nil, fmt.Errorf("%w (%s); name one of %s, or give the path of a file", errNoShippedPack, ref, strings.Join(shippedPacks(), ", "))
			}
			return data, err
		}
	}
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	b := &screening.Bundle{}
	if b.Pack, err = screening.LoadPack(path, data, reg); err != nil {
		return nil, err
	}
	cases := sibling(path, ".cases.yaml")
	switch data, err = read(cases); {
	case err == nil:
		if b.Cases, err = screening.LoadCases(cases, data, b.Pack); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	report := sibling(path, ".report.json")
	switch data, err = read(report); {
	case err == nil:
		if b.Report, err = screening.LoadReport(report, data); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return b, nil
}

// findBases gives a profile the packs that it extends, for a command that looks at
// packs one by one: from those named with it, else from the file <id>.yaml beside
// it, else a shipped pack. The profile is bound to them by digest, so it does not
// matter where they come from.
func findBases(b *screening.Bundle, ref string, named []*screening.Pack, reg *screening.Registry) error {
	at := slices.Clone(named)
	for _, x := range b.Pack.Extends {
		if slices.ContainsFunc(at, func(p *screening.Pack) bool { return p.ID == x.ID }) {
			continue
		}
		beside := filepath.Join(filepath.Dir(ref), x.ID+".yaml")
		if _, err := os.Stat(beside); err != nil || !isFile(ref) {
			if beside = x.ID; !slices.Contains(shippedPacks(), x.ID) {
				continue // Bases says that it is missing
			}
		}
		base, err := loadBundle(beside, reg)
		if err != nil {
			return err
		}
		at = append(at, base.Pack)
	}
	var err error
	b.Bases, err = b.Pack.Bases(at)
	return err
}

// isFile tells the path of a pack from the id of a shipped one.
func isFile(ref string) bool { return strings.ContainsAny(ref, "/.") }

// packError gives the exit code of a pack that could not be loaded: one that is
// not there is a mistake in the call, one that is there and broken is not.
func packError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) || errors.Is(err, errNoShippedPack) {
		return exitWith(exitUsage, err)
	}
	return exitWith(exitPackInvalid, err)
}

var errNoShippedPack = errors.New("there is no shipped pack of this name")

// sibling is the file beside a pack: rights.yaml → rights.cases.yaml.
func sibling(path, suffix string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + suffix
}

// shippedPacks lists the ids of the embedded packs.
func shippedPacks() (ids []string) {
	names, err := fs.Glob(packs.FS, "*.yaml")
	if err != nil {
		return nil // only a malformed pattern can fail
	}
	for _, n := range names {
		if id := strings.TrimSuffix(n, ".yaml"); !strings.HasSuffix(id, ".cases") {
			ids = append(ids, id)
		}
	}
	return ids
}

// loadVocabulary loads the floor and the named packs and refuses what is not in
// force. unratified lets packs pass that are not, and marks every decision so.
func loadVocabulary(refs []string, auditOnly, unratified bool) (*screening.Vocabulary, error) {
	reg := screening.NewRegistry()
	floor, err := loadBundle(screening.FloorID, reg)
	if err != nil {
		return nil, packError(err)
	}
	bundles := []*screening.Bundle{floor}
	for _, ref := range refs {
		if ref == screening.FloorID {
			continue // always there
		}
		b, err := loadBundle(ref, reg)
		if err != nil {
			return nil, packError(err)
		}
		bundles = append(bundles, b)
	}
	cfg := screening.VocabularyConfig{AuditOnly: auditOnly, Unratified: unratified} // marked even when all happen to be in force
	all := make([]*screening.Pack, len(bundles))
	for i, b := range bundles {
		all[i] = b.Pack
	}
	for _, b := range bundles {
		if b.Bases, err = b.Pack.Bases(all); err != nil {
			return nil, exitWith(exitPackInvalid, err)
		}
		if err := b.InForce(reg, floor.Pack); err != nil && !unratified {
			return nil, exitWith(exitPackInvalid, err)
		}
	}
	v, err := screening.NewVocabulary(reg, cfg, all...)
	if err != nil {
		return nil, exitWith(exitPackInvalid, err)
	}
	return v, nil
}
