package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weir/migrations"
)

func TestFiles(t *testing.T) {
	t.Parallel()

	complaints, err := lint(migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

var (
	fileName = regexp.MustCompile(`^(\d{6})_[a-z0-9_]+\.(up|down)\.sql$`)

	// A statement that starts with one of these ends the implicit transaction of the file, or opens another.
	splitsTransaction = regexp.MustCompile(`^(begin|start transaction|commit|end|rollback|abort|prepare transaction|savepoint|release)\b`)
	concurrently      = regexp.MustCompile(`\bconcurrently\b`)
	recordsVersion    = regexp.MustCompile(`^insert into schema_history ?\( ?version ?\) values ?\( ?(\d+) ?\)$`)
	forgetsVersion    = regexp.MustCompile(`^delete from schema_history where version = (\d+)$`)
)

// lint returns one sentence per broken rule of the package documentation.
func lint(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "*")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)

	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }

	pairs := map[int]map[string]string{} // version → direction → name without version and direction
	for _, name := range names {
		if !strings.HasSuffix(name, ".sql") {
			continue
		}
		m := fileName.FindStringSubmatch(name)
		if m == nil {
			complain("%s: is not named NNNNNN_name.up.sql or NNNNNN_name.down.sql", name)
			continue
		}
		version, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		direction := m[2]
		if other, dup := pairs[version][direction]; dup {
			complain("%s: version %d has another %s file, %s", name, version, direction, other)
			continue
		}
		if pairs[version] == nil {
			pairs[version] = map[string]string{}
		}
		pairs[version][direction] = name

		sql, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for _, c := range lintSQL(string(sql), direction, version) {
			complain("%s: %s", name, c)
		}
	}

	for i := range len(pairs) {
		version := i + 1
		pair, ok := pairs[version]
		if !ok {
			complain("version %d is missing: versions count from 1 without gaps", version)
			continue
		}
		up, down := pair["up"], pair["down"]
		if strings.TrimSuffix(up, ".up.sql") != strings.TrimSuffix(down, ".down.sql") {
			complain("version %d: the up file %q and the down file %q are not a pair", version, up, down)
		}
	}
	return complaints, nil
}

func lintSQL(sql, direction string, version int) []string {
	var complaints []string
	statements := split(sql)
	records, forgets := 0, 0
	for i, s := range statements {
		if word := splitsTransaction.FindString(s); word != "" {
			complaints = append(complaints, fmt.Sprintf("%q splits the file's one transaction", word))
		}
		if concurrently.MatchString(s) {
			complaints = append(complaints, `"concurrently" cannot run inside the file's transaction`)
		}
		if m := recordsVersion.FindStringSubmatch(s); m != nil && m[1] == strconv.Itoa(version) && i == len(statements)-1 {
			records++
		}
		if m := forgetsVersion.FindStringSubmatch(s); m != nil && m[1] == strconv.Itoa(version) {
			forgets++
		}
	}
	if direction == "up" && records == 0 {
		complaints = append(complaints, fmt.Sprintf("the last statement is not: insert into schema_history(version) values (%d)", version))
	}
	if direction == "down" && forgets == 0 {
		complaints = append(complaints, fmt.Sprintf("does not say: delete from schema_history where version = %d", version))
	}
	return complaints
}

