// Command bench compares weir with the engines and matchers that others use for
// the same work, on one core, and writes what it measured to docs/performance.md.
// It is a module of its own, so that what it compares with is no dependency of
// weir. Hyperscan is compared if its library is installed (Debian: libhyperscan5).
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	page := flag.String("page", "../docs/performance.md", "page whose measured part is replaced; empty = only print")
	only := flag.String("only", "", "decide or match; empty = both")
	flag.Parse()
	if err := run(*page, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(page, only string) error {
	runtime.GOMAXPROCS(1)
	var rep report
	if only != "match" {
		if err := comparePolicies(&rep); err != nil {
			return err
		}
	}
	if only != "decide" {
		if err := compareMatchers(&rep); err != nil {
			return err
		}
	}
	measured := rep.markdown(time.Now())
	fmt.Print(measured)
	if page == "" || only != "" {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := replaceMeasured(string(old), measured)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}
