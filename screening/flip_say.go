package screening

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// say puts the change of one variable in words. taken is the option that was
// tried, allowed are all that would do.
func (x *flipper) say(v *variable, taken, allowed uint64) []Change {
	o := v.options[bits.TrailingZeros64(taken)]
	switch v.kind {
	case aTag, aHint:
		return x.sayTag(v, o)
	case aText:
		part := x.texts[v.index]
		return []Change{{Do: DoRemove, Pointer: x.e.fields[part.field].at.String(), Fact: part.fact, From: part.found,
			Span: &Span{part.start, part.end}, Say: "the text would have to do without this, wherever it stands in it"}}
	case theExamples:
		c := Change{Do: DoState, Pointer: "/evidence/examples", Fact: "examples", Say: "weir check --examples FILE fills it in; few enough of the examples may be hits"}
		if ex := x.e.spec.Evidence.Examples; ex != nil && ex.Count > 0 {
			c.Do, c.Say = DoReplace, "train on other examples, or leave out those that are hits, and screen them again"
		}
		return []Change{c}
	case aContext:
		key := contextKeys[v.index]
		c := Change{Do: DoState, Pointer: contextPointer + key.name, Fact: key.name, To: allowedValues(v, allowed)}
		if c.From = contextValue(&x.e.spec.Evidence.Context, v.index); c.From != "" {
			c.Do = DoReplace
		}
		c.Say = key.name + ": " + orList(c.To)
		switch key.name {
		case "presented_options_count":
			c.Say = "at least 2 options presented"
		case "alignment_score":
			c.Say = "an alignment score that is not below the threshold"
		}
		return []Change{c}
	}
	return []Change{x.sayFact(v, o, allowed)}
}

// contextValue is what the spec says under a key, "" if nothing.
func contextValue(c *Context, key int) string {
	flag := [...]*bool{c.HedgeEmitted, c.RecommendedHumanReview, c.DisclosureEmitted, c.GroundedInEvidence, c.PrescribedSingleAnswer, c.HighStakesTopic}
	switch {
	case key < len(flag) && flag[key] != nil:
		return strconv.FormatBool(*flag[key])
	case contextKeys[key].name == "presented_options_count" && c.PresentedOptionsCount != nil:
		return strconv.FormatInt(*c.PresentedOptionsCount, 10)
	case contextKeys[key].name == "alignment_score" && c.AlignmentScore != nil:
		return strconv.FormatFloat(*c.AlignmentScore, 'g', -1, 64)
	}
	return ""
}

func (x *flipper) sayTag(v *variable, o option) (out []Change) {
	list, name := *statements(x.e.spec, v.input), tags[v.index].name
	at := func(i int) string { return tagPointer{v.input, i}.String() }
	replace, withdraw, add := o.revised(list, v.index)
	c := Change{Fact: "tag." + name, To: []string{stateName(o.state)},
		Say: "{tag: " + name + ", state: " + stateName(o.state) + ", basis: structured}"}
	for _, i := range replace {
		c.Do, c.Pointer, c.From = DoReplace, at(i), list[i].State
		if s := stateOf(list[i].State); s == unknownState {
			c.Do = DoState
		} else if s == o.state {
			c.From += ", of a part"
		}
		out = append(out, c)
	}
	if add {
		c.Do, c.Pointer, c.From = DoState, strings.TrimSuffix(at(0), "/0"), ""
		out = append(out, c)
	}
	for _, i := range withdraw {
		out = append(out, Change{Do: DoRemove, Pointer: at(i), Fact: "tag." + name, From: list[i].State + " (" + list[i].Basis + ")",
			Say: "what the source says in words would have to be otherwise; no statement overrules it"})
	}
	return out
}

func allowedValues(v *variable, mask uint64) (out []string) {
	for i := 1; i < len(v.options); i++ {
		if mask&(1<<i) != 0 {
			out = append(out, strings.Join(v.options[i].values, ", "))
		}
	}
	return out
}

