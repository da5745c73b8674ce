package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newConfig() *cobra.Command {
	cmd := group("config", "Check what weir serve would read, or show its settings")
	var checked serveOptions
	check := &cobra.Command{
		Use:   "check",
		Short: "Read all that weir serve reads before it starts, and say what is wrong",
		Long: "Reads weir.yaml, the environment and the flags, and then everything that they\n" +
			"name: people.yaml, policies.yaml, packs, keys and certificates. Takes the flags\n" +
			"of weir serve. Asks nobody: no database, no receiver; weir doctor does.\n\n" +
			"Exits 0 if all of it can be used, 4 if a pack cannot, 2 for anything else.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkConfig(cmd.OutOrStdout(), checked)
		},
	}
	checked.flags(check)

	var shown serveOptions
	var conn gateFlags
	var output string
	show := &cobra.Command{
		Use:   "show",
		Short: "Show every setting with its value and where it comes from",
		Long: "Shows the settings that weir serve would run with, and those by which commands\n" +
			"reach a gate, each with where it comes from. Takes the flags of weir serve.\n" +
			"Secrets are not shown, only where they are.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" && output != "markdown" {
				return exitWith(exitUsage, errors.New("--output must be text, json or markdown"))
			}
			return showSettings(cmd, output)
		},
	}
	shown.flags(show)
	conn.addGate(show)
	show.Flags().StringVar(&output, "output", "text", "text or json; markdown for the table of settings in the documentation")
	cmd.AddCommand(check, show)
	return cmd
}

// checkConfig goes on after a fault, so that one run shows everything. It ends as
// weir serve would: by what it comes upon first.
func checkConfig(out io.Writer, o serveOptions) error {
	d := declarations{options: o, log: slog.New(slog.DiscardHandler)}
	w, p := &lines{w: out}, paintFor(out)
	var first *exitError
	for _, part := range d.parts() {
		err := part.load()
		if err == nil {
			w.wrap("  "+p.bold(green, "ok")+"     ", "         ", part.what+": "+part.find())
			continue
		}
		w.wrap("  "+p.bold(red, "fault")+"  ", "         ", part.what+": "+err.Error())
		if first == nil && !errors.As(err, &first) {
			first = &exitError{code: exitUsage}
		}
	}
	for _, name := range misspelt(os.Environ()) {
		w.wrap("  "+p.bold(yellow, "note")+"   ", "         ", name+" is no setting, and nothing reads it here")
	}
	if first != nil {
		return exitWith(first.code, w.err)
	}
	return w.err
}

// otherVariables are read by weir or by what comes with it, and are no settings.
// A service of Kubernetes that is called weir puts its addresses into every pod
// of its namespace.
var otherVariables = regexp.MustCompile(`^WEIR_(CONFIG|KEY|PG_BIN|PG_USER|SPOOL|SPEC|TIMEOUT|TEST_.*|.*SERVICE_(HOST|PORT.*)|(.*_)?PORT(_.*)?)$`)

// misspelt gives the variables that look like settings and are none.
func misspelt(environ []string) (names []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "WEIR_") && !otherVariables.MatchString(name) &&
			!slices.ContainsFunc(settingTable, func(s setting) bool { return s.env() == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shownSetting is a line of weir config show.
type shownSetting struct {
	Name   string `json:"name"`
	Env    string `json:"environment"`
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`

	usage, byDefault string
}

func showSettings(cmd *cobra.Command, output string) error {
	var all []shownSetting
	for _, s := range settingTable {
		f := cmd.Flags().Lookup(s.name)
		shown := shownSetting{Name: s.name, Env: s.env(), Key: s.key(), Value: withoutPassword(f.Value.String()), Source: f.Annotations[settingSource][0],
			usage: f.Usage, byDefault: f.DefValue}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			shown.Value = list.GetSlice()
		}
		if s.secret != "" && shown.Source == s.secret {
			shown.Value = "(secret)"
		}
		all = append(all, shown)
	}
	switch output {
	case "json":
		data, err := json.Marshal(all, json.Deterministic(true))
		if err != nil {
			return exitWith(exitFailed, err)
		}
		return printJSON(cmd.OutOrStdout(), jsontext.Value(data))
	case "markdown":
		return printSettingTable(cmd.OutOrStdout(), all)
	}
	config := cmd.Flags().Lookup("config")
	tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "config\t%s\t%s\n", printable(config.Value.String()), config.Annotations[settingSource][0])
	for _, s := range all {
		text := fmt.Sprint(s.Value)
		if list, ok := s.Value.([]string); ok {
			text = strings.Join(list, ",")
		}
		if text == "" {
			text = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", s.Name, printable(text), printable(s.Source))
	}
	return tw.Flush()
}

// withoutPassword hides the password of an address, which is not where it belongs.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	return u.Redacted()
}

// printSettingTable is the table of docs/operations.md.
func printSettingTable(w io.Writer, all []shownSetting) error {
	out := &lines{w: w}
	out.put("| flag | environment | weir.yaml | default | |")
	out.put("|---|---|---|---|---|")
	for _, s := range all {
		what := strings.Join(strings.Fields(s.usage), " ")
		byDefault := ""
		if d := strings.Trim(s.byDefault, "[]"); d != "" && d != "0s" {
			byDefault = "`" + strings.ReplaceAll(d, ",", ", ") + "`"
		}
		out.put("| `--%s` | `%s` | `%s` | %s | %s |", s.Name, s.Env, s.Key, byDefault, strings.ReplaceAll(what, "|", `\|`))
	}
	return out.err
}
