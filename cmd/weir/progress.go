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
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return r, func() {}
	}
	bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())
	counting := progressbar.NewReader(r, bar)
	return &counting, func() { _ = bar.Finish() } // a bar that cannot be drawn is no failure
}
