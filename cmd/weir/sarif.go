package main

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"weir/screening"
)

// The part of SARIF 2.1.0 (OASIS) that weir writes.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`

		rules map[string]int // index by term
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"` // of the engine
		Rules   []sarifRule `json:"rules"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
		ExitCode            int  `json:"exitCode"`

		Notifications []sarifNotification `json:"toolExecutionNotifications,omitzero"` // what was not decided, and why
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitzero"`
	}
	sarifRule struct {
		ID                   string          `json:"id"`
		ShortDescription     sarifText       `json:"shortDescription"`
		FullDescription      *sarifText      `json:"fullDescription,omitzero"`
		Help                 *sarifText      `json:"help,omitzero"`
		DefaultConfiguration sarifLevel      `json:"defaultConfiguration"`
		Properties           sarifProperties `json:"properties"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifProperties struct {
		Tags             []string `json:"tags"`
		SecuritySeverity string   `json:"security-severity,omitzero"` // how code scanning ranks it
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		Related   []sarifLocation `json:"relatedLocations,omitzero"` // places beyond the first
	}
	sarifLocation struct {
		ID       int            `json:"id,omitzero"`
		Physical *sarifPhysical `json:"physicalLocation,omitzero"`
		Logical  []sarifLogical `json:"logicalLocations,omitzero"`
		Message  *sarifText     `json:"message,omitzero"` // what stands there
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn,omitzero"` // the columns of a phrase, where they are known
		EndLine     int        `json:"endLine,omitzero"`
		EndColumn   int        `json:"endColumn,omitzero"`
		Snippet     *sarifText `json:"snippet,omitzero"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"` // the pointer
	}
)

// severityLevels maps a term's severity to the level of its rule and to the
// number by which code scanning sorts.
var severityLevels = map[string]struct{ level, score string }{
	"critical": {"error", "9.5"},
	"high":     {"error", "8.0"},
	"medium":   {"warning", "5.5"},
	"low":      {"note", "2.0"},
}

func (r *report) sarif(w io.Writer) error {
	run := newSarifRun()
	run.Invocations[0].ExitCode = exitCode(r.Status)
	run.add(r)
	return run.write(w)
}

func newSarifRun() *sarifRun {
	return &sarifRun{Tool: sarifTool{sarifDriver{Name: "weir", Version: screening.EngineVersion}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}}, Results: []sarifResult{}, ColumnKind: "unicodeCodePoints", rules: map[string]int{}}
}

func (run *sarifRun) write(w io.Writer) error {
	return writeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{*run}})
}

// add adds the results of a spec, and the rules that no spec before had.
func (run *sarifRun) add(r *report) {
	rules := run.rules
	for _, x := range r.all() {
		if _, known := rules[x.Term]; !known {
			rules[x.Term] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, x.sarifRule())
		}
	}
	for _, x := range r.standing() {
		level := map[weight]string{note: "note", warning: "warning", failure: "error"}[x.weight]
		result := sarifResult{x.Term, rules[x.Term], level, sarifMessage(append([]string{x.Title}, x.says()...)...), []sarifLocation{r.sarifFirst(&x)}, nil}
		for i := 1; i < len(x.Places); i++ {
			at := r.sarifLocation(x.Places[i])
			at.ID = i
			result.Related = append(result.Related, at)
		}
		run.Results = append(run.Results, result)
	}
}

func (x *reported) sarifRule() sarifRule {
	rule := sarifRule{ID: x.Term, ShortDescription: sarifText{printable(x.Title)}, DefaultConfiguration: sarifLevel{"warning"},
		Properties: sarifProperties{Tags: []string{"weir", x.Pack}}}
	if s, ok := severityLevels[x.Severity]; ok {
		rule.DefaultConfiguration.Level, rule.Properties.SecuritySeverity = s.level, s.score
		rule.Properties.Tags = append(rule.Properties.Tags, "security") // without it the score is not looked at
	}
	if x.description != "" {
		rule.FullDescription = &sarifText{printable(x.description)}
	}
	var help []string
	if x.description != "" {
		help = append(help, printable(x.description))
	}
	if x.Remedy != "" {
		help = append(help, printable("What passes: "+x.Remedy))
	}
	for _, ref := range x.references {
		help = append(help, printable(referenceText(ref)))
	}
	if len(help) > 0 {
		rule.Help = &sarifText{strings.Join(help, "\n")}
	}
	return rule
}

// sarifBrackets keeps text from reading as a link, [text](target), in a message.
var sarifBrackets = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`)

func sarifMessage(said ...string) sarifText {
	for i, s := range said {
		said[i] = sarifBrackets.Replace(printable(s))
	}
	return sarifText{strings.Join(said, "\n")}
}

// sarifFirst is where a reader should look first.
func (r *report) sarifFirst(x *reported) sarifLocation {
	if len(x.Places) > 0 {
		return r.sarifLocation(x.Places[0])
	}
	pointer, line := x.place()
	return r.sarifLocation(reportedPlace{Pointer: pointer, Line: line})
}

// sarifLocation is the phrase or the line in the spec; where it is not known, the
// first one.
func (r *report) sarifLocation(place reportedPlace) (at sarifLocation) {
	if name := r.fileName(); name != "" {
		to := sarifRegion{StartLine: max(place.Line, 1)}
		if p := place.region; p != nil {
			to = sarifRegion{p.startLine, p.startColumn, p.endLine, p.endColumn, &sarifText{p.snippet()}}
		}
		at.Physical = &sarifPhysical{sarifArtifact{fileURI(name)}, to}
	}
	if place.Pointer != "" || at.Physical == nil {
		at.Logical = []sarifLogical{{printable(place.Pointer)}}
	}
	if place.Name != "" {
		said := sarifMessage(printable(place.Name + " = " + place.Value))
		at.Message = &said
	}
	return at
}

// fileName is the file that was screened, with slashes, "" when there is none.
func (from source) fileName() string {
	if from.file == "-" {
		return ""
	}
	return filepath.ToSlash(from.file)
}

// fileURI makes a reference of a path: relative as it is, absolute as a file's.
func fileURI(path string) string {
	u := url.URL{Path: path}
	if strings.HasPrefix(path, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

func referenceText(r screening.Reference) string {
	return r.Relation + ": " + strings.TrimSpace(r.Scheme+" "+r.Version) + " " + r.ID
}
