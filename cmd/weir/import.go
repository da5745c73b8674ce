package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/screening"
	"weir/screening/formats"
)

// importFlags are what no imported file says.
type importFlags struct {
	formats.Options
	with []string
}

func (f *importFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.RunRef, "run-ref", "", "for an imported file: the run's name over resubmissions")
	cmd.Flags().StringVar(&f.Owner, "owner", "", "for an imported file: who answers for the run")
	cmd.Flags().StringVar(&f.OnBehalfOf, "on-behalf-of", "", "for an imported file: the person for whom a service submits")
	cmd.Flags().StringVar(&f.Team, "team", "", "for an imported file: the team")
	cmd.Flags().StringVar(&f.Objective, "objective", "", "for an imported file that does not tell it: kind of training (sft, dpo, …)")
	cmd.Flags().StringVar(&f.Statement, "statement", "", "for an imported file: what goes with the model to its users")
}

// set names the flags that were given and only make sense for an imported file.
func (f *importFlags) set(cmd *cobra.Command) (names []string) {
	for _, name := range []string{"with", "run-ref", "owner", "on-behalf-of", "team", "objective", "statement"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			names = append(names, "--"+name)
		}
	}
	return names
}

func newImport() *cobra.Command {
	var flags importFlags
	var out, output string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make a draft of a spec out of run files, cards and BOMs",
		Long: "Reads the file of a training run and the metadata of its inputs, or metadata\n" +
			"alone, and tells what it understood, what not, and what contradicts. With -o it\n" +
			"writes a draft of a spec, in which every gap is a line to fill in.\n\n" +
			"NAME=FILE says that a file describes the input that the run calls NAME. Formats:\n" +
			"docs/importers.md. Nothing that a file names is opened or run.",
		Example: "  weir import axolotl.yaml harbour/logs=card.md model.cdx.json -o spec.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			draft, err := flags.read(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			report := cmd.OutOrStdout()
			if out != "" {
				raw, err := draft.YAML()
				if err != nil {
					return exitWith(exitFailed, err)
				}
				if out == "-" {
					if _, err := cmd.OutOrStdout().Write(raw); err != nil {
						return exitWith(exitFailed, err)
					}
					report = cmd.ErrOrStderr()
				} else if err := writeNew(out, raw); err != nil {
					return err
				}
			}
			if output == "json" {
				return writeJSON(report, describeDraft(draft, out))
			}
			return renderDraft(report, draft, out)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "where to write the draft; - for standard output")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

// writeNew writes a file that is not there yet: a draft may have been filled in.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return exitWith(exitUsage, fmt.Errorf("%s is there already; take it away or give another name", path))
	}
	if err != nil {
		return exitWith(exitFailed, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return exitWith(exitFailed, err)
	}
	return nil
}

// read imports files and joins them.
func (f *importFlags) read(stdin io.Reader, args []string) (*formats.Draft, error) {
	if len(args) > maxImported {
		return nil, exitWith(exitUsage, fmt.Errorf("at most %d files make a spec", maxImported))
	}
	var imports []*formats.Import
	f.For = map[string]string{}
	for _, arg := range args {
		file, input := arg, ""
		if name, rest, ok := strings.Cut(arg, "="); ok && rest != "" {
			if _, err := os.Stat(arg); err != nil { // no file has this whole name
				file, input = rest, name
			}
		}
		data, err := readFile(stdin, file)
		if err != nil {
			return nil, exitWith(exitUsage, err)
		}
		im, err := formats.Read(file, data)
		if err != nil {
			return nil, exitWith(exitUsage, err)
		}
		if slices.ContainsFunc(imports, func(other *formats.Import) bool { return other.Name == file }) {
			return nil, exitWith(exitUsage, fmt.Errorf("%s is given twice", file))
		}
		if input != "" {
			f.For[file] = input
		}
		imports = append(imports, im)
	}
	draft, err := formats.Merge(imports, f.Options)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	return draft, nil
}

const maxImported = 32

// readFile reads at most one byte more than an importer takes.
func readFile(stdin io.Reader, name string) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, formats.MaxFileBytes+1))
}

// draft turns SPEC into the spec of a draft if it is a file to import, and leaves
// it alone if it is a spec.
func (f *importFlags) draft(cmd *cobra.Command, name string, raw *[]byte) (imported bool, err error) {
	format := formats.Detect(name, *raw)
	if format == "" {
		if given := f.set(cmd); len(given) > 0 {
			_, err := formats.Read(name, *raw) // why not
			return false, exitWith(exitUsage, fmt.Errorf("%s is for a SPEC that is imported: %w", strings.Join(given, ", "), err))
		}
		return false, nil
	}
	if name == "-" {
		return false, exitWith(exitUsage, errors.New("a file to import needs its name; give the file instead of -"))
	}
	draft, err := f.read(cmd.InOrStdin(), append([]string{name}, f.with...))
	if err != nil {
		return false, err
	}
	if gaps := draft.Gaps(); len(gaps) > 0 {
		flags := map[string]string{"run_ref": "--run-ref", "owner": "--owner", "objective.kind": "--objective"}
		missing := make([]string, len(gaps))
		for i, gap := range gaps {
			missing[i] = flags[gap]
		}
		return false, exitWith(exitUsage, fmt.Errorf("%s does not say everything a spec needs; give %s, or make a draft with weir import", name, strings.Join(missing, ", ")))
	}
	if *raw, err = draft.YAML(); err != nil {
		return false, exitWith(exitFailed, err)
	}
	open := 0
	for _, im := range draft.Imports {
		for _, finding := range im.Findings {
			if finding.Open() {
				open++
			}
		}
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "weir: %s read as %s; %s left open. weir import tells which\n",
		printable(name), formats.FormatName(format), count(open, "point", "points"))
	return true, err
}

