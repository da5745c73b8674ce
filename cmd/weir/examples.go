package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
	"weir/screening/formats"
)

// maxListedExamples bounds the ids that go into a spec; the counts are whole.
const maxListedExamples = 50

// screenExamples screens a file of training examples with the live ruleset.
func screenExamples(ctx context.Context, stderr io.Writer, path string) (*screening.Examples, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	sum := sha256.New()
	counted, done := progress(stderr, "reading "+path, f, info.Size())
	_, err = io.Copy(sum, counted)
	done()
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("training examples: %w", err))
	}
	found := &screening.Examples{SHA256: fmt.Sprintf("%x", sum.Sum(nil)), IDs: []string{}}
	err = formats.ReadExamples(path, f, info.Size(), func(e formats.Example) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		found.Count++
		for _, text := range e.Texts {
			if screening.ScreenText(screening.RulesetHardened, text).IdentityOverride {
				found.Hits++
				if len(found.IDs) < maxListedExamples {
					found.IDs = append(found.IDs, e.ID)
				}
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("training examples in %s: %w", path, err))
	}
	return found, nil
}

// withExamples gives the spec with the result in evidence.examples, as JSON. The
// bytes are what is screened, so they are written where the pipeline finds them.
func withExamples(raw []byte, found *screening.Examples, out string) ([]byte, error) {
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	if spec.Evidence.Examples != nil {
		return nil, exitWith(exitUsage, errors.New("the spec has evidence.examples already; take it out and let --examples fill it in"))
	}
	merged, err := setMember(spec.JSON(), found, "evidence", "examples")
	if err != nil {
		return nil, exitWith(exitFailed, err)
	}
	if err := merged.Indent(); err != nil {
		return nil, exitWith(exitFailed, err)
	}
	merged = append(merged, '\n')
	if err := os.WriteFile(out, merged, 0o644); err != nil {
		return nil, exitWith(exitFailed, err)
	}
	return merged, nil
}

// setMember sets a member below nested objects, making them where they are missing.
func setMember(doc jsontext.Value, v any, path ...string) (jsontext.Value, error) {
	if len(path) == 0 {
		return json.Marshal(v, json.Deterministic(true))
	}
	members := map[string]jsontext.Value{}
	if len(doc) > 0 && doc.Kind() != 'n' {
		if err := json.Unmarshal(doc, &members); err != nil {
			return nil, err
		}
	}
	inner, err := setMember(members[path[0]], v, path[1:]...)
	if err != nil {
		return nil, err
	}
	members[path[0]] = inner
	return json.Marshal(members, json.Deterministic(true))
}
