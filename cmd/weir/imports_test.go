package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rule is one row of the import table: what a package may import of weir, and
// what it must never import of others. Patterns that end in /... cover a tree.
type rule struct {
	pkg   string
	weir  []string // of weir's own packages, directly or through others; nil = none
	never []string // direct imports
	why   string
}

const (
	pgxTree     = "github.com/jackc/pgx/..."
	migrateTree = "github.com/golang-migrate/migrate/..."
	echoTree    = "github.com/labstack/echo/..."
)

// importTable is checked for every package, first match first; a package
// without a row fails.
var importTable = []rule{
	{pkg: "weir/screening", never: []string{pgxTree, migrateTree, echoTree, "os", "os/...", "net", "net/...", "database/sql", "math/rand", "math/rand/v2", "crypto/rand"},
		why: "deciding is pure: the same bytes, packs and day give the same decision, on any machine"},
	{pkg: "weir/screening/packs", never: []string{pgxTree, echoTree},
		why: "the shipped packs are data, and whoever reads them chooses how"},
	{pkg: "weir/screening/formats", weir: []string{"weir/screening"}, never: []string{pgxTree, echoTree},
		why: "an importer makes specs and nothing else"},
	{pkg: "weir/webhooks", never: []string{pgxTree, migrateTree, echoTree},
		why: "delivery declares the outbox it needs, so that it can be tested without a database"},
	{pkg: "weir/webhooks/witness", weir: []string{"weir/webhooks", "weir/store/ledger"}, never: []string{pgxTree, migrateTree, echoTree},
		why: "witnesses are asked as receivers are sent to; it declares the log it needs, so that it can be tested without a database"},
	{pkg: "weir/webhooks/witness/witnesstest", never: []string{pgxTree, migrateTree, echoTree},
		why: "a witness for tests that agrees with nothing of weir's"},
	{pkg: "weir/store/ledger", never: []string{pgxTree, migrateTree, echoTree, "net", "net/http"},
		why: "an auditor verifies with it, offline and without a database"},
	{pkg: "weir/migrations", never: []string{pgxTree, migrateTree, echoTree},
		why: "the schema is data; package store applies it"},
	{pkg: "weir/review", weir: []string{"weir/screening"}, never: []string{pgxTree, migrateTree, echoTree, "net/http"},
		why: "who may do what must not depend on how it is asked or where it is kept"},
	{pkg: "weir/review/reviewtest", weir: []string{"weir/screening", "weir/review"}, never: []string{pgxTree, echoTree},
		why: "for tests of packages that have a desk; it knows no store"},
	{pkg: "weir/store", weir: []string{"weir/screening", "weir/review", "weir/webhooks", "weir/store/ledger", "weir/migrations"}, never: []string{echoTree},
		why: "keeping is below serving"},
	{pkg: "weir/store/localpg", never: []string{migrateTree, echoTree},
		why: "the launcher starts a server and knows nothing of what is kept in it"},
	{pkg: "weir/store/storetest", weir: []string{"weir/store/localpg", "weir/migrations"}, never: []string{echoTree},
		why: "tests of package store use it, so it must not use package store"},
	{pkg: "weir/cmd/weir/openapi", never: []string{pgxTree, migrateTree, echoTree},
		why: "it describes types that its callers bring, and serves nothing"},
	{pkg: "weir/cmd/weir/openapi/openapitest", never: []string{pgxTree, migrateTree, echoTree},
		why: "for tests of packages with handlers; it holds their answers against a document"},
	{pkg: "weir/cmd/weir/client", weir: []string{"weir/screening", "weir/review"}, never: []string{pgxTree, migrateTree, echoTree},
		why: "it knows of a gate what the gate says"},
	{pkg: "weir/cmd/weir/api", weir: []string{"weir/screening", "weir/review", "weir/webhooks", "weir/store/ledger", "weir/docs/schemas", "weir/cmd/weir/openapi"}, never: []string{pgxTree, migrateTree},
		why: "a handler that can reach SQL will"},
	{pkg: "weir/cmd/weir/console", weir: []string{"weir/screening", "weir/review", "weir/webhooks"}, never: []string{pgxTree, migrateTree},
		why: "a page that can reach SQL will"},
	{pkg: "weir/cmd/weir/access", weir: []string{"weir/screening", "weir/review", "weir/cmd/weir/certificate"}, never: []string{pgxTree, migrateTree, echoTree},
		why: "whom a token speaks for hangs on what is declared and on its issuer, not on what is kept or how it is asked"},
	{pkg: "weir/cmd/weir/access/accesstest", never: []string{pgxTree, echoTree},
		why: "an identity provider knows nothing of weir"},
	{pkg: "weir/cmd/weir/certificate", never: []string{pgxTree, migrateTree, echoTree},
		why: "who a server is hangs on its files alone"},
	{pkg: "weir/cmd/weir/kubernetes", weir: []string{"weir/cmd/weir/certificate", "weir/screening", "weir/review", "weir/cmd/weir/openapi"}, never: []string{pgxTree, migrateTree, echoTree, "k8s.io/...", "sigs.k8s.io/..."},
		why: "a hook asks the desk and nothing else, neither the database nor the API server, whose types it reads a dozen fields of"},
	{pkg: "weir/cmd/weir", weir: []string{"weir/..."}, never: []string{pgxTree, migrateTree},
		why: "the one place that wires things together; SQL stays in package store"},
	{pkg: "weir/docs/schemas", never: []string{pgxTree, echoTree},
		why: "the published schemas are data, and whoever reads them chooses how"},
	{pkg: "weir/docs/schemas/schematest", never: []string{pgxTree, echoTree},
		why: "compares a schema with a type that its caller brings"},
	{pkg: "weir/deploy/...", why: "examples are for people who have nothing of weir but its documentation"},
	{pkg: "weir/bench/...", weir: []string{"weir/..."}, why: "measures whatever it likes"},
}

