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
		{"Alpaca", "a.jsonl", `{"instruction":"Add","input":"1 2","output":"3"}`, []Example{{"line 1", []string{"Add", "1 2", "3"}}}},
		{"preference", "a.jsonl", `{"prompt":"P","chosen":[{"role":"assistant","content":"C"}],"rejected":"R"}`, []Example{{"line 1", []string{"P", "C", "R"}}}},
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
