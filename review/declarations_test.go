package review_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/screening"
)

const (
	declarations = "../testdata/declarations"
	shipped      = "../deploy/example"
)

func readFile(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loadPeople(t *testing.T, parts ...string) *review.People {
	t.Helper()
	p, err := review.LoadPeople("people.yaml", readFile(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every bad declaration is a file whose first line says what its message has to
// say; the message also names the file.
func TestDeclarationFiles(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(declarations)
	if err != nil {
		t.Fatal(err)
	}
	people := loadPeople(t, declarations, "working_people.yaml")
	count := map[string]int{}
	for _, entry := range entries {
		name := entry.Name()
		kind, rest, _ := strings.Cut(name, "_")
		count[kind]++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := readFile(t, declarations, name)
			var err error
			if strings.HasPrefix(rest, "people") {
				_, err = review.LoadPeople(name, data)
			} else {
				_, err = review.LoadPolicies(name, data, people)
			}
			if kind == "working" {
				if err != nil {
					t.Fatalf("does not load: %v", err)
				}
				return
			}
			firstLine, _, _ := strings.Cut(string(data), "\n")
			want, ok := strings.CutPrefix(firstLine, "# want: ")
			if kind != "busted" || !ok || want == "" {
				t.Fatal(`a fixture is named working_… or busted_…, and the first line of the latter is "# want: " and a part of the message`)
			}
			var invalid *screening.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want an InvalidError with %q and the file's name", err, want)
			}
		})
	}
	if count["busted"] < 50 || count["working"] < 4 {
		t.Errorf("found %d busted and %d working declarations", count["busted"], count["working"])
	}
}

func TestShippedExampleIsValid(t *testing.T) {
	t.Parallel()
	people := loadPeople(t, shipped, "people.yaml")
	policies, err := review.LoadPolicies("policies.yaml", readFile(t, shipped, "policies.yaml"), people)
	if err != nil {
		t.Fatal(err)
	}
	if len(policies.Endpoints()) == 0 {
		t.Error("the example tells nobody of an escalation")
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	p := loadPeople(t, declarations, "working_people.yaml")
	for name, want := range map[string]string{"ana": "ana", "ana@corp.example": "ana", "ana.b": "ana", "https://idp.example|00u2": "ana", "bo": "bo",
		"airflow-prod": "", "Ana": "", "ana ": "", "": "", "legal": "", "mallory": ""} {
		if id, ok := p.Person(name); id != want || ok != (want != "") {
			t.Errorf("person %q: %q, %t, want %q", name, id, ok, want)
		}
	}
	for name, want := range map[string]string{"ana.b": "ana", "bo": "bo", "airflow-prod": "airflow-prod"} {
		if id, ok := p.Subject(name); id != want || !ok {
			t.Errorf("subject %q: %q, %t, want %q", name, id, ok, want)
		}
	}
	for _, name := range []string{"", "mallory", "Bo", "legal"} {
		if id, ok := p.Subject(name); ok {
			t.Errorf("subject %q is %q, want nobody", name, id)
		}
	}
	for _, c := range []struct{ issuer, sub, want string }{
		{"https://idp.example", "00u1", "ana"},
		{"https://idp.example", "00u2", "ana"},
		{"https://k8s.example", "system:serviceaccount:airflow:worker", "airflow-prod"},
		{"https://idp.example", "client|7", "airflow-prod"},
		{"https://idp.example/", "00u1", ""}, {"https://IDP.example", "00u1", ""}, {"https://idp.example", "00U1", ""},
		{"https://k8s.example", "00u1", ""}, {"https://idp.example|client", "7", "airflow-prod"}, // one text; no issuer has a |
		{"ana", "", ""}, {"", "ana", ""}, {"ana@corp.example", "", ""}, {"", "", ""},
	} {
		if id, ok := p.OfToken(c.issuer, c.sub); id != c.want || ok != (c.want != "") {
			t.Errorf("token of %s for %s: %q, %t, want %q", c.issuer, c.sub, id, ok, c.want)
		}
	}
	if !p.IsService("argo") || p.IsService("ana") || p.IsService("") {
		t.Error("services are mixed up")
	}
	if diff := cmp.Diff([]string{"bo", "ana"}, p.Members("legal")); diff != "" {
		t.Errorf("members (-want +got)\n%s", diff)
	}
	if got := p.Members("nobody"); got != nil {
		t.Errorf("members of an unknown group: %v, want nobody", got)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	p, err := review.LoadPolicies("policies.yaml", readFile(t, declarations, "working_policies.yaml"), loadPeople(t, declarations, "working_people.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []review.Endpoint{
		{ID: "one", URL: "https://one.example/hook", SecretFile: "one.secret", Timeout: review.Duration(5 * time.Second)},
		{ID: "two", URL: "http://10.0.0.2/hook", SecretEnv: "TWO", AllowHTTP: true, AllowPrivate: true},
	}
	if diff := cmp.Diff(want, p.Endpoints()); diff != "" {
		t.Errorf("endpoints (-want +got)\n%s", diff)
	}
}
