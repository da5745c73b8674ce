package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A mistyped command is a usage error, not help and exit code 0: a script must
// not believe that a key was revoked.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pack", "validat", "x"}, {"key", "revok", "ID"}, {"migrate", "upp"}, {"text", "scren", "-"}, {"chek", "x"}} {
		if code, out, errs := weirRun(t, args...); code != exitUsage || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := weirRun(t, "pack"); code != exitAdmit || !strings.Contains(out, "ratify") {
		t.Errorf("pack alone: exit %d, %q; want its help", code, out)
	}
}

func TestPackOutputs(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pack", "list"}, {"pack", "validate", "general_ethics"}, {"pack", "test", "general_ethics"}} {
		text, _, _ := weirRun(t, args...)
		code, out, errs := weirRun(t, append(args, "--output", "json")...)
		var v any
		if code != text || json.Unmarshal([]byte(out), &v) != nil {
			t.Errorf("%v: exit %d as JSON, %d as text, %q %s", args, code, text, out, errs)
		}
		if code, _, _ := weirRun(t, append(args, "--output", "xml")...); code != exitUsage {
			t.Errorf("%v --output xml: exit %d, want %d", args, code, exitUsage)
		}
	}
}