// split returns the statements of a file in lower case with single spaces. Comments, quoted names, string literals and
// dollar-quoted bodies are blanked first: what they say is not SQL of this file.
func split(sql string) []string {
	var code strings.Builder
	for len(sql) > 0 {
		n := opaque(sql)
		if n == 0 {
			code.WriteByte(sql[0])
			n = 1
		} else {
			code.WriteByte(' ')
		}
		sql = sql[n:]
	}
	var statements []string
	for s := range strings.SplitSeq(strings.ToLower(code.String()), ";") {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

var dollarTag = regexp.MustCompile(`^\$([A-Za-z_]\w*)?\$`)

// opaque returns the length of the comment, quoted name, string or dollar-quoted body that sql starts with, or 0. An
// unterminated one reaches to the end of the file, where Postgres would refuse it.
func opaque(sql string) int {
	through := func(from int, end string) int {
		if i := strings.Index(sql[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(sql)
	}
	switch {
	case strings.HasPrefix(sql, "--"):
		return through(2, "\n")
	case strings.HasPrefix(sql, "/*"):
		depth, i := 1, 2 // Postgres nests them
		for ; depth > 0 && i < len(sql); i++ {
			switch {
			case strings.HasPrefix(sql[i:], "/*"):
				depth++
				i++
			case strings.HasPrefix(sql[i:], "*/"):
				depth--
				i++
			}
		}
		return i
	case sql[0] == '\'' || sql[0] == '"': // a doubled quote reads as two literals side by side, which is as good
		return through(1, sql[:1])
	}
	if tag := dollarTag.FindString(sql); tag != "" {
		return through(len(tag), tag)
	}
	return 0
}

func TestLint(t *testing.T) {
	t.Parallel()

	const (
		record = "\ninsert into schema_history(version) values (1);\n"
		down   = "delete from schema_history where version = 1; drop table t;"
	)
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{
			name: "plain",
			files: map[string]string{
				"000001_a.up.sql": "create table t ();" + record,
				"000001_a.down.sql": `-- begin
					/* commit; /* nested */ begin; */` + down,
			},
		},
		{
			name: "begin in a function body, a string and a quoted name",
			files: map[string]string{
				"000001_a.up.sql": `create function f() returns trigger language plpgsql as $$ begin return new; end $$;
					create function g() returns trigger language plpgsql as $body$ begin; $$x$$; commit; end $body$;
					comment on function f() is 'it''s; begin; concurrently';
					create table "begin;" ();` + record,
				"000001_a.down.sql": down,
			},
		},
		{
			name: "transaction control",
			files: map[string]string{
				"000001_a.up.sql":   "BEGIN; create table t (); commit;" + record,
				"000001_a.down.sql": "start  transaction; " + down + " Rollback",
			},
			want: []string{
				`000001_a.down.sql: "start transaction" splits the file's one transaction`,
				`000001_a.down.sql: "rollback" splits the file's one transaction`,
				`000001_a.up.sql: "begin" splits the file's one transaction`,
				`000001_a.up.sql: "commit" splits the file's one transaction`,
			},
		},
		{
			name: "concurrent index",
			files: map[string]string{
				"000001_a.up.sql":   "create index CONCURRENTLY on t (a);" + record,
				"000001_a.down.sql": down,
			},
			want: []string{`000001_a.up.sql: "concurrently" cannot run inside the file's transaction`},
		},
		{
			name: "version recorded too early",
			files: map[string]string{
				"000001_a.up.sql":   record + "create table t ();",
				"000001_a.down.sql": down,
			},
			want: []string{"000001_a.up.sql: the last statement is not: insert into schema_history(version) values (1)"},
		},
		{
			name: "another version recorded and forgotten",
			files: map[string]string{
				"000001_a.up.sql":   "insert into schema_history(version) values (2);",
				"000001_a.down.sql": "delete from schema_history where version = 12",
			},
			want: []string{
				"000001_a.down.sql: does not say: delete from schema_history where version = 1",
				"000001_a.up.sql: the last statement is not: insert into schema_history(version) values (1)",
			},
		},
		{
			name: "record commented out",
			files: map[string]string{
				"000001_a.up.sql":   "create table t (); --" + strings.TrimSpace(record),
				"000001_a.down.sql": down,
			},
			want: []string{"000001_a.up.sql: the last statement is not: insert into schema_history(version) values (1)"},
		},
		{
			name: "gap, half a pair, bad name, version twice",
			files: map[string]string{
				"000001_a.up.sql":   record,
				"000001_b.up.sql":   record,
				"000001_c.down.sql": down,
				"000003_d.up.sql":   "insert into schema_history ( version ) values ( 3 )",
				"4_e.up.sql":        record,
			},
			want: []string{
				"000001_b.up.sql: version 1 has another up file, 000001_a.up.sql",
				"4_e.up.sql: is not named NNNNNN_name.up.sql or NNNNNN_name.down.sql",
				`version 1: the up file "000001_a.up.sql" and the down file "000001_c.down.sql" are not a pair`,
				"version 2 is missing: versions count from 1 without gaps",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for name, sql := range tt.files {
				files[name] = &fstest.MapFile{Data: []byte(sql)}
			}
			got, err := lint(files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}
