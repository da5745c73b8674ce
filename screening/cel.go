package screening

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

const (
	// celCostLimit stops an expression that would take seconds; hitting it is a failure, and a failure escalates.
	celCostLimit = 100_000
	maxCELBytes  = 4096
)

// celClause is {cel: "…"}: an expression over `spec` and, in a per-input term,
// `input`. Facts that are not stated are CEL unknowns, so || && exists all and
// has follow the same three-valued logic as the other clauses.
type celClause struct {
	program cel.Program
	perSpec bool
	facts   []string // facts the text names, for evidence: "input.license.restrictions"
}

func compileCEL(expr string, perSpec bool) (clause, error) {
	if len(expr) > maxCELBytes {
		return nil, fmt.Errorf("is longer than 4 KiB")
	}
	options := []cel.EnvOption{cel.Variable("spec", cel.DynType)}
	if !perSpec {
		options = append(options, cel.Variable("input", cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(expr)
	if issues.Err() != nil {
		return nil, fmt.Errorf("does not compile: %s", firstLine(issues.Err().Error()))
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("gives %s; it must give true (violated) or false", t)
	}
	named, err := celFacts(checked.NativeRep().Expr())
	if err != nil {
		return nil, err
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("names no fact of the spec, so it could never change")
	}
	program, err := env.Program(checked, cel.CostLimit(celCostLimit), cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return nil, err
	}
	return &celClause{program: program, perSpec: perSpec, facts: named}, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// celNames walks an expression for the facts that it names and refuses names
// that are none, so that a misspelt one fails when the pack loads.
type celNames struct {
	aliases map[string]bool // variables that run over spec.inputs
	inner   map[int64]bool  // operands of a longer path, already looked at
	named   []string        // "input.license.restrictions", in the order of the text
	err     error
}

func celFacts(root ast.Expr) ([]string, error) {
	n := &celNames{aliases: map[string]bool{}, inner: map[int64]bool{}}
	// Comprehensions first: a variable is used before its own node is met.
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			if path, ok := n.path(c.IterRange(), map[int64]bool{}); ok && path == "spec.inputs" && !c.HasIterVar2() {
				n.aliases[c.IterVar()] = true
			}
		}
	}))
	ast.PreOrderVisit(root, ast.NewExprVisitor(n.visit))
	return n.named, n.err
}

func (n *celNames) visit(e ast.Expr) {
	if n.inner[e.ID()] || n.err != nil {
		return
	}
	path, ok := n.path(e, n.inner)
	if !ok || path == "spec.inputs" {
		return
	}
	variable, name, _ := strings.Cut(path, ".")
	switch {
	case name == "":
		n.err = fmt.Errorf("uses %s as a value; name one of its facts", variable)
	case !knownPath(name, variable == "spec"):
		n.err = fmt.Errorf("names %s, which is not a fact; see docs/packs.md for the list", path)
	case !slices.Contains(n.named, path):
		n.named = append(n.named, path)
	}
}

// path gives "input.license.restrictions" for an expression that reads a fact.
// A variable over spec.inputs counts as an input, written "inputs".
func (n *celNames) path(e ast.Expr, inner map[int64]bool) (string, bool) {
	var parts []string
	for cur := e; ; inner[cur.ID()] = true {
		switch cur.Kind() {
		case ast.SelectKind:
			parts = append(parts, cur.AsSelect().FieldName())
			cur = cur.AsSelect().Operand()
		case ast.CallKind:
			call := cur.AsCall()
			if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
				return "", false
			}
			parts = append(parts, fmt.Sprint(call.Args()[1].AsLiteral().Value()))
			cur = call.Args()[0]
		case ast.IdentKind:
			root := cur.AsIdent()
			switch {
			case n.aliases[root]:
				root = "inputs"
			case root != "spec" && root != "input":
				return "", false
			}
			slices.Reverse(parts)
			return strings.Join(append([]string{root}, parts...), "."), true
		default:
			return "", false
		}
	}
}

