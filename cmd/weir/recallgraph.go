package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"weir/cmd/weir/client"
)

// graphFormat gives what draws a report for a file, by its name; nil without one.
func graphFormat(file string) (func(*client.RecallReport) string, error) {
	switch ext := strings.ToLower(filepath.Ext(file)); {
	case file == "":
		return nil, nil
	case ext == ".dot" || ext == ".gv":
		return drawDOT, nil
	case ext == ".mmd" || ext == ".mermaid":
		return drawMermaid, nil
	}
	return nil, errors.New("--graph must end in .dot (Graphviz) or .mmd (Mermaid)")
}

// recallGraph is the ways of a report put together: from the recalled data, by
// names, to screenings.
type recallGraph struct {
	nodes []graphNode
	edges [][2]int
	index map[string]int
	drawn map[[2]int]bool
}

type graphNode struct {
	label string
	kind  string // recalled, name, or the status of a screening
}

func newRecallGraph(r *client.RecallReport) *recallGraph {
	g := &recallGraph{index: map[string]int{}, drawn: map[[2]int]bool{}}
	recalled := g.node("recalled", recallData(&r.RecallState), "recalled")
	for _, h := range r.Screenings {
		from := recalled
		for i, step := range h.Path {
			if i > 0 {
				to := g.node("name "+step.Fingerprint, stepWords(step), "name")
				g.edge(from, to)
				from = to
			}
		}
		g.edge(from, g.node("screening "+h.Screening, h.RunRef+" ("+h.Status+")", h.Status))
	}
	return g
}

func (g *recallGraph) node(id, label, kind string) int {
	if i, ok := g.index[id]; ok {
		return i
	}
	const longest = 96
	if runes := []rune(label); len(runes) > longest {
		label = string(runes[:longest/2]) + "..." + string(runes[len(runes)-longest/2:])
	}
	g.index[id] = len(g.nodes)
	g.nodes = append(g.nodes, graphNode{printable(label), kind})
	return len(g.nodes) - 1
}

func (g *recallGraph) edge(from, to int) {
	if e := [2]int{from, to}; !g.drawn[e] {
		g.drawn[e] = true
		g.edges = append(g.edges, e)
	}
}

// drawDOT writes a report as a Graphviz graph: dot -Tsvg draws it.
func drawDOT(r *client.RecallReport) string {
	g := newRecallGraph(r)
	var b strings.Builder
	b.WriteString("digraph recall {\n    rankdir=LR;\n    node [shape=box, fontname=\"sans-serif\"];\n")
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, n := range g.nodes {
		style := ""
		switch n.kind {
		case "recalled":
			style = ", style=filled, fillcolor=black, fontcolor=white"
		case "name":
			style = ", shape=ellipse"
		case "revoked", "blocked":
			style = ", style=filled, fillcolor=\"#f4c7c3\""
		}
		fmt.Fprintf(&b, "    n%d [label=\"%s\"%s];\n", i, text.Replace(n.label), style)
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "    n%d -> n%d;\n", e[0], e[1])
	}
	return b.String() + "}\n"
}

// drawMermaid writes a report as a Mermaid flow chart, which many pages draw.
func drawMermaid(r *client.RecallReport) string {
	g := newRecallGraph(r)
	var b strings.Builder
	b.WriteString("flowchart LR\n    classDef recalled fill:#000,color:#fff\n    classDef ended fill:#f4c7c3,color:#000\n")
	// In a label, a program may take these for markup.
	text := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;")
	for i, n := range g.nodes {
		left, right, class := `["`, `"]`, ""
		switch n.kind {
		case "recalled":
			class = ":::recalled"
		case "name":
			left, right = `(["`, `"])`
		case "revoked", "blocked":
			class = ":::ended"
		}
		fmt.Fprintf(&b, "    n%d%s%s%s%s\n", i, left, text.Replace(n.label), right, class)
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "    n%d --> n%d\n", e[0], e[1])
	}
	return b.String()
}
