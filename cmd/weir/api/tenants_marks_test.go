package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"weir/screening"
	"weir/store/ledger"
)

// rows is every row of the database as JSON, by table; a row of a project begins
// with its name.
type rows map[string][]string

var (
	idForm     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	digestForm = regexp.MustCompile(`"\\\\x([0-9a-f]{64})"`)
	base64Form = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}`)
)

// everyRow reads all tables, past the store.
func (w *world) everyRow() rows {
	w.Helper()
	list, err := w.pool.Query(w.Context(), `select c.relname::text,
			exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'project' and not a.attisdropped)
		from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`)
	if err != nil {
		w.Fatal(err)
	}
	named := map[string]bool{}
	var name string
	var has bool
	if _, err := pgx.ForEachRow(list, []any{&name, &has}, func() error { named[name] = has; return nil }); err != nil {
		w.Fatal(err)
	}
	all := rows{}
	for name, has := range named {
		project := `''`
		if has {
			project = `coalesce(x.project, '')`
		}
		found, err := w.pool.Query(w.Context(), `select `+project+` || ' ' || (to_jsonb(x) - 'last_used_at' - 'seen_at')::text from `+name+` x order by 1`)
		if err == nil {
			all[name], err = pgx.CollectRows(found, pgx.RowTo[string])
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	return all
}

// of gives the rows of a project, and those of tables that name none but hold one
// of its marks.
func (all rows) of(project string, m marks) rows {
	theirs := rows{}
	for name, list := range all {
		for _, row := range list {
			if strings.HasPrefix(row, project+" ") || row[0] == ' ' && m.in(row, "") != "" {
				theirs[name] = append(theirs[name], row)
			}
		}
	}
	return theirs
}

// marks are texts by which something is known to be of one project.
type marks struct {
	ids   map[string]bool // and what its people wrote
	bytes map[string]bool // that who has its specs has too
}

// marksOf finds the marks of a project in its rows. What another has too marks nothing.
func marksOf(all rows, p, other *tenant) marks {
	m := marks{ids: map[string]bool{p.said: true}, bytes: map[string]bool{p.word: true}}
	each := func(project string, do func(to map[string]bool, mark string)) {
		for _, list := range all {
			for _, row := range list {
				text, ok := strings.CutPrefix(row, project+" ")
				if !ok {
					continue
				}
				var columns map[string]json.RawMessage
				if err := json.Unmarshal([]byte(text), &columns); err != nil {
					panic(err)
				}
				for column, value := range columns {
					switch column {
					case "request": // an event of an endpoint, which is the deployment's
					case "hash", "prev_hash": // for all to see
					case "message_id", "candidate_id", "key_id":
						do(m.ids, strings.Trim(string(value), `"`))
					default:
						for _, id := range idForm.FindAllString(string(value), -1) {
							do(m.ids, id)
						}
						for _, digest := range digestForm.FindAllStringSubmatch(string(value), -1) {
							do(m.bytes, digest[1])
						}
					}
				}
			}
		}
	}
	each(p.project, func(to map[string]bool, mark string) { to[mark] = true })
	each(other.project, func(to map[string]bool, mark string) { delete(to, mark) })
	delete(m.ids, "null")
	return m
}

// in gives a mark that a text holds and who asked did not say, with what is around
// it; "" for none.
func (m marks) in(text, asked string) string {
	for _, kind := range []map[string]bool{m.ids, m.bytes} {
		for mark := range kind {
			if i := strings.Index(text, mark); i >= 0 && !strings.Contains(asked, mark) {
				return fmt.Sprintf("%s in …%q…", mark, text[max(0, i-200):min(len(text), i+len(mark)+100)])
			}
		}
	}
	return ""
}

// nobodys replaces every mark by one of the same form that is nobody's.
func (m marks) nobodys(p *tenant) *strings.Replacer {
	pairs := []string{p.word, "nobodysword", p.said, "nobodyssaying"}
	for _, mark := range slices.Sorted(maps.Keys(m.ids)) {
		if idForm.MatchString(mark) {
			pairs = append(pairs, mark, uuid.NewSHA1(uuid.NameSpaceURL, []byte(mark)).String())
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(m.bytes)) {
		if len(mark) == 64 {
			pairs = append(pairs, mark, screening.Sum([]byte(mark)).String())
		}
	}
	return strings.NewReplacer(pairs...)
}

// unfolded is all that an answer says: headers, body, what is packed and encoded in it.
func unfolded(t testing.TB, a answer) string {
	t.Helper()
	var b strings.Builder
	if err := a.header.Write(&b); err != nil {
		t.Fatal(err)
	}
	body := a.body
	switch a.header.Get("Content-Type") {
	case "application/zip":
		archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		body = nil
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			body = append(append(body, f.Name...), data...)
		}
	case ledger.Parquet.MediaType():
		table, err := parquet.Read[ledger.Row](bytes.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		body = fmt.Appendf(nil, "%+v", table)
	}
	unfold(&b, body, 3)
	return strings.ToLower(b.String())
}

// unfold writes a text and what is in its words in base64, and so on.
func unfold(b *strings.Builder, text []byte, depth int) {
	b.Write(text)
	if depth == 0 {
		return
	}
	for _, word := range base64Form.FindAll(text, -1) {
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if plain, err := alphabet.DecodeString(string(word)); err == nil {
				b.WriteByte('\n')
				unfold(b, plain, depth-1)
			}
		}
	}
}
