package main

import (
	"strconv"
	"strings"
	"unicode"
)

// printable makes text from a spec safe for a terminal: what cannot be seen, or
// would reorder or control the line, becomes its escape. So does what a runner of
// CI jobs would take for a command wherever it stands.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return strings.ReplaceAll(b.String(), "##[", `#\x23[`)
}
