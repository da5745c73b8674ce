package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/go-json-experiment/json"

	"weir/cmd/weir/client"
)

// replayFile keeps the results of a replay: one JSON line that says what it is
// of, then one per page. Lines are only appended, each with the place where the
// page begins and where the next does, so whatever ends the program loses one
// page at most, and the results do not depend on where that was. Without a name
// it is a temporary file: results need no memory either way.
type replayFile struct {
	file     *os.File
	named    bool
	first    *client.ReplayPage // nil before the first page
	next     string             // where the next page begins
	ended    bool
	replayed int
}

// replayLine is a page with the place where it begins.
type replayLine struct {
	After string            `json:"after"`
	Page  client.ReplayPage `json:"page"`
}

// openReplayFile begins a file, or goes on with one of the same replay. What is
// not a results file is never written to.
func openReplayFile(name string, head replayHead) (*replayFile, error) {
	line, err := json.Marshal(head)
	if err != nil {
		return nil, exitWith(exitFailed, err)
	}
	line = append(line, '\n')
	f := &replayFile{named: name != ""}
	if f.named {
		f.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // run_refs are not for everybody
	} else {
		f.file, err = os.CreateTemp("", "weir-replay-")
	}
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("results file: %w", err))
	}
	if err := f.load(head, line); err != nil {
		f.close()
		return nil, exitWith(exitUsage, fmt.Errorf("results file %s: %w", name, err))
	}
	return f, nil
}

// load reads what is there and cuts off a line that was not finished.
func (f *replayFile) load(head replayHead, headLine []byte) error {
	r := bufio.NewReader(f.file)
	first, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text, whole := trimmed(first)
	if !whole {
		if !bytes.HasPrefix(headLine, first) {
			return errors.New("is not a results file of this replay; name another")
		}
		return f.begin(headLine)
	}
	var was replayHead
	if err := json.Unmarshal(text, &was); err != nil || was.Schema == "" {
		return errors.New("is not a results file; name another")
	}
	if what := was.differsFrom(head); what != "" {
		return fmt.Errorf("is of another replay: it differs in %s; name another file to start anew", what)
	}
	size := int64(len(first))
	for {
		line, err := r.ReadBytes('\n')
		text, whole := trimmed(line)
		if !whole {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			break // cut off, or the end
		}
		var l replayLine
		if err := json.Unmarshal(text, &l); err != nil || l.After != f.next || f.ended {
			return errors.New("is damaged; name another file to start anew")
		}
		f.took(&l.Page)
		size += int64(len(line))
	}
	if err := f.file.Truncate(size); err != nil {
		return err
	}
	_, err = f.file.Seek(size, io.SeekStart)
	return err
}

func (f *replayFile) begin(headLine []byte) error {
	_, err := f.file.WriteAt(headLine, 0)
	if err != nil {
		return err
	}
	if _, err = f.file.Seek(int64(len(headLine)), io.SeekStart); err != nil {
		return err
	}
	return f.file.Sync()
}

// keep appends a page.
func (f *replayFile) keep(page *client.ReplayPage) error {
	line, err := json.Marshal(replayLine{f.next, *page})
	if err != nil {
		return err
	}
	if _, err := f.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if f.named {
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	f.took(page)
	return nil
}

func (f *replayFile) took(page *client.ReplayPage) {
	if f.first == nil {
		f.first = page
	}
	f.next, f.ended = page.Next, page.Next == ""
	f.replayed += page.Replayed
}

func (f *replayFile) complete() bool { return f.ended }

// pages gives all pages, from the file.
func (f *replayFile) pages() iter.Seq2[*client.ReplayPage, error] {
	return func(yield func(*client.ReplayPage, error) bool) {
		if _, err := f.file.Seek(0, io.SeekStart); err != nil {
			yield(nil, err)
			return
		}
		r := bufio.NewReader(f.file)
		for n := 0; ; n++ {
			line, err := r.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			var l replayLine
			if err == nil && n > 0 {
				err = json.Unmarshal(line, &l)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if n > 0 && !yield(&l.Page, nil) {
				return
			}
		}
	}
}

func (f *replayFile) close() {
	_ = f.file.Close() // every page was synced, or nobody wants them
	if !f.named {
		_ = os.Remove(f.file.Name())
	}
}