// onlyIn are imports that have one home (direct, non-test).
var onlyIn = []struct {
	what  string
	homes []string
	why   string
}{
	{pgxTree, []string{"weir/store", "weir/store/localpg", "weir/store/storetest"}, "one place turns database errors into the domain's"},
	{migrateTree, []string{"weir/store"}, "its locks and dirty marks need care that is taken once"},
	{echoTree, []string{"weir/cmd/weir/api", "weir/cmd/weir/console"}, "the rest of the program does not know that it is asked over HTTP"},
	{"testing", []string{"weir/store/storetest", "weir/review/reviewtest", "weir/cmd/weir/access/accesstest", "weir/webhooks/witness/witnesstest"}, "test helpers do not belong in the program"},
}

// listed is what go list tells of a package: its non-test imports.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps", "weir/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec, seen := json.NewDecoder(strings.NewReader(string(out))), 0
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if covers("weir/...", p.ImportPath) {
			seen++
			for _, fault := range importFaults(p) {
				t.Error(fault)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages of weir were listed", seen)
	}
}

func importFaults(p listed) (faults []string) {
	i := slices.IndexFunc(importTable, func(r rule) bool { return covers(r.pkg, p.ImportPath) })
	if i < 0 {
		return []string{p.ImportPath + " has no row in the import table"}
	}
	r := importTable[i]
	for _, dep := range p.Deps {
		if covers("weir/...", dep) && !slices.ContainsFunc(r.weir, func(pattern string) bool { return covers(pattern, dep) }) {
			faults = append(faults, p.ImportPath+" depends on "+dep+": "+r.why)
		}
	}
	for _, imp := range p.Imports {
		if slices.ContainsFunc(r.never, func(pattern string) bool { return covers(pattern, imp) }) {
			faults = append(faults, p.ImportPath+" imports "+imp+": "+r.why)
		}
		for _, o := range onlyIn {
			if covers(o.what, imp) && !slices.Contains(o.homes, p.ImportPath) {
				faults = append(faults, p.ImportPath+" imports "+imp+": "+o.why)
			}
		}
	}
	return faults
}

// covers reports whether a pattern names a package: itself, or with /... its tree.
func covers(pattern, pkg string) bool {
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return pattern == pkg || isTree && (pkg == tree || strings.HasPrefix(pkg, tree+"/"))
}

const (
	importsBegin = "<!-- imports: written by go test ./cmd/weir -run ImportsPage -update -->\n"
	importsEnd   = "<!-- end of imports -->\n"
)

// The page shows the import table, but for the helpers of tests.
func TestImportsPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/architecture.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), importsBegin)
	table, after, ended := strings.Cut(rest, importsEnd)
	if !found || !ended {
		t.Fatalf("markers %t %t", found, ended)
	}
	own := strings.NewReplacer(" weir/...", " all", " weir/", " ", "/...", "")
	others := strings.NewReplacer(pgxTree, "pgx", migrateTree, "migrate", echoTree, "echo", "/...", "")
	var b strings.Builder
	b.WriteString("| package | imports of weir | never |\n|---|---|---|\n")
	for _, r := range importTable {
		if strings.HasSuffix(r.pkg, "test") {
			continue
		}
		weir, never := " nothing", make([]string, 0, len(r.never))
		if r.weir != nil {
			weir = " " + strings.Join(r.weir, ", ")
		}
		for _, pattern := range r.never {
			if name := others.Replace(pattern); !slices.Contains(never, name) {
				never = append(never, name)
			}
		}
		b.WriteString(own.Replace("| " + r.pkg + " |" + weir + " | " + strings.Join(never, ", ") + " |\n"))
	}
	if *update {
		table = b.String()
		if err := os.WriteFile(path, []byte(before+importsBegin+table+importsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(b.String(), table); diff != "" {
		t.Errorf("docs/architecture.md is stale; run this test with -update:\n%s", diff)
	}
}

// The checker itself notices what it is there for.
func TestImportFaults(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]listed{
		"SQL in a handler":           {ImportPath: "weir/cmd/weir/api", Imports: []string{"github.com/jackc/pgx/v5"}},
		"SQL in main":                {ImportPath: "weir/cmd/weir", Imports: []string{"github.com/jackc/pgx/v5/pgxpool"}},
		"the network in a decision":  {ImportPath: "weir/screening", Imports: []string{"net/http"}},
		"chance in a decision":       {ImportPath: "weir/screening", Imports: []string{"math/rand/v2"}},
		"a store in the desk":        {ImportPath: "weir/review", Deps: []string{"weir/store"}},
		"a store behind the handler": {ImportPath: "weir/cmd/weir/api", Deps: []string{"weir/store"}},
		"echo below":                 {ImportPath: "weir/review", Imports: []string{"github.com/labstack/echo/v4"}},
		"a package without a row":    {ImportPath: "weir/util"},
		"testing in the program":     {ImportPath: "weir/store", Imports: []string{"testing"}},
	} {
		if len(importFaults(p)) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
	if faults := importFaults(listed{ImportPath: "weir/cmd/weir/api", Imports: []string{"github.com/labstack/echo/v4", "net/http"}, Deps: []string{"weir/review", "os"}}); faults != nil {
		t.Errorf("a good one: %v", faults)
	}
}