// draftReport is the JSON form of what import tells.
type draftReport struct {
	Files     []fileReport  `json:"files"`
	Objective string        `json:"objective"`
	Inputs    []inputReport `json:"inputs"`
	Gaps      []string      `json:"gaps"` // keys that a spec must have and no file gives
	Out       string        `json:"out,omitzero"`
}

type fileReport struct {
	Name     string              `json:"name"`
	Format   string              `json:"format"`
	Version  string              `json:"version,omitzero"`
	SHA256   screening.Digest256 `json:"sha256"`
	Findings []formats.Finding   `json:"findings"`
}

type inputReport struct {
	ID   string            `json:"id"`
	Kind string            `json:"kind"`
	Name string            `json:"name"`
	From map[string]string `json:"from"` // pointer into the spec → file and pointer into it
}

func describeDraft(d *formats.Draft, out string) draftReport {
	r := draftReport{Objective: d.Spec.Objective.Kind, Gaps: d.Gaps(), Out: out}
	for _, im := range d.Imports {
		r.Files = append(r.Files, fileReport{im.Name, im.Format, im.Version, im.SHA256, im.Findings})
	}
	for i, in := range d.Spec.Inputs {
		from := map[string]string{}
		prefix := fmt.Sprintf("/inputs/%d", i)
		for pointer, at := range d.From {
			if pointer == prefix || strings.HasPrefix(pointer, prefix+"/") {
				from[pointer] = at.String()
			}
		}
		r.Inputs = append(r.Inputs, inputReport{in.ID, in.Kind, in.Name, from})
	}
	return r
}

// renderDraft tells what was understood, what contradicts, what is open, and what
// a reader may want to know.
func renderDraft(w io.Writer, d *formats.Draft, out string) error {
	p, o := paintFor(w), &lines{w: w}
	for _, im := range d.Imports {
		format := formats.FormatName(im.Format)
		if im.Version != "" {
			format += " " + im.Version
		}
		o.wrap("", "  ", im.Name+": "+format)
	}
	o.put("")
	o.put("%s", p.bold(plain, "Understood"))
	if d.Spec.Objective.Kind != "" {
		o.wrap("  ", "    ", "objective "+d.Spec.Objective.Kind)
	}
	for i := range d.Spec.Inputs {
		in := &d.Spec.Inputs[i]
		o.wrap("  ", "    ", in.ID+", "+strings.ReplaceAll(in.Kind, "_", " ")+describeInput(in))
	}
	for _, group := range []struct {
		title string
		codes []formats.Code
	}{
		{"Contradicts; a person has to say which holds", []formats.Code{formats.Contradiction}},
		{"Open; a person has to settle it", []formats.Code{formats.Unresolved, formats.Restriction, formats.Unreadable, formats.Checksum}},
		{"Not given, or not of its form", []formats.Code{formats.Missing, formats.Placeholder, formats.Malformed, formats.UnknownKey}},
		{"To know", []formats.Code{formats.Note}},
	} {
		renderImportFindings(o, p, d, group.title, group.codes)
	}
	o.put("")
	if gaps := d.Gaps(); len(gaps) > 0 {
		o.wrap("", "", "No file gives "+strings.Join(gaps, ", ")+", which a spec must have.")
	}
	switch out {
	case "":
		o.wrap("", "", "-o FILE writes a draft, with a line to fill in for everything that is not known.")
	case "-":
	default:
		o.wrap("", "", "The draft is in "+out+". Lines with #? are gaps to fill in; weir check tells which are needed.")
	}
	return o.err
}

func describeInput(in *screening.Input) string {
	text := ""
	var licenses []string
	for i := range in.License.Declared {
		if name := in.License.Declared[i].Name(); name != "" && len(licenses) < 3 {
			licenses = append(licenses, name)
		}
	}
	if len(licenses) > 0 {
		text += "; licence " + strings.Join(licenses, ", ")
	}
	if codes, _ := in.License.Stated(); len(codes) > 0 {
		text += "; restrictions " + strings.Join(codes, ", ")
	}
	var tags []string
	for _, d := range in.Disclosures {
		if said := d.Tag + " " + d.State; d.Basis == "structured" && !slices.Contains(tags, said) {
			tags = append(tags, said)
		}
	}
	if len(tags) > 0 {
		text += "; " + strings.Join(tags, ", ")
	}
	var hints []string
	for _, d := range in.Disclosures {
		if said := d.Tag + " " + d.State; d.Basis == "inferred" && d.State != "not_assessed" && !slices.Contains(hints, said) {
			hints = append(hints, said)
		}
	}
	if len(hints) > 0 {
		text += "; hints at " + strings.Join(hints, ", ")
	}
	return text
}

const maxShownFindings = 40

func renderImportFindings(o *lines, p paint, d *formats.Draft, title string, codes []formats.Code) {
	shown, more := 0, 0
	for _, im := range d.Imports {
		for _, f := range im.Findings {
			if !slices.Contains(codes, f.Code) {
				continue
			}
			if shown == maxShownFindings {
				more++
				continue
			}
			if shown == 0 {
				o.put("")
				o.put("%s", p.bold(plain, title))
			}
			shown++
			o.wrap("  ", "    ", strings.TrimSpace(im.Name+" "+f.Pointer))
			o.wrap("    ", "    ", strings.TrimSpace(f.Field+" "+f.Detail))
		}
	}
	if more > 0 {
		o.put("  and %d more; --output json has all", more)
	}
}
