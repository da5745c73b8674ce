package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// github writes workflow commands of GitHub Actions, which put findings beside
// the lines of the spec, and a summary of the job where the runner asks for one.
func (r *report) github(w io.Writer) error {
	out := &lines{w: w}
	word, _ := headline(r.Screening)
	out.put("::notice title=weir::%s", githubData(printable(word+"  "+r.RunRef+": "+summary(r.Screening))))
	r.annotate(out)
	githubSummarise(out, r.githubSummary())
	return out.err
}

// annotate puts what decided beside the lines of the spec.
func (r *report) annotate(out *lines) {
	for _, x := range r.standing() {
		command := map[weight]string{note: "notice", warning: "warning", failure: "error"}[x.weight]
		where := ""
		if name := r.fileName(); name != "" {
			_, line := x.place()
			where = fmt.Sprintf("file=%s,line=%d,", githubProperty(printable(name)), max(line, 1))
		}
		out.put("::%s %stitle=%s::%s", command, where, githubProperty(x.heading()), githubData(strings.Join(x.says(), "\n")))
	}
}

// githubSummarise adds to the summary of the job, where the runner asks for one.
func githubSummarise(out *lines, text string) {
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := appendFile(path, text); err != nil { // the outcome stands without it
			out.put("::warning title=weir::%s", githubData(printable("the job summary could not be written: "+err.Error())))
		}
	}
}

var (
	githubDataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubPropertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func githubData(s string) string     { return githubDataEscapes.Replace(s) }
func githubProperty(s string) string { return githubPropertyEscapes.Replace(s) }

func (r *report) githubSummary() string {
	var b strings.Builder
	word, _ := headline(r.Screening)
	fmt.Fprintf(&b, "### weir: %s %s\n\n%s\n\n", markdown(word), markdown(r.RunRef), markdown(summary(r.Screening)))
	if list := r.standing(); len(list) > 0 {
		b.WriteString("| finding | effect | where | why | what passes |\n|---|---|---|---|---|\n")
		for _, x := range list {
			effect := ""
			if x.Effect != 0 {
				effect = x.Effect.String()
			}
			var where []string
			for _, at := range x.Places {
				where = append(where, markdown(at.says()))
			}
			if pointer, line := x.place(); len(where) == 0 {
				where = []string{markdown(pointer + inLine(line))}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", markdown(x.heading()), effect,
				strings.Join(where, "<br>"), markdown(x.Reason), markdown(strings.TrimPrefix(strings.Join(x.advice(), "; "), "Passes: ")))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}
