package screening

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// yamlToJSON reads one YAML document as the JSON it means. Anything whose
// meaning depends on the reader (aliases, merge keys, custom tags, octal
// numbers, keys that are not text) is refused rather than guessed.
func yamlToJSON(data []byte) (jsontext.Value, map[string]int, *Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF): // comments only
		return nil, nil, &Problem{Detail: "is empty"}
	case err != nil:
		return nil, nil, yamlProblem(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, nil, &Problem{Line: second.Line, Detail: "has more after its end; send one document"}
	case !errors.Is(err, io.EOF):
		return nil, nil, yamlProblem(err)
	}
	c := yamlConverter{lines: map[string]int{}}
	c.enc = jsontext.NewEncoder(&c.out)
	if p := c.value(root.Content[0], "", 1); p != nil {
		return nil, nil, p
	}
	return bytes.TrimSuffix(c.out.Bytes(), []byte("\n")), c.lines, nil
}

func yamlProblem(err error) *Problem {
	p := &Problem{Detail: "is not well-formed YAML"}
	// The library's text is "yaml: line N: …" and may quote the source, which we do not echo.
	if rest, ok := strings.CutPrefix(err.Error(), "yaml: line "); ok {
		if num, _, ok := strings.Cut(rest, ":"); ok {
			p.Line, _ = strconv.Atoi(num)
		}
	}
	return p
}

type yamlConverter struct {
	out   bytes.Buffer
	enc   *jsontext.Encoder
	lines map[string]int
	nodes int
}

func (c *yamlConverter) value(n *yaml.Node, pointer string, depth int) *Problem {
	c.lines[pointer] = n.Line
	fail := func(detail string) *Problem { return &Problem{Pointer: pointer, Line: n.Line, Detail: detail} }
	if c.nodes++; c.nodes > maxTokens {
		return fail("has more than 20,000 values and keys")
	}
	if depth > maxDepth+1 { // bounds the recursion; scanJSON counts exactly
		return fail("is nested deeper than 32 levels")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return fail("has a YAML tag; write plain text, numbers, lists and maps")
	}
	write := func(t jsontext.Token) *Problem {
		if err := c.enc.WriteToken(t); err != nil {
			return fail("cannot be read as text")
		}
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return fail("is a YAML alias; write the value out")
	case yaml.MappingNode:
		return c.mapping(n, pointer, depth, write)
	case yaml.SequenceNode:
		if p := write(jsontext.BeginArray); p != nil {
			return p
		}
		for i, item := range n.Content {
			if p := c.value(item, pointer+"/"+strconv.Itoa(i), depth+1); p != nil {
				return p
			}
		}
		return write(jsontext.EndArray)
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is kept as its text
		return write(jsontext.String(n.Value))
	case "!!null":
		return write(jsontext.Null)
	case "!!bool":
		if n.Value != "true" && n.Value != "false" {
			return fail("must be written as true or false, or quoted if it is text")
		}
		return write(jsontext.Bool(n.Value == "true"))
	case "!!int", "!!float":
		raw := jsontext.Value(n.Value)
		if !raw.IsValid() {
			return fail("is not a plain decimal number; put it in quotes if it is text")
		}
		if err := c.enc.WriteValue(raw); err != nil {
			return fail("is not a plain decimal number; put it in quotes if it is text")
		}
		return nil
	}
	return fail("is not plain text, a number, a list or a map")
}

func (c *yamlConverter) mapping(n *yaml.Node, pointer string, depth int, write func(jsontext.Token) *Problem) *Problem {
	if p := write(jsontext.BeginObject); p != nil {
		return p
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Style&yaml.TaggedStyle != 0 {
			return &Problem{Pointer: pointer, Line: key.Line, Detail: "has a key that is not plain text; put it in quotes"}
		}
		at := pointer + "/" + escapePointer(key.Value)
		if seen[key.Value] {
			return &Problem{Pointer: at, Line: key.Line, Detail: "is given twice; keep one"}
		}
		seen[key.Value] = true
		if p := write(jsontext.String(key.Value)); p != nil {
			return p
		}
		if p := c.value(val, at, depth+1); p != nil {
			return p
		}
		c.lines[at] = key.Line // the key's line is where a reader looks
	}
	return write(jsontext.EndObject)
}
