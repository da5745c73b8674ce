package console

// edit is a line that stayed, went or came.
type edit struct {
	kind byte // ' ', '-' or '+'
	line *specLine
}

// mostEdits bounds the work and memory of a comparison.
const mostEdits = 1000

// diffLines gives the shortest way from one spec to another, by the greedy
// algorithm of Myers (1986); ok is false when it takes more than mostEdits.
func diffLines(from, to []specLine) (edits []edit, ok bool) {
	head := 0
	for head < len(from) && head < len(to) && from[head].same(&to[head]) {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail].same(&to[len(to)-1-tail]) {
		tail++
	}
	a, b := from[head:len(from)-tail], to[head:len(to)-tail]
	// furthest[k] is how far in a a path of d edits gets on diagonal k = x - y; one
	// copy per d is kept to find the way back.
	offset := min(len(a)+len(b), mostEdits) + 1
	furthest := make([]int, 2*offset+1)
	var trace [][]int
	for d := 0; d < offset; d++ {
		trace = append(trace, append([]int(nil), furthest[offset-d:offset+d+1]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && furthest[offset+k-1] < furthest[offset+k+1] {
				x = furthest[offset+k+1] // a line of b comes
			} else {
				x = furthest[offset+k-1] + 1 // a line of a goes
			}
			for x < len(a) && x-k < len(b) && a[x].same(&b[x-k]) {
				x++
			}
			furthest[offset+k] = x
			if x >= len(a) && x-k >= len(b) {
				return joinEdits(from[:head], wayBack(a, b, trace), to[len(to)-tail:]), true
			}
		}
	}
	return nil, false
}

func wayBack(a, b []specLine, trace [][]int) (edits []edit) {
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		at := func(k int) int { return trace[d][k+d] } // of the round before
		k, px, py := x-y, 0, 0
		if d > 0 {
			prev := k - 1
			if k == -d || k != d && at(k-1) < at(k+1) {
				prev = k + 1
			}
			px = at(prev)
			py = px - prev
		}
		for x > px && y > py {
			x, y = x-1, y-1
			edits = append(edits, edit{' ', &b[y]})
		}
		if d > 0 {
			if x == px {
				y--
				edits = append(edits, edit{'+', &b[y]})
			} else {
				x--
				edits = append(edits, edit{'-', &a[x]})
			}
		}
	}
	for i, j := 0, len(edits)-1; i < j; i, j = i+1, j-1 {
		edits[i], edits[j] = edits[j], edits[i]
	}
	return edits
}

func joinEdits(head []specLine, middle []edit, tail []specLine) []edit {
	edits := make([]edit, 0, len(head)+len(middle)+len(tail))
	for i := range head {
		edits = append(edits, edit{' ', &head[i]})
	}
	edits = append(edits, middle...)
	for i := range tail {
		edits = append(edits, edit{' ', &tail[i]})
	}
	return edits
}

// hunk is a stretch of a diff with some lines around it.
type hunk struct {
	Skipped int // lines left out before it
	Edits   []edit
}

// hunks leaves out what did not change, but for some lines of context.
func hunks(edits []edit, context int) (list []hunk) {
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.kind != ' ' {
			for j := max(0, i-context); j < min(len(edits), i+context+1); j++ {
				near[j] = true
			}
		}
	}
	skipped := 0
	for i, e := range edits {
		if !near[i] {
			skipped++
			continue
		}
		if i == 0 || !near[i-1] {
			list = append(list, hunk{Skipped: skipped})
			skipped = 0
		}
		h := &list[len(list)-1]
		h.Edits = append(h.Edits, e)
	}
	return list
}
