package screening

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackageIsPure: a decision depends on bytes, packs and day alone, so the
// package's own source reaches for nothing else.
func TestPackageIsPure(t *testing.T) {
	t.Parallel()
	forbidden := map[string]string{
		"os": "files and environment", "os/exec": "processes", "net": "network", "net/http": "network", "math/rand": "chance", "math/rand/v2": "chance",
		"crypto/rand": "chance", "log": "side effects", "log/slog": "side effects", "syscall": "the system", "unsafe": "memory",
		"github.com/jackc/pgx/v5": "the database is store's", "github.com/labstack/echo/v4": "the wire is cmd/weir's",
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			for bad, why := range forbidden {
				if path == bad || strings.HasPrefix(path, bad+"/") {
					t.Errorf("%s imports %s: %s", name, path, why)
				}
			}
			if strings.HasPrefix(path, "weir/") {
				t.Errorf("%s imports %s; screening stands alone", name, path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Tick", "Sleep", "NewTimer", "NewTicker", "Local"}, sel.Sel.Name) {
				t.Errorf("%s uses time.%s: the day is given", name, sel.Sel.Name)
			}
			return true
		})
	}
}
