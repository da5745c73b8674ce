package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest    = regexp.MustCompile("`[^`]*\\bgo test ([^`]+)`")
	argument  = regexp.MustCompile(`'([^']*)'|(\S+)`)
	testNames = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
)

// Every go test command of the acceptance page and the decisions runs something: each
// alternative of its pattern matches a test in one of its packages, and each of its
// packages has a test that the pattern matches.
func TestPatternsOfThePagesMatch(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d decisions, %v", len(pages), err)
	}
	seen := 0
	for _, page := range append(pages, "../../docs/acceptance.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goTest.FindAllStringSubmatch(string(data), -1) {
			command := strings.ReplaceAll(m[1], `\|`, "|") // a table's
			seen++
			for _, fault := range patternFaults(t, command) {
				t.Errorf("%s: go test %s: %s", filepath.Base(page), command, fault)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands were found", seen)
	}
	for _, wrong := range []string{"-run NoSuchTest ./screening", "-run 'Conformance|NoSuchTest' ./screening", "-run Conformance ./screening ./store/localpg", "-bench NoSuch ./store", "-run Fold ./nowhere"} {
		if patternFaults(t, wrong) == nil {
			t.Errorf("go test %s is not noticed", wrong)
		}
	}
}

// patternFaults gives what is wrong with the patterns and packages of a go test command.
func patternFaults(t *testing.T, command string) (faults []string) {
	t.Helper()
	var patterns, packages []string
	args := argument.FindAllStringSubmatch(command, -1)
	for i := 0; i < len(args); i++ {
		arg := args[i][1] + args[i][2]
		switch {
		case strings.HasPrefix(arg, "./"):
			packages = append(packages, arg)
		case strings.HasPrefix(arg, "-") && i+1 < len(args):
			i++ // the flag's value
			if value := args[i][1] + args[i][2]; (arg == "-run" || arg == "-bench" || arg == "-fuzz") && value != "^$" && value != "-" {
				patterns = append(patterns, value)
			}
		}
	}
	names := map[string][]string{}
	for _, pkg := range packages {
		if names[pkg] = testsOf(t, pkg); len(names[pkg]) == 0 {
			faults = append(faults, pkg+" has no tests")
		}
	}
	for _, pattern := range patterns {
		matched := map[string]bool{}
		for _, one := range alternatives(pattern) {
			re, err := regexp.Compile(one)
			if err != nil {
				return append(faults, err.Error())
			}
			any := false
			for pkg, tests := range names {
				for _, name := range tests {
					if re.MatchString(name) {
						any, matched[pkg] = true, true
					}
				}
			}
			if !any {
				faults = append(faults, one+" matches no test")
			}
		}
		for pkg := range names {
			if !matched[pkg] {
				faults = append(faults, pkg+" has no test for "+pattern)
			}
		}
	}
	return faults
}

// alternatives splits a pattern at the bars that are in no parentheses.
func alternatives(pattern string) (all []string) {
	depth, from := 0, 0
	for i, c := range pattern {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				all, from = append(all, pattern[from:i]), i+1
			}
		}
	}
	return append(all, pattern[from:])
}

// testsOf gives the names of the tests in a package, or in a tree if it ends in /... .
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	dir, tree := strings.CutSuffix(pkg, "/...")
	root := filepath.Join("../..", dir)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && !tree:
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range testNames.FindAllStringSubmatch(string(data), -1) {
				names = append(names, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Log(err)
	}
	return names
}
