package main

import (
	"strconv"
	"strings"
	"unicode"
)

// printable makes text from a spec safe for a terminal: what cannot be seen, or
// would reorder or control the line, becomes its escape.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