func knownPath(name string, perSpec bool) bool {
	if t, ok := strings.CutPrefix(name, "tags."); ok {
		_, known := tagIndex[t]
		return known
	}
	_, known := factAt(name, perSpec)
	return known
}

// factAt finds the place in factDefs of a fact of the spec or of an input by its bare name.
func factAt(name string, perSpec bool) (col int, ok bool) {
	col, ok = factIndex[name]
	return col, ok && factDefs[col].perSpec == perSpec
}

func (c *celClause) eval(e *evaluation, input int) (value, *types.Unknown) {
	vars := map[string]any{"spec": celView{e: e, input: wholeSpec}}
	if !c.perSpec {
		vars["input"] = celView{e: e, input: input}
	}
	partial, err := cel.PartialVars(vars)
	if err != nil {
		e.fail("the expression could not be set up")
		return silent, nil
	}
	out, _, err := c.program.Eval(partial)
	switch v := out.(type) {
	case *types.Unknown:
		return c.openValue(e, v), v
	case types.Bool:
		if err == nil {
			if v {
				return yesValue, nil
			}
			return no, nil
		}
	}
	if err != nil {
		e.fail("the expression failed: %s", firstLine(err.Error()))
	} else {
		e.fail("the expression gave neither true nor false")
	}
	return silent, nil
}

// openValue tells plain silence from a hint among the unknowns of a result.
func (c *celClause) openValue(e *evaluation, u *types.Unknown) value {
	for _, id := range u.IDs() {
		if input, col := celUnknownAt(id); col >= len(factDefs) && e.tags[input+1].hint&(1<<(col-len(factDefs))) != 0 {
			return hinted
		}
	}
	return silent
}

func (c *celClause) value(e *evaluation, input int) value {
	v, _ := c.eval(e, input)
	return v
}

func (c *celClause) explain(e *evaluation, input int, x *explanation) {
	v, open := c.eval(e, input)
	if v.known() {
		x.because("the stated facts do not meet the condition", c.evidence(e, input)...)
		if v == yesValue {
			x.reasons[len(x.reasons)-1] = "the stated facts meet the condition"
		}
		return
	}
	if open == nil {
		return // it failed, and the term with it
	}
	var needed []Statement
	decidable := true
	for _, id := range open.IDs() {
		at, col := celUnknownAt(id)
		var sub explanation
		if col >= len(factDefs) {
			tagClause{tag: col - len(factDefs), want: present}.explain(e, at, &sub)
		} else {
			factClause{col: col}.explain(e, at, &sub)
		}
		x.evidence = append(x.evidence, sub.evidence...)
		x.reasons = append(x.reasons, sub.reasons...)
		if len(sub.open) == 0 {
			decidable = false
			continue
		}
		needed = merge(needed, sub.open[0])
	}
	if decidable {
		x.open = [][]Statement{needed}
	}
}

// evidence gives the facts that the expression names, as far as they are stated.
func (c *celClause) evidence(e *evaluation, input int) (all []Evidence) {
	for _, path := range c.facts {
		variable, name, _ := strings.Cut(path, ".")
		places := []int{input}
		switch variable {
		case "spec":
			places = []int{wholeSpec}
		case "inputs":
			places = places[:0]
			for i := range e.spec.Inputs {
				places = append(places, i)
			}
		}
		for _, at := range places {
			if ev, ok := e.evidence(name, at); ok {
				all = append(all, ev)
			}
		}
	}
	return all
}

// evidence gives a fact or tag by its bare name, if it is known.
func (f *facts) evidence(name string, input int) (Evidence, bool) {
	if t, ok := strings.CutPrefix(name, "tags."); ok {
		ti := tagIndex[t]
		state := f.tags[input+1].state(ti)
		return Evidence{Name: "tag." + t, Value: stateName(state), Pointer: f.statedAt(ti, input).String()}, state != notAssessed
	}
	col, ok := factAt(name, input == wholeSpec)
	if !ok {
		return Evidence{}, false
	}
	return Evidence{Name: name, Value: strings.Join(f.values(col, input), ", "), Pointer: f.pointer(col, input)}, f.get(col, input).stated
}

