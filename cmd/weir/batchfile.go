package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
	"weir/screening"
)

// checked is what came of a spec of a batch, as it is kept and as it is shown.
type checked struct {
	Path     string              `json:"path"`
	SHA256   screening.Digest256 `json:"spec_sha256,omitzero"`
	Code     int                 `json:"exit_code"` // that check would have had for it alone
	Status   review.Status       `json:"status,omitzero"`
	ID       string              `json:"id,omitzero"`
	RunRef   string              `json:"run_ref,omitzero"`
	Why      string              `json:"why,omitzero"` // in a line
	Problems []screening.Problem `json:"problems,omitempty"`
	Answer   jsontext.Value      `json:"answer,omitzero"` // as the gate gave it; only in the file
}

// batchHead says what a results file is of: a file goes on only with the same.
type batchHead struct {
	Schema string              `json:"schema"`
	Run    string              `json:"run"`  // makes the idempotency keys
	From   string              `json:"from"` // the gate, or offline
	Of     string              `json:"of"`   // as given
	AsOf   screening.Day       `json:"as_of,omitzero"`
	Engine string              `json:"engine,omitzero"`
	Packs  []screening.PackRef `json:"packs,omitempty"` // offline
}

const batchSchema = "weir/check-batch/v1"

func (h batchHead) differsFrom(other batchHead) string {
	switch {
	case h.Schema != other.Schema:
		return "its schema"
	case h.From != other.From:
		return "the gate"
	case h.Of != other.Of:
		return "the directory or file"
	case h.AsOf != other.AsOf:
		return "the day; give it with --as-of"
	case h.Engine != other.Engine:
		return "the decision engine"
	case fmt.Sprint(h.Packs) != fmt.Sprint(other.Packs):
		return "the packs"
	}
	return ""
}

// kept is where a result stands in the file.
type kept struct {
	id           string
	offset, size int64
}

type batchKey struct {
	path string
	sum  screening.Digest256
}

// batchFile keeps the results of a batch: one JSON line that says what it is of,
// then one per result, in the order in which they came; of two for the same bytes
// in the same place the later holds. Lines are only appended. Without a name it is
// a temporary file: answers need no memory either way.
type batchFile struct {
	file  *os.File
	named bool
	head  batchHead
	size  int64
	at    map[batchKey]kept

	earlier map[batchKey]kept // those that were there at the beginning; never changed
}

// openBatchFile begins a file, or goes on with one of the same batch. What is not
// a results file is never written to.
func openBatchFile(name string, head batchHead) (_ *batchFile, err error) {
	head.Schema, head.Run = batchSchema, rand.Text()
	f := &batchFile{named: name != "", head: head, at: map[batchKey]kept{}}
	if f.named {
		f.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // run_refs are not for everybody
	} else {
		f.file, err = os.CreateTemp("", "weir-batch-")
	}
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("results file: %w", err))
	}
	if err := f.load(); err != nil {
		f.close()
		return nil, exitWith(exitUsage, fmt.Errorf("results file %s: %w", name, err))
	}
	f.earlier = maps.Clone(f.at)
	return f, nil
}

// load reads what is there and cuts off a line that was not finished.
func (f *batchFile) load() error {
	r := bufio.NewReader(f.file)
	first, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(first) == 0 {
		return f.append(f.head)
	}
	var was batchHead
	if text, whole := trimmed(first); !whole || json.Unmarshal(text, &was) != nil || was.Schema == "" || was.Run == "" {
		return errors.New("is not a results file of a batch; name another")
	}
	if what := was.differsFrom(f.head); what != "" {
		return fmt.Errorf("is of another batch: it differs in %s; name another file to start anew", what)
	}
	f.head, f.size = was, int64(len(first))
	for {
		line, err := r.ReadBytes('\n')
		text, whole := trimmed(line)
		if !whole {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			break // cut off, or the end
		}
		var c checked
		if err := json.Unmarshal(text, &c); err != nil || c.Path == "" {
			return errors.New("is damaged; name another file to start anew")
		}
		f.took(&c, int64(len(line)))
	}
	return f.file.Truncate(f.size)
}

func (f *batchFile) took(c *checked, size int64) {
	f.at[batchKey{c.Path, c.SHA256}] = kept{c.ID, f.size, size}
	f.size += size
}

// keep appends a result.
func (f *batchFile) keep(c *checked) error {
	before := f.size
	if err := f.append(c); err != nil {
		return err
	}
	size := f.size - before
	f.size = before
	f.took(c, size)
	return nil
}

func (f *batchFile) append(v any) error {
	line, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	n, err := f.file.WriteAt(append(line, '\n'), f.size)
	if err != nil {
		return err
	}
	f.size += int64(n)
	return nil
}

// result reads a result with its answer; ok is false where there is none.
func (f *batchFile) result(path string, sum screening.Digest256) (c *checked, ok bool, err error) {
	at, ok := f.at[batchKey{path, sum}]
	if !ok {
		return nil, false, nil
	}
	line := make([]byte, at.size)
	if _, err := f.file.ReadAt(line, at.offset); err != nil {
		return nil, false, err
	}
	c = &checked{}
	return c, true, json.Unmarshal(bytes.TrimSuffix(line, []byte("\n")), c)
}

func (f *batchFile) close() {
	_ = f.file.Close() // results that are lost are asked for again
	if !f.named {
		_ = os.Remove(f.file.Name())
	}
}