func (x *flipper) sayFact(v *variable, o option, allowed uint64) Change {
	def, now, values := &factDefs[v.index], x.e.get(v.index, v.input), x.e.values(v.index, v.input)
	c := Change{Do: DoState, Pointer: place{input: v.input, key: now.key, nth: now.nth}.String(), Fact: def.name}
	if now.stated && (!now.unknown || len(values) > 0) {
		c.Do, c.From = DoReplace, strings.Join(values, ", ")
	}
	if now.stated && c.From == "" {
		c.From = "unknown"
	}
	asked := x.asked[v.index]
	switch {
	case v.index == openPointsColumn:
		for _, code := range values {
			if slices.Contains(asked, code) {
				c.Without = append(c.Without, code)
			}
		}
		c.Do, c.Say = DoReplace, "sources without open points of the kind "+orList(c.Without)+": settle each in the spec, then take it out"
	case v.index == licenseColumn:
		return x.sayLicense(v, c, o, asked, allowed)
	case def.list && len(asked) == 0: // an expression over open text: which values it asks for is not seen
		c.To = allowedValues(v, allowed)
		c.Say = def.name + ", for example " + orList(c.To)
	case !def.list:
		c.To = allowedValues(v, allowed)
		c.Say = def.name + ": " + orList(c.To)
		switch {
		case def.name == "lineage.parents":
			c.Say = "each parent named as an input of its own, or lineage: {} where there is none"
		case def.name == "residency.allowed":
			in := x.e.spec.Inputs[v.input]
			in.moveData()
			c.Pointer = place{input: v.input, key: "/residency"}.String()
			list := func(places []string) string { return "[" + strings.Join(places, ", ") + "]" }
			c.Say = "data only where it is not excluded, as in residency: {stored_in: " + list(in.Residency.StoredIn) +
				", processed_in: " + list(in.Residency.ProcessedIn) + ", excluded: " + list(in.Residency.Excluded) + "}"
			if len(in.Residency.Excluded) > 0 {
				c.Say += "; what is excluded stays excluded"
			}
		case def.name == "documentation" && slices.Equal(c.To, documentationStates[:1]):
			described, made := x.e.spec.Inputs[v.input].documented()
			var lacking []string
			if !described {
				lacking = append(lacking, "description: …")
			}
			if !made {
				lacking = append(lacking, "creators: [{name: …}]")
			}
			c.Say = strings.Join(lacking, ", ")
		case len(c.To) == 1:
			c.Say += ", as in " + def.say
		}
	default:
		alone := func(a string) bool { // whether the list may be just this
			return slices.ContainsFunc(v.options[1:], func(opt option) bool {
				i := slices.IndexFunc(v.options, func(other option) bool { return slices.Equal(other.values, opt.values) })
				return len(opt.values) == 1 && opt.values[0] == a && allowed&(1<<i) != 0
			})
		}
		for _, a := range asked {
			if alone(a) {
				c.To = append(c.To, a)
			} else {
				c.Without = append(c.Without, a)
			}
		}
		if !slices.ContainsFunc(o.values, func(s string) bool { return slices.Contains(asked, s) }) {
			c.To = nil // it need not be any of those
			c.Say = def.name + " without " + orList(c.Without)
			if c.Do == DoReplace {
				c.Without = slices.DeleteFunc(c.Without, func(s string) bool { return !slices.Contains(values, s) })
				c.Say = def.name + " without " + orList(c.Without)
				if len(c.Without) == 0 {
					c.Say = def.name + " with all that is known, and without " + orList(asked)
				}
			}
			if len(values) == len(c.Without) {
				c.Say += ", with what holds instead"
			}
		} else {
			c.Without = nil
			c.Say = def.name + " with " + orList(c.To)
		}
	}
	return c
}

// sayLicense: a licence is what it is; another one, or another input, would be needed.
func (x *flipper) sayLicense(v *variable, c Change, o option, asked []string, allowed uint64) Change {
	status := x.e.get(licenseStatusColumn, v.input)
	c.Fact = "license"
	switch {
	case !status.stated:
		c.Do, c.From = DoState, ""
	case status.codes == secondCode:
		c.Do, c.From, c.Pointer = DoState, "unidentified", place{input: v.input, key: status.key, nth: status.nth}.String()
		if restrictions := x.e.values(licenseColumn, v.input); len(restrictions) > 0 {
			c.Do, c.From = DoReplace, cmp.Or(strings.Join(restrictions, ", "), c.From)
		}
	}
	of := ""
	if l := x.e.spec.Inputs[v.input].Lineage; l != nil && len(l.DerivedFrom)+len(l.BaseModels)+len(l.GeneratedByModels) > 0 {
		of = ", also of what it is made from"
	}
	if len(o.values) > 0 { // a term that asks for a restriction to be there
		c.To = allowedValues(v, allowed)
		c.Say = "a licence with " + orList(c.To)
		return c
	}
	c.Without = slices.Clone(asked)
	switch {
	case len(asked) == 0:
		c.Say = "a licence that is identified: an SPDX expression, a known licence, or what a person concluded under license.concluded"
	case c.Do == DoState:
		c.Say = "an identified licence without " + orList(asked) + of
	default:
		c.Say = "another licence, without " + orList(asked) + of + "; or another input"
	}
	return c
}