// CEL identifies an unknown by a number; ours carry the input and the column of
// the fact (tags follow the facts), so that an answer can say what is missing.
// Every unknown of a result is one of ours: nothing else is given to CEL as such.
const celUnknownBase = 1 << 40

func celUnknown(input, col int) *types.Unknown {
	return types.NewUnknown(celUnknownBase+int64(input+1)*1000+int64(col), types.NewAttributeTrail("fact"))
}

func celUnknownAt(id int64) (input, col int) {
	id -= celUnknownBase
	return int(id/1000) - 1, int(id % 1000)
}

// celView shows the facts of one input, or of the spec, to CEL as nested maps.
type celView struct {
	e      *evaluation
	input  int
	prefix string // "" or "license."
}

var _ traits.Mapper = celView{}

func (v celView) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	name := v.prefix + string(k)
	if v.input == wholeSpec && name == "inputs" {
		views := make([]ref.Val, len(v.e.spec.Inputs))
		for i := range views {
			views[i] = celView{e: v.e, input: i}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, views), true
	}
	if t, isTag := strings.CutPrefix(name, "tags."); isTag {
		ti, known := tagIndex[t]
		if !known {
			return nil, false
		}
		row := &v.e.tags[v.input+1]
		state := row.state(ti)
		if state == notAssessed || state == unknownState || row.open(ti) {
			return celUnknown(v.input, len(factDefs)+ti), true
		}
		return types.String(stateName(state)), true
	}
	if col, known := factAt(name, v.input == wholeSpec); known {
		return v.fact(col), true
	}
	for _, d := range factDefs {
		if strings.HasPrefix(d.name, name+".") && d.perSpec == (v.input == wholeSpec) {
			return celView{e: v.e, input: v.input, prefix: name + "."}, true
		}
	}
	if name == "tags" {
		return celView{e: v.e, input: v.input, prefix: "tags."}, true
	}
	return nil, false
}

func (v celView) fact(col int) ref.Val {
	f, list := v.e.get(col, v.input), factDefs[col].list
	if !f.stated || !list && f.unknown {
		return celUnknown(v.input, col)
	}
	all := v.e.values(col, v.input)
	if !list {
		return types.String(all[0])
	}
	values := make([]ref.Val, 0, len(all)+1)
	for _, s := range all {
		if s != "unknown" { // the code is no value: it says that there may be others
			values = append(values, types.String(s))
		}
	}
	if !f.unknown {
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
	more := celUnknown(v.input, col)
	return openList{types.NewRefValList(types.DefaultTypeAdapter, append(values, more)), more}
}

// openList is a list that may have more values than are known. A macro meets
// the unknown as its last element; everything else answers no more than is known.
type openList struct {
	traits.Lister
	more *types.Unknown
}

func (l openList) Contains(v ref.Val) ref.Val {
	if l.Lister.Contains(v) == types.True {
		return types.True
	}
	return l.more
}

// Fold is how the macros go through a list; without it they would ask for its size.
func (l openList) Fold(f traits.Folder) { l.Lister.(traits.Foldable).Fold(f) }

func (l openList) Get(ref.Val) ref.Val   { return l.more }
func (l openList) Add(ref.Val) ref.Val   { return l.more }
func (l openList) Equal(ref.Val) ref.Val { return l.more }
func (l openList) Size() ref.Val         { return l.more }

func (v celView) Get(key ref.Val) ref.Val {
	if val, ok := v.Find(key); ok {
		return val
	}
	return types.NewErr("no such key: %v", key)
}

func (v celView) Contains(key ref.Val) ref.Val {
	_, ok := v.Find(key)
	return types.Bool(ok)
}

func (v celView) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, nil).Iterator()
}
func (v celView) Size() ref.Val { return types.NewErr("a group of facts has no size") }

func (v celView) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a group of facts is not a value")
}
func (v celView) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("a group of facts is not a value")
}
func (v celView) Equal(ref.Val) ref.Val { return types.NewErr("a group of facts cannot be compared") }
func (v celView) Type() ref.Type        { return types.MapType }
func (v celView) Value() any            { return v }
