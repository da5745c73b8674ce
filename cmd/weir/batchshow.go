package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/cmd/weir/client"
	"weir/review"
)

// mostShown is how many specs the forms for people list one by one.
const mostShown = 200

// show writes the results in the order of the source, or for people the worst first.
func (b *batchRun) show(w io.Writer) error {
	switch b.output {
	case "json":
		return b.showJSON(w)
	case "junit":
		return b.showJUnit(w)
	case "sarif":
		return b.showSARIF(w)
	case "github":
		return b.showGitHub(w)
	}
	return b.showText(w)
}

// word is the outcome of a spec in a word, and its colour.
func (c *checked) word() (word, colour string) {
	switch {
	case c.Status != "":
		return headline(&client.Screening{Status: c.Status})
	case c.Code == exitNoAnswer:
		return "NO ANSWER", yellow
	case c.Code == exitEnded: // the gate says so instead of giving a screening
		return "EXPIRED", yellow
	case len(c.Problems) > 0:
		return "NOT VALID", red
	}
	return "REFUSED", red
}

// worst gives the results that have something to say, the worst first.
func (b *batchRun) worst() []checked {
	list := slices.DeleteFunc(slices.Clone(b.done), func(c checked) bool { return c.Status == review.StatusAdmitted })
	slices.SortStableFunc(list, func(x, y checked) int { return badness(x.Code) - badness(y.Code) })
	return list
}

// total is how many specs came to an outcome.
type total struct {
	word, colour string
	specs, code  int
}

func (b *batchRun) totals() (list []total) {
	for _, c := range b.done {
		word, colour := c.word()
		i := slices.IndexFunc(list, func(t total) bool { return t.word == word })
		if i < 0 {
			i, list = len(list), append(list, total{word: word, colour: colour, code: c.Code})
		}
		list[i].specs++
	}
	slices.SortStableFunc(list, func(x, y total) int { return badness(x.code) - badness(y.code) })
	return list
}

// says is the whole batch in a line.
func (b *batchRun) says() string {
	var parts []string
	for _, t := range b.totals() {
		parts = append(parts, fmt.Sprintf("%d %s", t.specs, strings.ToLower(t.word)))
	}
	return fmt.Sprintf("%s in %s: %s", count(len(b.done), "spec", "specs"), b.of, strings.Join(parts, ", "))
}

func (b *batchRun) showText(w io.Writer) error {
	p, out := paintFor(w), &lines{w: w}
	totals := b.totals()
	out.wrap(p.bold(totals[0].colour, totals[0].word)+"  ", "", b.says())
	if b.offline {
		out.put("  offline, as of %s; nothing was kept", b.results.head.AsOf)
	}
	if b.source.left > 0 {
		out.wrap("  ", "", count(b.source.left, "other file was", "other files were")+" left alone.")
	}
	out.put("")
	out.put("  OUTCOME       SPECS")
	for _, t := range totals {
		out.put("  %s%s%6d", p.bold(t.colour, t.word), strings.Repeat(" ", 13-len(t.word)), t.specs)
	}
	list := b.worst()
	if len(list) > 0 {
		out.put("")
		out.put("%s", p.bold(plain, "OUTCOME      SPEC, RUN, WHY"))
	}
	for i := range list[:min(len(list), mostShown)] {
		c := &list[i]
		word, colour := c.word()
		out.wrap(p.bold(colour, word)+strings.Repeat(" ", 13-len(word)), "             ", c.where())
		out.wrap("             ", "", c.Why)
	}
	if len(list) > mostShown {
		out.wrap("  ", "", fmt.Sprintf("and %d more; --output json lists all.", len(list)-mostShown))
	}
	return out.err
}

