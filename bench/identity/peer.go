package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed peer.py
var peerProgram []byte

// stubs stand for the parts of its project that the document imports. The text rules use none of them; what it names
// while it is being imported has to exist.
var stubs = map[string]string{
	"core/physics/identity.py": "class IdentityCheck: pass\nclass IdentityManifold: pass\nclass IdentityScore: pass\n",
	"teaching/correction.py":   "class CorrectionCandidate: pass\n",
	"teaching/epistemic.py":    "class EpistemicStatus:\n    SPECULATIVE = 'speculative'\n",
}

// absentError says why the document's implementation cannot take part.
type absentError struct{ reason string }

func (e *absentError) Error() string { return e.reason }

// peer is a Python process that has the document and the texts in memory.
type peer struct {
	cmd     *exec.Cmd
	input   io.WriteCloser
	answer  *bufio.Reader
	version string // of Python
}

// startPeer restores the document from seedDir and starts Python with it. The error is an *absentError if there is no
// seedDir or no Python.
func startPeer(seedDir string, sets []textSet) (p *peer, err error) {
	if seedDir == "" {
		return nil, &absentError{"WEIR_SEED_DIR is not set"}
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, &absentError{"there is no python3"}
	}
	document, err := readDocument(seedDir)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-identity-")
	if err != nil {
		return nil, err
	}
	// Python has read everything when it answers, so that the restored document is gone before the long part begins.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args, err := writeFiles(dir, document, sets)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(python, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p = &peer{cmd: cmd, input: input, answer: bufio.NewReader(output)}
	if p.version, err = p.line(); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// writeFiles writes what Python reads into dir, and gives Python's arguments.
func writeFiles(dir string, document []byte, sets []textSet) (args []string, err error) {
	files := map[string][]byte{"peer.py": peerProgram, "modules/document.py": document}
	for name, text := range stubs {
		files["modules/"+name] = []byte(text)
	}
	// Isolated, without site packages, so that nothing installed takes the place of a stub.
	args = []string{"-I", "-S", "-B", filepath.Join(dir, "peer.py"), filepath.Join(dir, "modules")}
	for i, set := range sets {
		name := fmt.Sprintf("texts%d.json", i)
		if files[name], err = json.Marshal(set.texts); err != nil {
			return nil, err
		}
		args = append(args, filepath.Join(dir, name))
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// stop ends the process.
func (p *peer) stop() error { return errors.Join(p.input.Close(), p.cmd.Wait()) }

func (p *peer) ask(task string, set int) (string, error) {
	if _, err := fmt.Fprintln(p.input, task, set); err != nil {
		return "", fmt.Errorf("ask the document's implementation: %w", err)
	}
	return p.line()
}

func (p *peer) line() (string, error) {
	line, err := p.answer.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the document's implementation stopped: %w", err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// verdicts says for each text of a set whether the document flags it.
func (p *peer) verdicts(set int) ([]bool, error) {
	line, err := p.ask("verdicts", set)
	flagged := make([]bool, len(line))
	for i := range line {
		flagged[i] = line[i] == '1'
	}
	return flagged, err
}

// time is the processor time of one pass over a set.
func (p *peer) time(set int) (time.Duration, error) {
	line, err := p.ask("time", set)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(n), err
}
