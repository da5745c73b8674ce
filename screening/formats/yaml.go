package formats

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a stream of YAML documents, without those that are empty.
// Aliases and keys given twice are refused: the first can grow without bound,
// and of the second the training tool takes the last without a word.
func readYAML(name string, data []byte, firstLine int) ([]node, error) {
	refuse := func(reason Reason, line int, detail string) error {
		if line > 0 {
			line += firstLine - 1
		}
		return &RefusedError{name, reason, line, detail}
	}
	if !utf8.Valid(data) {
		return nil, refuse(NotUTF8, 0, "the file is not valid UTF-8")
	}
	if len(data) > maxYAMLBytes {
		return nil, refuse(TooLarge, 0, "the YAML is larger than 1 MiB")
	}
	// Each node needs one of these before it, so parsing cannot make more.
	marks := 0
	for i := range data {
		switch data[i] {
		case '\n', '\r', ',', '[', '{', ':', '?':
			marks++
		case '-':
			if i+1 < len(data) && data[i+1] == ' ' {
				marks++
			}
		}
	}
	if marks > maxYAMLNodes {
		return nil, refuse(TooManyValues, 0, "the YAML has more than 200,000 values")
	}
	if deeperThan(data, maxDepth) {
		return nil, refuse(TooDeep, 0, "the YAML is nested deeper than 64 levels")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var roots []node
	for n := 0; ; n++ {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, refuse(NotYAML, yamlLine(err), "the file is not well-formed YAML")
		}
		if n == maxDocuments {
			return nil, refuse(TooManyValues, doc.Line, "the file has more than 32 documents")
		}
		var root node
		if err := fromYAML(&root, doc.Content[0], 1, refuse); err != nil {
			return nil, err
		}
		if root.kind != isNull {
			roots = append(roots, root)
		}
	}
}

// deeperThan counts open brackets, also those in text: before the parser, which
// is slow on a long row of them.
func deeperThan(data []byte, most int) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > 4*most { // brackets in prose are seldom closed
				return true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return false
}

func fromYAML(n *node, y *yaml.Node, depth int, refuse func(Reason, int, string) error) error {
	if depth > maxDepth {
		return refuse(TooDeep, y.Line, "the YAML is nested deeper than 64 levels")
	}
	if y.Style&yaml.TaggedStyle != 0 && !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!seq", "!!map"}, y.ShortTag()) {
		return refuse(NotYAML, y.Line, "the YAML has a tag of its own, whose meaning depends on the reader")
	}
	switch y.Kind {
	case yaml.AliasNode:
		return refuse(HasAlias, y.Line, "the YAML has an alias; write the value out")
	case yaml.SequenceNode:
		n.kind, n.items = isList, make([]node, len(y.Content))
		for i, item := range y.Content {
			if err := fromYAML(&n.items[i], item, depth+1, refuse); err != nil {
				return err
			}
		}
		return nil
	case yaml.MappingNode:
		n.kind = isMap
		seen := make(map[string]bool, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Kind != yaml.ScalarNode {
				return refuse(NotYAML, key.Line, "a key is not plain text")
			}
			if key.ShortTag() == "!!merge" {
				return refuse(HasAlias, key.Line, "the YAML merges a map into another; write the keys out")
			}
			if seen[key.Value] {
				return refuse(DuplicateKey, key.Line, "a key is given twice, and the training tool takes the last without a word; keep one")
			}
			seen[key.Value] = true
			n.keys = append(n.keys, key.Value)
			n.items = append(n.items, node{})
			if err := fromYAML(&n.items[len(n.items)-1], y.Content[i+1], depth+1, refuse); err != nil {
				return err
			}
		}
		return nil
	}
	n.text = y.Value
	switch y.ShortTag() {
	case "!!null":
		if y.Style&yaml.TaggedStyle != 0 && y.Value != "" {
			return refuse(NotYAML, y.Line, "a value is tagged as no value")
		}
		n.kind = isNull
	case "!!bool":
		n.kind, n.text = isBool, strings.ToLower(y.Value)
	case "!!int", "!!float":
		n.kind = isNumber
	default: // a date stays as it was written
		n.kind = isText
	}
	return nil
}

// yamlLine gets the line out of the library's text, which may quote the file and is not shown.
func yamlLine(err error) int {
	if rest, ok := strings.CutPrefix(err.Error(), "yaml: line "); ok {
		if number, _, ok := strings.Cut(rest, ":"); ok {
			line, _ := strconv.Atoi(number)
			return line
		}
	}
	return 0
}
