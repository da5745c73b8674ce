package kubernetes_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review/reviewtest"
)

var record = flag.Bool("update", false, "write the recorded answers")

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}|\d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// The answers in testdata/answers are what callers that live elsewhere are tested
// with: the Kueue controller in deploy/kueue, and the Kubernetes types.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	c, down := newCluster(t), on(t, failing{err: errors.New("away")}, reviewtest.Floor, pledgeYAML)
	notGated := load(t, "job")
	delete(objectOf(notGated)["metadata"].(tree)["labels"].(tree), "weir.dev/gate")
	for _, x := range []struct {
		name string
		body response
	}{
		{"admitted", c.ask(load(t, "job"))},
		{"pending", c.ask(edit(load(t, "job"), escalates...))},
		{"blocked", c.ask(edit(load(t, "job"), blocks...))},
		{"invalid", c.ask(edit(load(t, "job"), "kind: sft → kind: sftt"))},
		{"unavailable", down.ask(load(t, "job"))},
		{"passed", c.ask(notGated)},
	} {
		file := filepath.Join("testdata", "answers", x.name+".json")
		got := changing.ReplaceAllStringFunc(x.body.body, func(s string) string {
			if len(s) == 36 {
				return "01932f4b-0000-7000-8000-000000000000"
			}
			return "2026-11-05 08:15 UTC"
		}) + "\n"
		if *record {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (go test ./cmd/weir/kubernetes -run RecordedAnswers -update, then make test-deploy):\n%s", x.name, diff)
		}
	}
}
