package formats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Example is one training example: every text that the model would learn from.
// System turns are left out: they tell a model who it is by design.
type Example struct {
	ID    string // the row's own id, or its number in the file
	Texts []string
}

// maxLine bounds one row of JSON Lines.
const maxLine = 16 << 20

// ErrNoExamples: the file holds no row. Nothing screened is not nothing found.
var ErrNoExamples = errors.New("the file holds no training example")

// ReadExamples hands each example of a file to visit, in order, in constant
// memory. Parquet is told by its magic bytes; a name that ends in .txt holds one
// example a line; everything else is JSON Lines. A row of unknown shape is an
// error with its number, never skipped.
func ReadExamples(name string, file io.ReaderAt, size int64, visit func(Example) error) error {
	var magic [4]byte
	if _, err := file.ReadAt(magic[:], 0); err == nil && string(magic[:]) == "PAR1" {
		return readParquet(file, size, visit)
	}
	return readLines(io.NewSectionReader(file, 0, size), strings.HasSuffix(name, ".txt"), visit)
}

func readLines(r io.Reader, plain bool, visit func(Example) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	rows := 0
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		rows++
		example := Example{ID: "line " + strconv.Itoa(n), Texts: []string{string(line)}}
		if !plain {
			var err error
			if example, err = parseRow(line, example.ID); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err := visit(example); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line is longer than 16 MiB; JSON Lines has one example a line")
	} else if err != nil {
		return err
	}
	if rows == 0 {
		return ErrNoExamples
	}
	return nil
}

func readParquet(file io.ReaderAt, size int64, visit func(Example) error) error {
	opened, err := parquet.OpenFile(file, size)
	if err != nil {
		return fmt.Errorf("Parquet: %w", err)
	}
	reader := parquet.NewGenericReader[any](opened, opened.Schema())
	defer reader.Close()
	rows, n := make([]any, 64), 0
	for {
		got, err := reader.Read(rows)
		for _, row := range rows[:got] {
			n++
			raw, merr := json.Marshal(row)
			if merr != nil {
				return fmt.Errorf("row %d: %w", n, merr)
			}
			example, perr := parseRow(raw, "row "+strconv.Itoa(n))
			if perr != nil {
				return fmt.Errorf("row %d: %w", n, perr)
			}
			if verr := visit(example); verr != nil {
				return verr
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("Parquet, after row %d: %w", n, err)
		}
	}
	if n == 0 {
		return ErrNoExamples
	}
	return nil
}

// row is every shape that is understood. The first that a row has is read, and
// its other text keys too, so that nothing hides beside the expected ones.
type row struct {
	ID            any             `json:"id"`
	Messages      json.RawMessage `json:"messages"`      // chat: role and content
	Conversations json.RawMessage `json:"conversations"` // ShareGPT: from and value
	Instruction   string          `json:"instruction"`   // Alpaca
	Input         string          `json:"input"`
	Output        string          `json:"output"`
	Text          string          `json:"text"` // plain
	Prompt        json.RawMessage `json:"prompt"`
	Completion    json.RawMessage `json:"completion"`
	Chosen        json.RawMessage `json:"chosen"`
	Rejected      json.RawMessage `json:"rejected"`
}

var errShape = errors.New("has none of the known shapes: messages, conversations, instruction and output, prompt with completion or chosen, text")

func parseRow(raw []byte, id string) (Example, error) {
	var r row
	if err := json.Unmarshal(raw, &r); err != nil {
		return Example{}, errors.New("is not a JSON object of a known shape")
	}
	e := Example{ID: id}
	switch own := r.ID.(type) {
	case string:
		if own != "" {
			e.ID = own
		}
	case float64:
		e.ID = strconv.FormatFloat(own, 'f', -1, 64)
	}
	for _, turns := range []json.RawMessage{r.Messages, r.Conversations, r.Prompt, r.Completion, r.Chosen, r.Rejected} {
		texts, err := turnTexts(turns)
		if err != nil {
			return Example{}, err
		}
		e.Texts = append(e.Texts, texts...)
	}
	for _, text := range []string{r.Instruction, r.Input, r.Output, r.Text} {
		if text != "" {
			e.Texts = append(e.Texts, text)
		}
	}
	if len(e.Texts) == 0 {
		return Example{}, errShape
	}
	return e, nil
}

// turnTexts reads a text, or a list of turns in either chat form.
func turnTexts(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}, nil
	}
	var turns []struct {
		Role    string          `json:"role"`
		From    string          `json:"from"`
		Content json.RawMessage `json:"content"`
		Value   string          `json:"value"`
	}
	if err := json.Unmarshal(raw, &turns); err != nil {
		return nil, errors.New("has turns that are neither text nor a list of role and content, or from and value")
	}
	var texts []string
	for _, t := range turns {
		if t.Role == "system" || t.From == "system" {
			continue
		}
		if t.Value != "" {
			texts = append(texts, t.Value)
		}
		content, err := contentTexts(t.Content)
		if err != nil {
			return nil, err
		}
		texts = append(texts, content...)
	}
	return texts, nil
}

// contentTexts reads a turn's content: a text, or a list of parts of which some are text.
func contentTexts(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, errors.New("has a turn whose content is neither text nor a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return texts, nil
}
