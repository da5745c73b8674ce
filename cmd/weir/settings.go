package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/screening"
)

// settingsFile is beside people.yaml and policies.yaml.
const settingsFile = "weir.yaml"

// setting is a flag that the environment and weir.yaml may give too. It has one
// name in three forms: --base-url, WEIR_BASE_URL and base_url. The first of flag,
// environment and file that says something decides; then the flag's default.
type setting struct {
	name string // the flag, without its dashes
	// path makes a value of weir.yaml that is relative one beside the file; nil
	// where values are no paths.
	path func(dir, value string) string
	// secret is the variable that may hold what the setting only names a file of.
	secret string
}

// settingTable is every setting. TestSettings holds it to the flags of weir serve
// and to docs/operations.md (go test ./cmd/weir -run Settings -update).
var settingTable = []setting{
	{name: "listen"},
	{name: "tls-cert", path: beside},
	{name: "tls-key", path: beside},
	{name: "tls-min-version"},
	{name: "rate-limit"},
	{name: "database-url-file", path: beside, secret: "DATABASE_URL"},
	{name: "database-wait"},
	{name: "state-dir", path: beside},
	{name: "packs", path: besidePack},
	{name: "base-url"},
	{name: "signing-key", path: beside},
	{name: "witness"},
	{name: "witness-allow-private"},
	{name: "audit-only"},
	{name: "allow-unratified"},
	{name: "verbose"},
	{name: "webhook-schedule"},
	{name: "webhook-lease"},
	{name: "webhook-cooldown"},
	{name: "webhook-resolver"},
	{name: "hooks-listen"},
	{name: "hooks-cert", path: beside},
	{name: "hooks-key", path: beside},
	{name: "hooks-client-ca", path: beside},
	{name: "hooks-client-names"},
	{name: "hooks-service"},
	{name: "hooks-project"},
	{name: "hooks-controllers"},
	{name: "server"},
	{name: "key-file", path: beside, secret: "WEIR_KEY"},
}

func beside(dir, value string) string {
	if value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(dir, value)
}

// besidePack leaves the ids of shipped packs alone.
func besidePack(dir, value string) string {
	if !isFile(value) {
		return value
	}
	return beside(dir, value)
}

func (s setting) env() string { return "WEIR_" + strings.ToUpper(s.key()) }
func (s setting) key() string { return strings.ReplaceAll(s.name, "-", "_") }

// Annotations of a flag: that it is a setting, and where its value came from.
const (
	isSetting     = "weir_setting"
	settingSource = "weir_source"
)

// useSettings says that flags of a command are settings. A flag of that name which
// means something else in another command stays out.
func useSettings(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, isSetting, []string{"true"}); err != nil {
			panic(err) // the flag is declared above
		}
	}
}

// configFlag adds the directory that the declarations and weir.yaml are in.
func configFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "config", defaultConfigDir, "directory with people.yaml, policies.yaml and, if you want one, weir.yaml ($WEIR_CONFIG)")
}

const defaultConfigDir = "/etc/weir"

// applySettings gives the settings of a command that its command line does not
// give the values of the environment or of weir.yaml. What is wrong in either is
// an error also where a flag overrides it: a fault must not wait for the day on
// which the flag is left out.
func applySettings(cmd *cobra.Command) error {
	own := map[string]*pflag.Flag{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[isSetting] != nil {
			own[f.Name] = f
		}
	})
	dir := cmp.Or(os.Getenv("WEIR_CONFIG"), defaultConfigDir)
	if f := cmd.Flags().Lookup("config"); f != nil {
		switch {
		case f.Changed:
			dir = f.Value.String()
			sourced(f, "flag")
		case os.Getenv("WEIR_CONFIG") != "":
			if err := f.Value.Set(dir); err != nil {
				return exitWith(exitUsage, fmt.Errorf("WEIR_CONFIG: %w", err))
			}
			sourced(f, "WEIR_CONFIG")
		default:
			sourced(f, "default")
		}
	}
	if len(own) == 0 {
		return nil
	}
	file, err := readSettings(filepath.Join(dir, settingsFile), settingFlags(cmd.Root()))
	if err != nil {
		return exitWith(exitUsage, err)
	}
	for _, s := range settingTable {
		if f := own[s.name]; f != nil {
			if err := s.apply(f, file); err != nil {
				return exitWith(exitUsage, err)
			}
		}
	}
	return nil
}

// settingFlags gives a flag of each setting, from whichever command has it.
func settingFlags(root *cobra.Command) map[string]*pflag.Flag {
	found := map[string]*pflag.Flag{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if f.Annotations[isSetting] != nil && found[f.Name] == nil {
					found[f.Name] = f
				}
			})
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	return found
}

