package operations

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// metrics are the series of the documentation, which weir's own tests hold to what
// the gate exports, with their labels.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	scraped := []string{"job", "instance"}
	known := map[string][]string{"up": scraped}
	for _, m := range regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\|").FindAllStringSubmatch(string(read(t, "../../docs/operations.md")), -1) {
		own := slices.DeleteFunc(append(slices.Clone(scraped), strings.Split(m[2], ",")...), func(l string) bool { return l == "" })
		if strings.HasSuffix(m[1], "_seconds") { // weir's histograms
			known[m[1]+"_count"], known[m[1]+"_sum"], known[m[1]+"_bucket"] = own, own, append(slices.Clone(own), "le")
			continue
		}
		known[m[1]] = own
	}
	if len(known) < 8 {
		t.Fatalf("the documentation lists only %v", known)
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} {
		known[name] = scraped // of the client library
	}
	return known
}

// check parses an expression and says what in it weir does not export.
func check(t *testing.T, what, expr string) (of []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return nil
	}
	known := metrics(t)
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := known[s.Name]
		if !ok {
			t.Errorf("%s asks for %s, which weir does not export", what, s.Name)
		}
		of = append(of, has...)
		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(has, m.Name) {
				t.Errorf("%s: %s has no label %s", what, s.Name, m.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, by := range a.Grouping {
				if !slices.Contains(of, by) {
					t.Errorf("%s: nothing has the label %s", what, by)
				}
			}
		}
		return nil
	})
	return of
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestDashboard(t *testing.T) {
	t.Parallel()
	raw := read(t, "../grafana/weir.json")
	plugins.RegisterDefaultPlugins() // panels and queries are checked as what they are
	var d dashboard.Dashboard
	// Read strictly, rows are errors without a word, and stay empty.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil && err.Error() != "" {
		t.Error(err)
	}
	expr := regexp.MustCompile(`"expr": "((?:[^"\\]|\\.)*)",\s*"legendFormat": "([^"]*)"`)
	found := expr.FindAllStringSubmatch(string(raw), -1)
	if len(found) < 20 || len(found) != strings.Count(string(raw), `"expr"`) {
		t.Fatalf("%d queries found", len(found))
	}
	for _, f := range found {
		// What Grafana fills in.
		q := strings.NewReplacer(`\"`, `"`, "$__rate_interval", "5m", "$job", "weir", "$instance", ".*").Replace(f[1])
		if strings.Contains(q, "$") {
			t.Errorf("%s: a variable that the dashboard does not have", q)
		}
		of := check(t, q, q)
		for _, l := range legendLabel.FindAllStringSubmatch(f[2], -1) {
			if !slices.Contains(of, l[1]) {
				t.Errorf("%s: the legend names %s, which it has not", q, l[1])
			}
		}
	}
	ids, free := map[uint32]bool{}, map[[2]uint32]string{}
	for _, p := range d.Panels {
		switch {
		case p.RowPanel != nil:
			ids[p.RowPanel.Id] = true
		case p.Panel != nil:
			at := *p.Panel.GridPos
			ids[*p.Panel.Id] = true
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other := free[[2]uint32{x, y}]; other != "" || x >= 24 {
						t.Errorf("%s lies on %s, or beside the page", *p.Panel.Title, other)
					}
					free[[2]uint32{x, y}] = *p.Panel.Title
				}
			}
		}
	}
	if len(ids) != len(d.Panels) {
		t.Error("two panels have one id")
	}
}

func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, "../prometheus/alerts.yaml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	if errs != nil {
		t.Fatal(errs)
	}
	out := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			out[r.Alert] = r
		}
	}
	return out
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	for name, r := range alerts(t) {
		of := check(t, name, r.Expr)
		if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Annotations["summary"] == "" {
			t.Errorf("%s: severity %q, summary %q", name, s, r.Annotations["summary"])
		}
		for _, text := range r.Annotations {
			for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if !slices.Contains(of, l[1]) {
					t.Errorf("%s names the label %s, which it has not", name, l[1])
				}
			}
		}
	}
}

