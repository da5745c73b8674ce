package screening

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

// Bundle is a pack with its cases and, once ratified, its report.
type Bundle struct {
	Pack   *Pack
	Cases  *Cases
	Report *Report // nil when there is none
	Bases  []*Pack // the packs that a profile extends; see Pack.Bases
	// Regression is what Ratify compares the pack with; nil = not run.
	Regression *Regression
}

// Report says that a pack passed its gates. The pack carries the report's
// digest, the report the digests of pack and cases: none can change alone.
type Report struct {
	Schema         string    `json:"schema"`
	PackID         string    `json:"pack_id"`
	PackSHA256     Digest256 `json:"pack_sha256"`
	CasesSHA256    Digest256 `json:"cases_sha256"`
	AsOf           Day       `json:"as_of"`
	Engine         string    `json:"engine"`
	Ratified       bool      `json:"ratified"`
	FailureReasons []string  `json:"failure_reasons"`
	Gates          []Gate    `json:"gates"`
	SHA256         string    `json:"report_sha256"`

	raw []byte // as read; the seal is over all of it, known keys or not
}

// ReportSchema is the value of a report's schema key.
const ReportSchema = "weir/report/v1"

// Gate is one test that a pack has to pass, with what was measured.
type Gate struct {
	Name      string `json:"name"`
	Passed    bool   `json:"passed"`
	Measured  int    `json:"measured"`
	Threshold int    `json:"threshold"`
	Detail    string `json:"detail"`
}

// NotInForceError lists why a pack may not be used.
type NotInForceError struct {
	Pack    string
	Reasons []string
}

func (e *NotInForceError) Error() string {
	return fmt.Sprintf("pack %s is not in force: %s; check it with weir pack test and ratify it with weir pack ratify",
		e.Pack, strings.Join(e.Reasons, "; "))
}

// LoadReport reads a ratification report.
func LoadReport(name string, data []byte) (*Report, error) {
	doc, err := parseDocument("report", name, data)
	if err != nil {
		return nil, err
	}
	r := &Report{raw: doc.json}
	if err := doc.decode(r); err != nil {
		return nil, err
	}
	if r.Schema != ReportSchema {
		return nil, problems{{Pointer: "/schema", Detail: fmt.Sprintf("must be %q", ReportSchema)}}.invalid("report", name, doc)
	}
	return r, nil
}

// Ratify runs the gates. The report is complete and sealed also when a gate
// fails; Ratified then is false.
func (b *Bundle) Ratify(reg *Registry, floor *Pack, asOf Day) (*Report, error) {
	gates, err := b.runGates(reg, floor, asOf)
	if err != nil {
		return nil, err
	}
	regression, err := b.regression(reg, floor)
	if err != nil {
		return nil, err
	}
	gates = append(gates, regression)
	r := &Report{Schema: ReportSchema, PackID: b.Pack.ID, PackSHA256: b.Pack.SHA256, CasesSHA256: b.Cases.SHA256,
		AsOf: asOf, Engine: EngineVersion, Ratified: true, FailureReasons: []string{}, Gates: gates}
	for _, g := range gates {
		if !g.Passed {
			r.Ratified = false
			r.FailureReasons = append(r.FailureReasons, g.Name+": "+g.Detail)
		}
	}
	if r.raw, err = json.Marshal(r); err != nil {
		return nil, err
	}
	seal, err := reportSeal(r.raw)
	if err != nil {
		return nil, err
	}
	r.SHA256 = seal.String()
	r.raw, err = json.Marshal(r)
	return r, err
}

// MarshalReport gives the report as it is written beside the pack.
func MarshalReport(r *Report) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(r)
	return out.Bytes(), err
}

var floatPattern = regexp.MustCompile(`[.eE]`)

// reportSeal is the SHA-256 of the report as JSON with sorted keys, no spaces,
// non-ASCII kept, no floats, and an empty report_sha256.
func reportSeal(raw []byte) (Digest256, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var report map[string]any
	if err := dec.Decode(&report); err != nil {
		return Digest256{}, fmt.Errorf("report: %w", err)
	}
	if hasFloat(report) {
		return Digest256{}, errors.New("report: holds a number that is not whole")
	}
	report["report_sha256"] = ""
	plain, err := json.Marshal(report)
	if err != nil {
		return Digest256{}, err
	}
	canonical, err := Canonical(plain)
	return Sum(canonical), err
}

func hasFloat(v any) bool {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64() // beyond 2^53 the canonical form would write another number
		return err != nil || floatPattern.MatchString(v.String()) || n > maxExactInteger || n < -maxExactInteger
	case map[string]any:
		for _, x := range v {
			if hasFloat(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasFloat)
	}
	return false
}