// apply sets a flag from the first place that says something.
func (s setting) apply(f *pflag.Flag, file *settings) error {
	text, secret := os.Getenv(s.env()), s.secret != "" && os.Getenv(s.secret) != ""
	var fromEnv []string
	if text != "" {
		if secret {
			return fmt.Errorf("%s and %s are both set; unset one", s.env(), s.secret)
		}
		var detail string
		if fromEnv, detail = parseText(f.Value.Type(), text); detail != "" {
			return fmt.Errorf("%s: %s", s.env(), detail)
		}
	}
	switch {
	case f.Changed:
		sourced(f, "flag")
		return nil
	case fromEnv != nil:
		sourced(f, s.env())
		return assign(f, s.env(), fromEnv)
	case secret: // what the file would hold; whoever needs it asks there
		sourced(f, s.secret)
		return nil
	case file.values[s.name] != nil:
		sourced(f, fmt.Sprintf("%s:%d", file.name, screening.Locate(file.data, "/"+s.key())))
		values := slices.Clone(file.values[s.name])
		for i, v := range values {
			if s.path != nil {
				values[i] = s.path(filepath.Dir(file.name), v)
			}
		}
		return assign(f, file.name, values)
	}
	sourced(f, "default")
	return nil
}

func sourced(f *pflag.Flag, source string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[settingSource] = []string{source}
}

// assign sets a flag. It is not marked as changed: that is for the command line.
func assign(f *pflag.Flag, from string, values []string) error {
	var err error
	if list, ok := f.Value.(pflag.SliceValue); ok {
		err = list.Replace(values)
	} else {
		err = f.Value.Set(values[0])
	}
	if err != nil { // the library's words may quote the value
		return fmt.Errorf("%s: --%s does not take this value", from, f.Name)
	}
	return nil
}

// settings are the values of a weir.yaml, as texts.
type settings struct {
	name   string
	data   []byte
	values map[string][]string // by the setting's name
}

// readSettings reads a weir.yaml. One that is not there says nothing. flags tell
// the types. The error of bad content is a [*screening.InvalidError].
func readSettings(name string, flags map[string]*pflag.Flag) (*settings, error) {
	s := &settings{name: name, values: map[string][]string{}}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("configuration: %w; let this account read it, or set WEIR_CONFIG to another directory", err)
	}
	s.data = data
	var keys map[string]jsontext.Value
	if err := screening.Decode("configuration", name, data, &keys); err != nil {
		return nil, err
	}
	var found []screening.Problem
	for key, raw := range keys {
		pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		detail := "is not a setting; weir config show lists them"
		if i := slices.IndexFunc(settingTable, func(s setting) bool { return s.key() == key }); i >= 0 {
			f := flags[settingTable[i].name]
			s.values[settingTable[i].name], detail = parseValue(f.Value.Type(), raw)
		}
		if detail != "" {
			found = append(found, screening.Problem{Pointer: pointer, Line: screening.Locate(data, pointer), Detail: detail})
		}
	}
	if found != nil {
		slices.SortFunc(found, func(a, b screening.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Pointer, b.Pointer))
		})
		return nil, &screening.InvalidError{What: "configuration", Name: name, Problems: found}
	}
	return s, nil
}

// parseValue reads a value of weir.yaml for a flag of a type.
func parseValue(typ string, raw jsontext.Value) (values []string, detail string) {
	switch typ {
	case "stringSlice", "durations":
		if json.Unmarshal(raw, &values) != nil {
			return nil, "must be a list of texts"
		}
		if values == nil || slices.Contains(values, "") {
			return nil, "must not be null or hold an empty text; leave it out"
		}
		if typ == "durations" {
			_, detail = parseText(typ, strings.Join(values, ","))
		}
		return values, detail
	case "bool", "int":
		if kind := raw.Kind(); typ == "bool" && kind != 't' && kind != 'f' || typ == "int" && kind != '0' {
			return nil, typeDetail[typ]
		}
		return parseText(typ, raw.String())
	}
	var text string
	if raw.Kind() != '"' || json.Unmarshal(raw, &text) != nil {
		return nil, cmp.Or(typeDetail[typ], "must be a text; put it in quotes")
	}
	if text == "" {
		return nil, "must not be empty; leave it out"
	}
	return parseText(typ, text)
}

var typeDetail = map[string]string{
	"bool":      "must be true or false",
	"int":       "must be a whole number",
	"duration":  "must be a duration such as 30s, 5m or 24h",
	"durations": "must be durations such as 0s,30s,5m",
}

// parseText reads a text as the environment has it. The detail never repeats it:
// a key may have been put into the wrong variable.
func parseText(typ, text string) (values []string, detail string) {
	values, ok := []string{text}, true
	switch typ {
	case "stringSlice":
		if values = splitList(text); len(values) == 0 {
			return nil, "must be a list with commas between"
		}
	case "durations":
		values = splitList(text)
		for _, v := range values {
			ok = ok && isDuration(v)
		}
		ok = ok && len(values) > 0
	case "duration":
		ok = isDuration(text)
	case "bool":
		ok = text == "true" || text == "false"
	case "int":
		var n int
		ok = json.Unmarshal([]byte(text), &n) == nil
	}
	if !ok {
		return nil, typeDetail[typ]
	}
	return values, ""
}

func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}