// Each alert is pending in the situation that it is for, and in no other: the
// series of a calm gate make none.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	const calm = `load 30s
  weir_ready{job="weir",instance="a"} 1x60
  weir_ready{job="weir",instance="b"} 1x60
  weir_mode{job="weir",instance="a",mode="unratified"} 0x60
  weir_mode{job="weir",instance="a",mode="audit_only"} 0x60
  weir_request_seconds_count{job="weir",instance="a",method="POST",route="/v1/screenings",status="201"} 0+30x60
  weir_request_seconds_bucket{job="weir",instance="a",method="POST",route="/v1/screenings",status="201",le="0.1"} 0+30x60
  weir_request_seconds_bucket{job="weir",instance="a",method="POST",route="/v1/screenings",status="201",le="5"} 0+30x60
  weir_request_seconds_bucket{job="weir",instance="a",method="POST",route="/v1/screenings",status="201",le="+Inf"} 0+30x60
  weir_webhook_endpoint{job="weir",instance="a",endpoint="legal",state="enabled"} 1x60
  weir_webhook_endpoint{job="weir",instance="a",endpoint="legal",state="disabled"} 0x60
  weir_webhook_endpoint{job="weir",instance="a",endpoint="legal",state="cooling"} 0x60
  weir_webhook_deliveries{job="weir",instance="a",endpoint="legal",state="dead"} 0x60
  weir_witness_behind_entries{job="weir",instance="a",witness="w.example"} 0x60
  weir_hook_seconds_count{job="weir",instance="a",kind="Job",result="admitted"} 0+1x60
  weir_example_disagreements{job="weir",instance="a"} 0x60
`
	change := func(old, new string) string {
		if !strings.Contains(calm, old) {
			t.Fatalf("the calm gate has no %s", old)
		}
		return strings.Replace(calm, old, new, 1)
	}
	for name, tc := range map[string]struct {
		load string
		want []string
	}{
		"calm":                {calm, nil},
		"nothing is scraped":  {"load 30s\n  up{job=\"weir\"} 0x60\n", []string{"WeirNoGate"}},
		"one is not ready":    {change(`instance="b"} 1x60`, `instance="b"} 0x60`), []string{"WeirReplicaNotReady"}},
		"none is ready":       {change("weir_ready{job=\"weir\",instance=\"a\"} 1x60\n  weir_ready{job=\"weir\",instance=\"b\"} 1x60", "weir_ready{job=\"weir\",instance=\"a\"} 0x60\n  weir_ready{job=\"weir\",instance=\"b\"} 0x60"), []string{"WeirNoGate", "WeirReplicaNotReady"}},
		"one in ten fails":    {calm + `  weir_request_seconds_count{job="weir",instance="a",method="POST",route="/v1/screenings",status="503"} 0+3x60` + "\n", []string{"WeirFails"}},
		"only probes fail":    {calm + `  weir_request_seconds_count{job="weir",instance="a",method="GET",route="/readyz",status="503"} 0+90x60` + "\n", nil},
		"slow":                {change(`le="0.1"} 0+30x60`, `le="0.1"} 0+20x60`), []string{"WeirSlow"}},
		"weakened":            {change(`mode="audit_only"} 0x60`, `mode="audit_only"} 1x60`), []string{"WeirWeakened"}},
		"disabled":            {change(`state="disabled"} 0x60`, `state="disabled"} 1x60`), []string{"WeirEndpointDisabled"}},
		"cooling":             {change(`state="cooling"} 0x60`, `state="cooling"} 1x60`), []string{"WeirEndpointFails"}},
		"a witness is away":   {change(`witness="w.example"} 0x60`, `witness="w.example"} 5x150`), []string{"WeirWitnessBehind"}},
		"given up":            {change(`state="dead"} 0x60`, `state="dead"} 2x60`), []string{"WeirDeliveriesDead"}},
		"the hook is closed":  {calm + `  weir_hook_seconds_count{job="weir",instance="a",kind="Job",result="unavailable"} 0+1x60` + "\n", []string{"WeirHookUnavailable"}},
		"packs are disagreed": {change(`weir_example_disagreements{job="weir",instance="a"} 0x60`, `weir_example_disagreements{job="weir",instance="a"} 3x60`), []string{"WeirExamplesDisagree"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage := promqltest.LoadedStorage(t, tc.load)
			t.Cleanup(func() { _ = storage.Close() })
			engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
			var fired []string
			for alert, r := range alerts(t) {
				q, err := engine.NewInstantQuery(t.Context(), storage, nil, r.Expr, time.Unix(0, 0).Add(25*time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				got := q.Exec(t.Context())
				if vector, err := got.Vector(); err != nil {
					t.Errorf("%s: %v", alert, err)
				} else if len(vector) > 0 {
					fired = append(fired, alert)
				}
				q.Close()
			}
			slices.Sort(fired)
			if !slices.Equal(fired, tc.want) {
				t.Errorf("fired %v, want %v", fired, tc.want)
			}
		})
	}
}