// CheckSeal reports whether a pack names exactly this report, and the report says
// that it was ratified. By that alone the pack loads; it is not yet in force.
func CheckSeal(p *Pack, report []byte) error {
	var said struct {
		Ratified bool   `json:"ratified"`
		SHA256   string `json:"report_sha256"`
	}
	if err := json.Unmarshal(report, &said); err != nil {
		return errors.New("the report is not well-formed JSON")
	}
	seal, err := reportSeal(report)
	switch {
	case err != nil:
		return err
	case said.SHA256 != seal.String():
		return errors.New("the report was changed after it was made")
	case p.Seal != said.SHA256:
		return errors.New("the pack names another report, or none")
	case !said.Ratified:
		return errors.New("the report says that it was not ratified")
	}
	return nil
}

// InForce checks the seals and runs the gates again with the report's day; nil
// means that the pack may decide. The error is a [*NotInForceError].
func (b *Bundle) InForce(reg *Registry, floor *Pack) error {
	var reasons []string
	bad := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	r := b.Report
	switch {
	case r == nil:
		bad("it has no ratification report")
	case b.Cases == nil:
		bad("it has no cases")
	default:
		if err := CheckSeal(b.Pack, r.raw); err != nil {
			bad("%v", err)
		}
		if len(r.FailureReasons) > 0 || slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Passed }) {
			bad("the report lists a gate that failed")
		}
		if r.PackID != b.Pack.ID || r.PackSHA256 != b.Pack.SHA256 {
			bad("the pack was changed after it was ratified")
		}
		if r.CasesSHA256 != b.Cases.SHA256 {
			bad("the cases were changed after it was ratified")
		}
		if len(reasons) == 0 {
			gates, err := b.runGates(reg, floor, r.AsOf)
			if err != nil {
				bad("%v", err)
			} else if then := withoutRegression(r.Gates); !slices.Equal(gates, then) {
				bad("its gates give other values now than in the report%s", firstDifference(gates, then))
			}
		}
	}
	if reasons != nil {
		return &NotInForceError{Pack: b.Pack.ID, Reasons: reasons}
	}
	return nil
}

func withoutRegression(gates []Gate) []Gate {
	return slices.DeleteFunc(slices.Clone(gates), func(g Gate) bool { return g.Name == regressionGate })
}

func firstDifference(now, then []Gate) string {
	for i := range min(len(now), len(then)) {
		if now[i] != then[i] {
			return fmt.Sprintf(" (%s: %s)", now[i].Name, now[i].Detail)
		}
	}
	return ""
}

var (
	yamlSeal = regexp.MustCompile(`(?m)^mastery_report_sha256:.*$`)
	jsonSeal = regexp.MustCompile(`("mastery_report_sha256"\s*:\s*)"[^"]*"`)
)

// SealPack writes a report's digest into the text of a pack, keeping comments
// and layout. It refuses a text in which it cannot do so without changing more.
func SealPack(pack []byte, reportSHA256 string) ([]byte, error) {
	var sealed []byte
	switch line := []byte(`mastery_report_sha256: "` + reportSHA256 + `"`); {
	case looksLikeJSON(pack):
		sealed = jsonSeal.ReplaceAll(pack, []byte(`${1}"`+reportSHA256+`"`))
	case yamlSeal.Match(pack):
		sealed = yamlSeal.ReplaceAll(pack, line)
	default:
		sealed = slices.Concat(bytes.TrimRight(pack, "\n"), []byte("\n"), line, []byte("\n"))
	}
	was, _, err := readSeal(pack)
	if err != nil {
		return nil, err
	}
	is, seal, err := readSeal(sealed)
	if err != nil || is != was || seal != reportSHA256 {
		return nil, errors.New("the pack's key mastery_report_sha256 cannot be set; write it as a line of its own, with an empty text")
	}
	return sealed, nil
}

// readSeal gives the digest of a pack's text without its seal, and the seal.
func readSeal(pack []byte) (digest Digest256, seal string, err error) {
	doc, err := parseDocument("pack", "", pack)
	if err != nil {
		return Digest256{}, "", err
	}
	var has struct {
		Seal string `json:"mastery_report_sha256"`
	}
	if err := jsonv2.Unmarshal(doc.json, &has); err != nil {
		return Digest256{}, "", err
	}
	digest, err = digestWithout(doc.json, "mastery_report_sha256")
	return digest, has.Seal, err
}
