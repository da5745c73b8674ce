// Newcomer walks the path of somebody who has only the README: it clones the
// repository, runs the commands of the sections "Set up" and "Five minutes with it"
// in one shell, in their order, and compares what they print with what the README
// shows. It ends with 0 only if all of it is so.
//
//	go run ./deploy/newcomer
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// made is what the README's commands leave on the machine.
var made = []string{"/var/tmp/weir-tour", "/var/tmp/weir-audit"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute) // a command that hangs must not hang CI
	defer cancel()
	if err := walk(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

func walk(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("/var/tmp", "weir-newcomer.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the database may run as another user
		return err
	}
	for _, path := range made {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s is there from an earlier tour: stop its gate and remove it", path)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	}
	clone := filepath.Join(dir, "weir")
	if msg, err := exec.CommandContext(ctx, "git", "clone", "-q", ".", clone).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w: %s", err, msg)
	}
	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		return err
	}
	var steps []step
	for _, title := range []string{"Set up", "Five minutes with it"} {
		s, err := stepsOf(string(readme), title)
		if err != nil {
			return err
		}
		steps = append(steps, s...)
	}
	sh, err := startShell(ctx, clone)
	if err != nil {
		return err
	}
	defer sh.end()
	for _, s := range steps {
		if strings.HasPrefix(s.command, "make test ") {
			continue // CI runs it by itself
		}
		if s.command != "" {
			fmt.Fprintf(out, "README:%d $ %s\n", s.line, s.command)
		}
		if err := sh.run(s); err != nil {
			return fmt.Errorf("README.md line %d: %w", s.line, err)
		}
	}
	return nil
}

// shell is one bash that is given commands through its standard input. What it and
// its background jobs print goes to one file.
type shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	codes *bufio.Reader // a line with the exit code of each command
	log   string
	seen  int // bytes of the log that earlier commands printed
}

func startShell(ctx context.Context, dir string) (*shell, error) {
	s := &shell{log: dir + ".log"}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	s.codes = bufio.NewReader(read)
	s.cmd = exec.CommandContext(ctx, "bash")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, log, log
	s.cmd.ExtraFiles = []*os.File{write} // descriptor 3
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = func() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM) }
	s.cmd.WaitDelay = time.Minute // for what does not end when it is asked to
	// Of this process's environment only what a login would give.
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "TMPDIR", "WEIR_PG_BIN"} {
		if value, ok := os.LookupEnv(name); ok {
			s.cmd.Env = append(s.cmd.Env, name+"="+value)
		}
	}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	// However the shell ends, what it left in the background ends before it.
	_, err = io.WriteString(s.stdin, "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	return s, err
}

// end stops the shell and all that it left in the background, and waits for both: the
// directories that they use are removed next.
func (s *shell) end() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// run runs one command and compares. A background job of an earlier command may
// print late, so what is missing has some seconds to come.
func (s *shell) run(st step) error {
	var code int
	if st.command != "" {
		// The fence around the command keeps its standard input from being ours.
		if _, err := fmt.Fprintf(s.stdin, "{ %s\n} </dev/null\necho $? >&3\n", st.command); err != nil {
			return err
		}
		line, err := s.codes.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the shell ended: %w: %s", err, s.printed(s.seen))
		}
		if code, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		printed := s.printed(s.seen)
		if st.command == "" { // may have come while an earlier command ran
			printed = s.printed(0)
		}
		missing := st.missingIn(printed)
		if missing == "" {
			if code != 0 && !st.shows {
				return fmt.Errorf("%q ended with %d: %s", st.command, code, printed)
			}
			if st.command != "" {
				s.seen += len(printed)
			}
			// $? of the next line is of this command, not of ours.
			_, err := fmt.Fprintf(s.stdin, "(exit %d)\n", code)
			return err
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return fmt.Errorf("%s\n\ndoes not print\n\n%s\n\nIt printed:\n\n%s", st.command, missing, printed)
		}
	}
}

// printed is all that was printed after so many bytes.
func (s *shell) printed(after int) string {
	data, err := os.ReadFile(s.log)
	if err != nil || len(data) < after {
		return ""
	}
	return string(data[after:])
}
