package api

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/api.md has every problem in its table, with each status, and no other.
func TestProblemsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| `type` (`"+problemPrefix+"…`) | status |\n|---|---|\n")
	if !ok {
		t.Fatal("there is no table of problems")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	told := map[string]string{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.SplitN(row, "|", 4)
		for _, m := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(cells[1], -1) {
			told[m[1]] += cells[2]
		}
	}
	for _, p := range problemNames {
		for _, status := range p.statuses {
			if !strings.Contains(told[p.name], strconv.Itoa(status)) {
				t.Errorf("%s %d is not in the table", p.name, status)
			}
		}
		delete(told, p.name)
	}
	for name := range told {
		t.Errorf("%s is in the table and no problem", name)
	}
}
