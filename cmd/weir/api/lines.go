package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"

	"weir/screening"
)

// lineStall ends a batch whose client sends nothing for this long.
const lineStall = 30 * time.Second

// line is a line as it was sent, without its end; err says why it cannot be read,
// which says nothing of the others.
type line struct {
	raw []byte
	err error
}

func (l *line) weight() int64 { return int64(max(len(l.raw), 1)) }

// lineReader reads lines ahead of those that are worked on, up to mostReadAhead
// bytes: who sends faster has to wait.
type lineReader struct {
	lines   chan line
	ahead   *semaphore.Weighted
	control *http.ResponseController
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // why there are no more, set before lines is closed; nil: the body ended
}

// readLines begins to read. close has to be called when no more are wanted.
func readLines(ctx context.Context, body io.Reader, control *http.ResponseController) *lineReader {
	r := &lineReader{lines: make(chan line, largestGroup), ahead: semaphore.NewWeighted(mostReadAhead), control: control, ended: make(chan struct{})}
	ctx, r.cancel = context.WithCancel(ctx)
	go func() {
		defer close(r.ended)
		defer close(r.lines)
		r.err = r.read(ctx, bufio.NewReaderSize(&pacedReader{ctx: ctx, r: io.LimitReader(body, mostBytes+1), control: control}, 64<<10))
	}()
	return r
}

func (r *lineReader) read(ctx context.Context, from *bufio.Reader) error {
	for n, size := 0, 0; ; n++ {
		l, taken, err := readLine(from)
		size += taken
		switch {
		case size > mostBytes:
			return errBatchSize
		case errors.Is(err, io.EOF) && taken == 0:
			return nil
		case errors.Is(err, io.EOF): // the last one has no end
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errSlowBody
		case err != nil:
			return errReadBody
		}
		if n == mostLines {
			return errBatchSize
		}
		if err := r.ahead.Acquire(ctx, l.weight()); err != nil {
			return ended(ctx)
		}
		select {
		case r.lines <- l:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// ended is why a batch ends with its context: its time is over, or its client gone.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return errReadBody
}

// readLine reads up to the end of a line and keeps no more of it than a spec may have.
func readLine(from *bufio.Reader) (l line, taken int, err error) {
	for {
		part, err := from.ReadSlice('\n')
		taken += len(part)
		if err == nil {
			part = part[:len(part)-1]
		}
		switch {
		case l.err != nil:
		case len(l.raw)+len(part) > screening.MaxDocumentBytes:
			l = line{err: errLongLine}
		default:
			l.raw = append(l.raw, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, taken, err
		}
	}
}

// group gives the next line and those that are there already. It gives none at
// the end, with the reason if that is not the end of the body.
func (r *lineReader) group(ctx context.Context, stopping <-chan struct{}) (group []line, err error) {
	select {
	case <-stopping:
		return nil, errNotReady
	default:
	}
	select {
	case l, ok := <-r.lines:
		if !ok {
			return nil, r.err
		}
		group = append(group, l)
	case <-ctx.Done():
		return nil, ended(ctx)
	case <-stopping:
		return nil, errNotReady
	}
	for len(group) < largestGroup {
		select {
		case l, ok := <-r.lines:
			if !ok {
				return group, nil // the next call says why
			}
			group = append(group, l)
		default:
			return group, nil
		}
	}
	return group, nil
}

// done lets as much be read as these lines were.
func (r *lineReader) done(group []line) {
	for i := range group {
		r.ahead.Release(group[i].weight())
	}
}

// close ends reading and waits for it: nobody may read a body after its handler.
func (r *lineReader) close() {
	r.cancel()
	select {
	case <-r.ended: // and the connection may have another request
		return
	default:
	}
	_ = r.control.SetReadDeadline(time.Unix(1, 0)) // without a connection there is nothing that blocks
	for range r.lines {                            // what is read already
	}
	<-r.ended
}

// pacedReader gives a client time for each piece instead of for the whole.
type pacedReader struct {
	ctx     context.Context //nolint:containedctx // of the one who reads: looked at after the deadline is set, so that close is not undone
	r       io.Reader
	control *http.ResponseController
}

func (p *pacedReader) Read(data []byte) (int, error) {
	if err := p.control.SetReadDeadline(time.Now().Add(lineStall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	if err := context.Cause(p.ctx); err != nil {
		return 0, err
	}
	n, err := p.r.Read(data)
	if err != nil {
		_ = p.control.SetReadDeadline(time.Time{}) // what reads on only looks whether the client is there
	}
	return n, err
}
