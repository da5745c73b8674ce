package formats

import (
	"slices"
	"strconv"
	"strings"
)

type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	isList
	isMap
)

// node is one value of a file. Numbers and booleans keep their text: 4.10 is
// not 4.1, and a version is whatever was written.
type node struct {
	kind  kind
	text  string
	keys  []string // of a map, in the order of the file
	items []node   // of a list, or the values of a map
}

// value is a node and its place in the file.
type value struct {
	*node
	at string // JSON pointer
}

var noValue = value{node: &node{}}

func (v value) is(k kind) bool { return v.node != noValue.node && v.kind == k }

// given: the key is there and says something, be it null text or a placeholder.
func (v value) given() bool { return v.node != noValue.node && v.kind != isNull }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (v value) member(i int) value {
	return value{&v.items[i], v.at + "/" + pointerEscapes.Replace(v.keys[i])}
}

// get gives the member with exactly this key.
func (v value) get(keys ...string) value {
next:
	for _, key := range keys {
		if v.kind == isMap {
			for i, k := range v.keys {
				if k == key {
					v = v.member(i)
					continue next
				}
			}
		}
		return noValue
	}
	return v
}

// all gives every member that has one of the names, however it is spelled: a file
// that writes License or license-name means license and license_name.
func (v value) all(names ...string) (found []value) {
	if v.kind != isMap {
		return nil
	}
	for i, k := range v.keys {
		if slices.ContainsFunc(names, func(name string) bool { return sameKey(k, name) }) {
			found = append(found, v.member(i))
		}
	}
	return found
}

// named is all for keys that may have a prefix or be an address.
func (v value) named(names ...string) (found []value) {
	if v.kind != isMap {
		return nil
	}
	for i, k := range v.keys {
		if k = localName(k); slices.ContainsFunc(names, func(name string) bool { return sameKey(k, name) }) {
			if m := v.member(i); m.given() {
				found = append(found, m)
			}
		}
	}
	return found
}

// sameKey compares keys as people type them: neither case nor what stands between
// words says anything.
func sameKey(a, b string) bool {
	i, j := 0, 0
	for {
		for i < len(a) && betweenWords(a[i]) {
			i++
		}
		for j < len(b) && betweenWords(b[j]) {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if lower(a[i]) != lower(b[j]) {
			return false
		}
		i, j = i+1, j+1
	}
}

func betweenWords(c byte) bool { return c == '-' || c == '_' || c == ' ' || c == '\t' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// localName gives a key or a code without its prefix or address.
func localName(key string) string { return key[strings.LastIndexAny(key, ":/#")+1:] }

// any gives the first of all that says something.
func (v value) any(names ...string) value {
	for _, m := range v.all(names...) {
		if m.given() {
			return m
		}
	}
	return noValue
}

// each gives the items of a list, or the value itself: a single thing is
// written without a list nearly everywhere.
func (v value) each() (all []value) {
	switch v.kind {
	case isNull:
		return nil
	case isList:
		for i := range v.items {
			all = append(all, value{&v.items[i], v.at + "/" + strconv.Itoa(i)})
		}
		return all
	}
	return []value{v}
}

// scalar gives the text of a text, number or boolean.
func (v value) scalar() (string, bool) {
	switch v.kind {
	case isText, isNumber, isBool:
		return v.text, true
	}
	return "", false
}

// words gives the text of a scalar, "" of anything else.
func (v value) words() string {
	s, _ := v.scalar()
	return strings.TrimSpace(s)
}
