package formats

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	return readLines(io.NewSectionReader(file, 0, size), strings.EqualFold(path.Ext(name), ".txt"), visit)
}

func readLines(r io.Reader, plain bool, visit func(Example) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	rows := 0
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		line = bytes.TrimSpace(line)
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

func readParquet(file io.ReaderAt, size int64, visit func(Example) error) (err error) {
	// The library panics on some damaged files. Nothing read is an error here.
	defer func() {
		if recover() != nil {
			err = errors.New("the Parquet file is damaged")
		}
	}()
	if err := checkFooter(file, size); err != nil {
		return err
	}
	opened, err := parquet.OpenFile(file, size)
	if err != nil {
		return fmt.Errorf("read Parquet: %w", err)
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
			return fmt.Errorf("read Parquet after row %d: %w", n, err)
		}
	}
	if n == 0 {
		return ErrNoExamples
	}
	return nil
}

// checkFooter keeps a damaged length from asking for more memory than there is file.
func checkFooter(file io.ReaderAt, size int64) error {
	var tail [8]byte
	if _, err := file.ReadAt(tail[:], max(0, size-8)); err != nil || string(tail[4:]) != "PAR1" {
		return errors.New("the Parquet file is cut off")
	}
	if length := int64(binary.LittleEndian.Uint32(tail[:4])); length > size-12 {
		return errors.New("the Parquet file is damaged")
	}
	return nil
}

// shapes are the keys by which a row is known to hold an example. One is enough;
// every other text of the row is read all the same, so that nothing hides beside it.
var shapes = []string{"messages", "conversations", "conversation", "instruction", "text", "prompt", "completion", "chosen", "rejected"}

var errShape = errors.New("has none of the known shapes: messages, conversations, instruction, prompt with completion or chosen, text")

// parseRow reads one row strictly: a key given twice or in another case could
// show a trainer another text than the one that was screened.
func parseRow(raw []byte, id string) (Example, error) {
	var row map[string]any
	if err := json.Unmarshal(raw, &row); err != nil {
		return Example{}, errors.New("is not a JSON object in UTF-8 with every key once")
	}
	if !slices.ContainsFunc(shapes, func(key string) bool { return row[key] != nil }) {
		return Example{}, errShape
	}
	e := Example{ID: rowID(raw, id)}
	delete(row, "id")
	system, err := e.add(row)
	if err == nil && len(e.Texts) == 0 && !system {
		err = errors.New("holds no text")
	}
	return e, err
}

// rowID is the row's own id if it can stand in a record, else its number.
func rowID(raw []byte, number string) string {
	var own struct {
		ID jsontext.Value `json:"id"`
	}
	if json.Unmarshal(raw, &own) != nil {
		return number
	}
	var text string
	switch own.ID.Kind() {
	case '"':
		if json.Unmarshal(own.ID, &text) != nil {
			return number
		}
	case '0':
		text = string(own.ID) // as written: a double would change large ones
	}
	if text == "" || len(text) > 256 || strings.ContainsFunc(text, unicode.IsControl) {
		return number
	}
	return text
}

// add collects every text below a value and tells whether it left out a system
// turn. The parts of one turn are also read as one text, as the model will.
func (e *Example) add(v any) (system bool, err error) {
	switch v := v.(type) {
	case string:
		if v != "" {
			e.Texts = append(e.Texts, v)
		}
	case []any:
		for _, item := range v {
			s, err := e.add(item)
			if err != nil {
				return false, err
			}
			system = system || s
		}
	case map[string]any:
		role, speaks := v["role"]
		from, says := v["from"]
		if speaks && says {
			return false, errors.New("has a turn with both role and from; whose it is cannot be told")
		}
		if role == "system" || from == "system" {
			return true, nil
		}
		before := len(e.Texts)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "role" || key == "from" || key == "type" && isWord(v[key]) {
				continue // a label, not what is learned
			}
			s, err := e.add(v[key])
			if err != nil {
				return false, err
			}
			system = system || s
		}
		if parts := e.Texts[before:]; (speaks || says) && len(parts) > 1 {
			e.Texts = append(e.Texts, strings.Join(parts, " "), strings.Join(parts, ""))
		}
	}
	return system, nil
}

func isWord(v any) bool {
	text, ok := v.(string)
	return ok && len(text) <= 32 && !strings.ContainsFunc(text, unicode.IsSpace)
}
