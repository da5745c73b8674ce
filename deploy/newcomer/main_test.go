package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// What runs in the background is asked to end, and has ended when end returns, also
// when the walk was cut short in the middle of a command.
func TestEndWaitsForTheBackground(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]bool{"walked": false, "stopped in a command": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "clone")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			sh, err := startShell(ctx, dir)
			if err != nil {
				t.Fatal(err)
			}
			// Takes its time to end, as a gate with a database does.
			job := `mkfifo never; bash -c 'trap "for i in {1..100000}; do :; done; touch ended; exit" TERM; echo up; while :; do read -t 1 x <>never; done' &`
			if err := sh.run(step{command: job, output: []string{"up"}}); err != nil {
				t.Fatal(err)
			}
			if stopped {
				done := make(chan error)
				go func() { done <- sh.run(step{command: "echo waiting; read x <>never"}) }()
				for sh.printed(sh.seen) == "" {
				}
				stop()
				if err := <-done; err == nil {
					t.Error("a command that was stopped has ended well")
				}
			}
			sh.end()
			if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
				t.Error("what was in the background goes on:", err)
			}
		})
	}
}
