package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"weir/screening"
)

// batchSource is where the specs of a batch stand: the .yaml, .yml and .json files
// below a directory, or the lines of an NDJSON file.
type batchSource struct {
	name  string   // as it was given
	root  *os.Root // of a directory; nothing is read that leads out of it
	paths []string // below root, in order
	left  int      // other files in it, which are left alone

	file *os.File // of lines
	size int64
}

// batchItem is a spec of a batch. Its path names it in results: relative to the
// directory, or FILE:LINE.
type batchItem struct {
	path string
	file string // as a reader would open it
	line int    // in the file, 0 where the file is the spec
	raw  []byte
	err  error // it cannot be read
	done int64 // how much of the batch is read with it
}

func openBatchSource(name string) (*batchSource, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	s := &batchSource{name: name}
	switch {
	case info.IsDir():
		if s.root, err = os.OpenRoot(name); err == nil {
			err = s.list()
		}
		s.size = int64(len(s.paths))
	case info.Mode().IsRegular() && slices.Contains([]string{".ndjson", ".jsonl"}, filepath.Ext(name)):
		s.file, err = os.Open(name)
		s.size = info.Size()
	default:
		return nil, exitWith(exitUsage, fmt.Errorf("%s is neither a directory nor a file of lines (.ndjson, .jsonl); for one spec leave out --batch", name))
	}
	if err != nil {
		s.close()
		return nil, exitWith(exitUsage, err)
	}
	return s, nil
}

// list finds the files, in lexical order. Hidden ones are left alone, which is
// how mounted directories keep their older versions.
func (s *batchSource) list() error {
	return fs.WalkDir(s.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch hidden := name != "." && strings.HasPrefix(path.Base(name), "."); {
		case err != nil:
			return err
		case hidden && e.IsDir():
			return fs.SkipDir
		case hidden || e.IsDir():
			return nil
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
			s.paths = append(s.paths, name)
		case e.Type()&fs.ModeSymlink != 0 && s.leadsToSpecs(name):
			s.paths = append(s.paths, name) // and says there that it is not followed
		default:
			s.left++
		}
		return nil
	})
}

// leadsToSpecs: a link to a directory, or to what cannot be seen from here, may
// have specs behind it. To leave it out in silence would pass them unscreened.
func (s *batchSource) leadsToSpecs(name string) bool {
	info, err := s.root.Stat(name)
	return err != nil || info.IsDir()
}

// items gives the specs in order, until ctx ends.
func (s *batchSource) items(ctx context.Context, each func(batchItem)) error {
	if s.file != nil {
		return s.lines(ctx, each)
	}
	for i, name := range s.paths {
		if ctx.Err() != nil {
			return nil
		}
		item := batchItem{path: name, file: filepath.Join(s.name, filepath.FromSlash(name)), done: int64(i + 1)}
		item.raw, item.err = s.read(name)
		each(item)
	}
	return nil
}

// again gives the specs once more.
func (s *batchSource) again(each func(batchItem)) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return s.items(context.Background(), each)
}

// read reads a file, a byte more than a spec may have at most.
func (s *batchSource) read(name string) ([]byte, error) {
	switch info, err := s.root.Stat(name); { // before it is opened: to open a pipe waits for whoever writes to it
	case err != nil:
		return nil, fmt.Errorf("%w; links are followed within the directory only", err)
	case info.IsDir():
		return nil, errors.New("is a link to a directory, which is not followed; name that directory in a batch of its own")
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file")
	}
	f, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, screening.MaxDocumentBytes+1))
}

func (s *batchSource) lines(ctx context.Context, each func(batchItem)) error {
	in := bufio.NewReaderSize(s.file, 64<<10)
	offset := int64(0)
	for n := 1; ctx.Err() == nil; n++ {
		raw, size, err := nextLine(in)
		if errors.Is(err, io.EOF) && size == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return exitWith(exitFailed, fmt.Errorf("read %s: %w", s.name, err))
		}
		offset += size
		item := batchItem{path: fmt.Sprintf("%s:%d", filepath.ToSlash(s.name), n), file: s.name, line: n, raw: raw, done: offset}
		if raw := strings.TrimLeft(string(raw[:min(len(raw), 256)]), " \t\r"); !strings.HasPrefix(raw, "{") {
			item.err = errors.New("is no spec as one JSON object on a line")
		}
		each(item)
	}
	return nil
}

// nextLine reads a line without its end, of which it keeps a byte more than a spec
// may have at most; size is what it took from the file.
func nextLine(in *bufio.Reader) (raw []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if err == nil {
			part = part[:len(part)-1]
		}
		raw = append(raw, part[:min(len(part), screening.MaxDocumentBytes+1-len(raw))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return raw, size, err
		}
	}
}

func (s *batchSource) close() {
	if s.root != nil {
		_ = s.root.Close() // nothing was written through it
	}
	if s.file != nil {
		_ = s.file.Close()
	}
}
