package api

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// exported is every metric of weir's own, as name{labels}.
func exported(t *testing.T, m *Metrics) (list []string) {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(descs)
		close(descs)
	}()
	parts := regexp.MustCompile(`fqName: "(weir_[a-z_]+)".*variableLabels: \{([a-z,]*)\}`)
	for d := range descs {
		if p := parts.FindStringSubmatch(d.String()); p != nil {
			if p[2] != "" {
				p[1] += "{" + p[2] + "}"
			}
			list = append(list, p[1])
		}
	}
	slices.Sort(list)
	if len(list) < 8 {
		t.Fatalf("only these metrics are found: %v", list)
	}
	return list
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+(?:\\{[a-z,]+\\})?)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(exported(t, NewMetrics()), listed); diff != "" {
		t.Errorf("metrics (-) and docs/operations.md (+):\n%s", diff)
	}
}

// The dashboard shows all that is exported, and dashboard and alerts ask for
// nothing else. What is asked is checked with Prometheus's own parser in
// deploy/operations.
func TestDashboardAndAlertsKnowTheMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	known := map[string]bool{}
	for _, e := range exported(t, m) {
		name, _, _ := strings.Cut(e, "{")
		known[name] = true
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	runtimes := map[string]bool{}
	for _, f := range families {
		runtimes[f.GetName()] = true
	}
	for _, path := range []string{"../../../deploy/grafana/weir.json", "../../../deploy/prometheus/alerts.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]bool{}
		for _, name := range regexp.MustCompile(`\b(weir|go|process)_[a-z_]+`).FindAllString(string(text), -1) {
			whole := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			asked[name] = true
			if !known[name] && !runtimes[whole] {
				t.Errorf("%s asks for %s, which is not exported", path, whole)
			}
		}
		for name := range known {
			if !asked[name] && strings.HasSuffix(path, ".json") {
				t.Errorf("%s does not show %s", path, name)
			}
		}
	}
}