// showJSON writes the results one by one: they may be more than fit into memory.
func (b *batchRun) showJSON(w io.Writer) error {
	enc := jsontext.NewEncoder(w, jsontext.WithIndent("  "))
	counts := map[string]int{}
	for _, t := range b.totals() {
		counts[strings.ReplaceAll(strings.ToLower(t.word), " ", "_")] = t.specs
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range []struct {
		name  string
		value any
	}{{"of", b.of}, {"offline", b.offline}, {"specs", len(b.done)}, {"counts", counts}, {"exit_code", b.code()}} {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value, json.Deterministic(true)); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.String("results")); err != nil {
		return err
	}
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for i := range b.done {
		c := b.done[i]
		if c.Status != "" {
			whole, _, err := b.results.result(c.Path, c.SHA256)
			if err != nil {
				return err
			}
			c.Answer = whole.Answer
		}
		if err := json.MarshalEncode(enc, &c); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.EndArray); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

// reports gives every spec with its report, nil where nothing was decided. The
// specs are read once more for their lines; one that changed meanwhile has none.
func (b *batchRun) reports(each func(item *batchItem, c *checked, r *report)) error {
	packs := shelved(b.packs)
	var failed error
	n := 0
	err := b.source.again(func(item batchItem) {
		if failed != nil || n >= len(b.done) {
			return
		}
		c := &b.done[n]
		n++
		if c.Status == "" {
			each(&item, c, nil)
			return
		}
		whole, _, err := b.results.result(c.Path, c.SHA256)
		if err != nil {
			failed = err
			return
		}
		s, ok := readKept(whole)
		if !ok {
			failed = fmt.Errorf("the kept answer for %s cannot be read", c.Path)
			return
		}
		each(&item, c, newReport(s, source{file: item.file, raw: item.raw, above: max(item.line-1, 0), packs: packs}))
	})
	if failed != nil {
		return failed
	}
	if err == nil && n < len(b.done) {
		err = fmt.Errorf("%s lost specs while it was read", b.of)
	}
	return err
}

// readKept reads an answer that was kept: a gate's, or an offline one.
func readKept(c *checked) (*client.Screening, bool) {
	if c.ID != "" {
		s, err := client.ReadScreening(c.Answer)
		return s, err == nil
	}
	s := &client.Screening{}
	if json.Unmarshal(c.Answer, s) != nil || s.Decision == nil {
		return nil, false
	}
	s.Status, s.Raw = c.Status, c.Answer
	return s, true
}

func (b *batchRun) showJUnit(w io.Writer) error {
	all := &junitSuites{Name: printable("weir " + b.of)}
	if err := b.reports(func(_ *batchItem, c *checked, r *report) {
		if r != nil {
			all.add(r, printable(c.Path)+" ")
			return
		}
		suite := &junitSuite{Name: printable(c.Path) + " weir"}
		all.Suites = append(all.Suites, suite)
		word, _ := c.word()
		all.count(suite, junitCase{Class: "weir.weir", Name: "weir:outcome", Error: &junitResult{Message: word, Type: "undecided", Text: c.says()}})
	}); err != nil {
		return err
	}
	return all.write(w)
}

// where names the spec, and its run where that is known.
func (c *checked) where() string {
	if c.RunRef == "" {
		return c.Path
	}
	return c.Path + ", run " + c.RunRef
}

// says is why nothing was decided, in printable lines.
func (c *checked) says() string {
	if len(c.Problems) == 0 {
		return printable(c.Why)
	}
	var said []string
	for _, p := range c.Problems {
		said = append(said, printable(problemLine(p)))
	}
	return strings.Join(said, "\n")
}

// lineFor is where a reader should look in the file.
func (item *batchItem) lineFor(c *checked) int {
	if item.line == 0 && len(c.Problems) > 0 {
		return max(c.Problems[0].Line, 1)
	}
	return max(item.line, 1)
}

func (b *batchRun) showSARIF(w io.Writer) error {
	run := newSarifRun()
	run.Invocations[0].ExitCode = b.code()
	if err := b.reports(func(item *batchItem, c *checked, r *report) {
		if r != nil {
			run.add(r)
			return
		}
		run.Invocations[0].ExecutionSuccessful = false
		note := sarifNotification{Level: "error", Message: sarifMessage(strings.Split(c.says(), "\n")...)}
		note.Locations = []sarifLocation{{Physical: &sarifPhysical{sarifArtifact{fileURI(filepath.ToSlash(item.file))}, sarifRegion{StartLine: item.lineFor(c)}}}}
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, note)
	}); err != nil {
		return err
	}
	return run.write(w)
}

func (b *batchRun) showGitHub(w io.Writer) error {
	out := &lines{w: w}
	out.put("::notice title=weir::%s", githubData(printable(b.says())))
	if err := b.reports(func(item *batchItem, c *checked, r *report) {
		if r != nil {
			r.annotate(out)
			return
		}
		word, _ := c.word()
		out.put("::error file=%s,line=%d,title=%s::%s", githubProperty(printable(filepath.ToSlash(item.file))), item.lineFor(c),
			githubProperty("weir: "+strings.ToLower(word)), githubData(c.says()))
	}); err != nil {
		return err
	}
	githubSummarise(out, b.githubSummary())
	return out.err
}

func (b *batchRun) githubSummary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "### weir: %s\n\n| outcome | specs |\n|---|---|\n", markdown(b.says()))
	for _, t := range b.totals() {
		fmt.Fprintf(&text, "| %s | %d |\n", t.word, t.specs)
	}
	list := b.worst()
	if len(list) > 0 {
		text.WriteString("\n| outcome | spec | run | why |\n|---|---|---|---|\n")
	}
	for i := range list[:min(len(list), mostShown)] {
		c := &list[i]
		word, _ := c.word()
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", word, markdown(c.Path), markdown(c.RunRef), markdown(c.Why))
	}
	if len(list) > mostShown {
		fmt.Fprintf(&text, "\nAnd %d more.\n", len(list)-mostShown)
	}
	return text.String() + "\n"
}
