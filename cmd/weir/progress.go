package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a long read is, on a terminal and nowhere else. The
// returned reader counts; done takes the bar away.
func progress(stderr io.Writer, what string, r io.Reader, size int64) (counted io.Reader, done func()) {
	if !isTerminal(stderr) {
		return r, func() {}
	}
	bar := newBar(stderr, what, size, progressbar.OptionShowBytes(true))
	counting := progressbar.NewReader(r, bar)
	return &counting, func() { _ = bar.Finish() } // a bar that cannot be drawn is no failure
}

// progressTo is progress for work that says itself how far of total it is.
func progressTo(stderr io.Writer, total int64) (at func(n int64, what string), done func()) {
	if !isTerminal(stderr) || total <= 0 {
		return func(int64, string) {}, func() {}
	}
	bar := newBar(stderr, "", total)
	return func(n int64, what string) {
		bar.Describe(what)
		_ = bar.Set64(min(max(n, 0), total))
	}, func() { _ = bar.Finish() }
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func newBar(stderr io.Writer, what string, total int64, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append(more, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())...)
}
