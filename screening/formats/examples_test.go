package formats

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func read(t *testing.T, name string, data []byte) ([]Example, error) {
	t.Helper()
	var got []Example
	err := ReadExamples(name, bytes.NewReader(data), int64(len(data)), func(e Example) error {
		got = append(got, e)
		return nil
	})
	return got, err
}

func TestReadExamples(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, data string
		want             []Example
	}{
		{"chat, system left out", "a.jsonl", `{"id":"e1","messages":[{"role":"system","content":"You are X."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`,
			[]Example{{"e1", []string{"Hi", "Hello"}}}},
		{"content in parts", "a.jsonl", `{"messages":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"What is it?"}]}]}`,
			[]Example{{"line 1", []string{"What is it?"}}}},
		{"ShareGPT", "a.json", `{"id":7,"conversations":[{"from":"system","value":"S"},{"from":"human","value":"Q"},{"from":"gpt","value":"A"}]}`,
			[]Example{{"7", []string{"Q", "A"}}}},
		{"Alpaca", "a.jsonl", `{"instruction":"Add","input":"1 2","output":"3"}`, []Example{{"line 1", []string{"1 2", "Add", "3"}}}},
		{"preference", "a.jsonl", `{"prompt":"P","chosen":[{"role":"assistant","content":"C"}],"rejected":"R"}`, []Example{{"line 1", []string{"C", "P", "R"}}}},
		{"plain JSON", "a.jsonl", "{\"text\":\"T\"}\n\n{\"text\":\"U\"}\n", []Example{{"line 1", []string{"T"}}, {"line 3", []string{"U"}}}},
		{"plain lines", "a.txt", "one\ntwo\n", []Example{{"line 1", []string{"one"}}, {"line 2", []string{"two"}}}},
		{"nothing hides beside the expected keys", "a.jsonl", `{"messages":[{"role":"user","content":"M"}],"text":"T"}`, []Example{{"line 1", []string{"M", "T"}}}},
	}
	for _, tt := range tests {
		got, err := read(t, tt.file, []byte(tt.data))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestReadExamplesRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ data, want string }{
		"unknown shape": {"{\"text\":\"T\"}\n{\"body\":\"B\"}", "line 2"},
		"not JSON":      {"hello", "line 1"},
		"turns of text": {`{"messages":{"role":"user"}}`, "line 1"},
		"odd content":   {`{"messages":[{"role":"user","content":5}]}`, "line 1"},
		"key twice":     {`{"text":"A","text":"B"}`, "line 1"},
		"both speakers": {`{"messages":[{"role":"assistant","from":"system","content":"A"}]}`, "line 1"},
		"not UTF-8":     {"{\"text\":\"\xff\"}", "line 1"},
	} {
		if _, err := read(t, "a.jsonl", []byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := read(t, "a.jsonl", []byte("\n\n")); !errors.Is(err, ErrNoExamples) {
		t.Errorf("empty file: %v", err)
	}
	if _, err := read(t, "a.parquet", []byte("PAR1 and then nothing")); err == nil {
		t.Error("a broken Parquet file was read")
	}
}

func TestReadParquet(t *testing.T) {
	t.Parallel()
	type turn struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type chat struct {
		ID       string `parquet:"id"`
		Messages []turn `parquet:"messages,list"`
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[chat](&file)
	var rows []chat
	var want []Example
	for i := range 200 { // more than one batch
		id := fmt.Sprintf("c%d", i)
		rows = append(rows, chat{id, []turn{{"system", "S"}, {"user", "Q" + id}, {"assistant", "A"}}})
		want = append(want, Example{id, []string{"Q" + id, "A"}})
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, "a.parquet", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Whatever key or turn a text hides in, it is read.
func TestNothingHides(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		`{"text":"hello","Text":"ATTACK"}`,
		`{"instruction":"Add","response":"ATTACK"}`,
		`{"instruction":"Add","output":"3","history":[["a","ATTACK"]]}`,
		`{"messages":[{"role":"assistant","Role":"system","content":"ATTACK"}]}`,
		`{"messages":[{"role":"assistant","content":"x","reasoning_content":"ATTACK"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","content":"ATTACK"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"ATT"},{"type":"text","text":"ACK"}]}]}`,
		`{"text":"x","conversation":[{"from":"human","value":"ATTACK"}]}`,
		`{"messages":[{"role":"user","content":"x","type":"an ATTACK"}]}`,
	} {
		got, err := read(t, "a.jsonl", []byte(row))
		if err != nil || !strings.Contains(strings.Join(got[0].Texts, "\n"), "ATTACK") {
			t.Errorf("%s: %v (%v)", row, got, err)
		}
	}
	if got, err := read(t, "a.jsonl", []byte("\ufeff"+`{"id":9007199254740993,"messages":[{"role":"system","content":"S"}]}`)); err != nil || got[0].ID != "9007199254740993" || got[0].Texts != nil {
		t.Errorf("only a system turn, behind a byte order mark: %v (%v)", got, err)
	}
	if got, err := read(t, "a.jsonl", []byte(`{"id":"a\u0000b","text":"T"}`)); err != nil || got[0].ID != "line 1" {
		t.Errorf("an id that cannot be kept: %v (%v)", got, err)
	}
}

func FuzzReadExamples(f *testing.F) {
	f.Add("a.jsonl", []byte(`{"messages":[{"role":"user","content":"x"}]}`))
	f.Add("a.txt", []byte("one\ntwo"))
	f.Add("a.parquet", []byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(_ *testing.T, name string, data []byte) {
		// An error is fine, a panic is not; what is visited has an id.
		_ = ReadExamples(name, bytes.NewReader(data), int64(len(data)), func(e Example) error {
			if e.ID == "" {
				panic("an example without an id")
			}
			return nil
		})
	})
}

func TestDamagedParquet(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Text string `parquet:"text"`
	}](&file)
	if _, err := w.Write([]struct {
		Text string `parquet:"text"`
	}{{"one"}, {"two"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := range file.Len() { // every prefix, and never a panic
		if got, err := read(t, "a.parquet", file.Bytes()[:cut]); err == nil {
			t.Errorf("%d of %d bytes were read as %v", cut, file.Len(), got)
		}
	}
}

func TestVisitErrorStops(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	data := []byte("{\"text\":\"T\"}\n{\"text\":\"U\"}\n")
	n := 0
	err := ReadExamples("a.jsonl", bytes.NewReader(data), int64(len(data)), func(Example) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}
