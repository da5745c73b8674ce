package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# it\n```sh\nnot this\n```\n## Try\ntext\n```sh\nmake it   # why\n\nlong \\\n  --flag\necho 'two\nlines'\n```\n" +
	"```console\nBY ITSELF\n$ ask \"it\"\nADMITTED  01a22dc2-20ee-7c13-bc8d-e9f3ca56c042\n\n  due 2026-12-02 18:40:26 UTC, {\"a\",…}\n$ echo $?\n0\n```\n```yaml\nno: command\n```\n## Else\n```sh\nnor this\n```\n"

func TestStepsOf(t *testing.T) {
	t.Parallel()
	got, err := stepsOf(page, "Try")
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 8, command: "make it   # why"},
		{line: 10, command: "long \\\n  --flag"},
		{line: 12, command: "echo 'two\nlines'"},
		{line: 16, output: []string{"BY ITSELF"}, shows: true},
		{line: 17, command: `ask "it"`, output: []string{"ADMITTED  01a22dc2-20ee-7c13-bc8d-e9f3ca56c042", `  due 2026-12-02 18:40:26 UTC, {"a",…}`}, shows: true},
		{line: 21, command: "echo $?", output: []string{"0"}, shows: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Error(diff)
	}
	if _, err := stepsOf(page, "Nothing"); err == nil {
		t.Error("a section that is not there has steps")
	}
}

func TestMissingIn(t *testing.T) {
	t.Parallel()
	steps, err := stepsOf(page, "Try")
	if err != nil {
		t.Fatal(err)
	}
	s := steps[4]
	for printed, want := range map[string]string{
		"ADMITTED  01a99999-20ee-7c13-bc8d-e9f3ca56c042\n\n  due 2031-01-01 00:00:00 UTC, {\"a\",1}\n": "",
		"ADMITTED  01a99999-20ee-7c13-bc8d-e9f3ca56c042\n":                                             s.output[1],
		"  due 2031-01-01 00:00:00 UTC, {\"a\",1}\nADMITTED  01a99999-20ee-7c13-bc8d-e9f3ca56c042\n":   s.output[1], // in another order
		"BLOCKED  01a99999-20ee-7c13-bc8d-e9f3ca56c042\n  due 2031-01-01 00:00:00 UTC, {\"a\",1}\n":    s.output[0],
		"": s.output[0],
	} {
		if got := s.missingIn(printed); got != want {
			t.Errorf("in %q: %q is missing, want %q", printed, got, want)
		}
	}
}
