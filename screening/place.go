package screening

import "strconv"

// place is where something stands in a spec. It becomes a JSON pointer only for somebody who reads it.
type place struct {
	input int    // index of the input, or wholeSpec
	key   string // "/license/declared"
	nth   int    // of the list at key, from 1; 0 = key itself
	sub   string // "/spdx": a key of that item
}

func (p place) String() string {
	s := p.key
	if p.input != wholeSpec {
		s = inputPointer(p.input) + s
	}
	if p.nth > 0 {
		s += "/" + strconv.Itoa(p.nth-1)
	}
	return s + p.sub
}
