package review_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
)

var update = flag.Bool("update", false, "write the drawing of the states into docs/reviews.md")

// The drawing in the guide is the table, not a memory of it.
func TestDrawingIsUpToDate(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/reviews.md", "do not edit -->\n", "<!-- end of states -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	drawn, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/reviews.md has no place for the drawing")
	}
	want := "\n" + review.Drawing() + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("docs/reviews.md is stale; go test ./review -run Drawing -update writes it (-table +docs)\n%s", diff)
	}
}
