package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"weir/screening"
)

// JUnit XML as the common readers take it: a suite per pack, a case per term.
type (
	junitSuites struct {
		XMLName  xml.Name      `xml:"testsuites"`
		Name     string        `xml:"name,attr"`
		Tests    int           `xml:"tests,attr"`
		Failures int           `xml:"failures,attr"`
		Errors   int           `xml:"errors,attr"`
		Skipped  int           `xml:"skipped,attr"`
		Suites   []*junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		File    string       `xml:"file,attr,omitempty"`
		Line    int          `xml:"line,attr,omitempty"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"` // it was not decided
		Skipped *junitResult `xml:"skipped"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

func (r *report) junit(w io.Writer) error {
	all := &junitSuites{Name: printable("weir " + r.RunRef)}
	all.add(r, "")
	return all.write(w)
}

// add adds a suite per pack, under names that begin with before. It fails what
// stands against the run, skips what did not decide, and passes the rest. All text
// is made printable first: XML has no form for most controls.
func (all *junitSuites) add(r *report, before string) {
	var suite *junitSuite
	for _, x := range r.all() {
		if name := before + x.Pack; suite == nil || suite.Name != name {
			suite = &junitSuite{Name: name}
			all.Suites = append(all.Suites, suite)
		}
		all.count(suite, r.junitCase(&x))
	}
}

func (all *junitSuites) count(suite *junitSuite, c junitCase) {
	suite.Cases = append(suite.Cases, c)
	for _, n := range []struct {
		counter, total *int
		counts         bool
	}{{&suite.Tests, &all.Tests, true}, {&suite.Failures, &all.Failures, c.Failure != nil}, {&suite.Errors, &all.Errors, c.Error != nil},
		{&suite.Skipped, &all.Skipped, c.Skipped != nil}} {
		if n.counts {
			*n.counter++
			*n.total++
		}
	}
}

func (all *junitSuites) write(w io.Writer) error {
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}

func (r *report) junitCase(x *reported) junitCase {
	c := junitCase{Class: "weir." + x.Pack, Name: printable(x.Term)}
	said := strings.Join(x.says(), "\n")
	switch {
	case x.weight >= warning:
		_, c.Line = x.place()
		if c.File = printable(r.fileName()); c.File == "" {
			c.Line = 0
		}
		kind := "outcome"
		if x.Effect != 0 {
			kind = x.Effect.String()
		}
		c.Failure = &junitResult{Message: printable(x.Title), Type: kind, Text: said}
	case x.weight == note:
		c.Out = said
	case x.State != screening.Upheld:
		c.Skipped = &junitResult{Message: printable(strings.ReplaceAll(string(x.State), "_", " ") + ", did not decide: " + x.Reason)}
	}
	return c
}
