package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// genSpec is a training spec as an engineer writes one: eight data sets with their provenance, the tags that the policy
// asks for, and a purpose of about 500 words. A dirty one breaks a few rules.
type genSpec struct {
	json  []byte
	dirty bool
}

type object = map[string]any

// genSpecs gives n specs, every second one dirty. The same n gives the same specs.
func genSpecs(n int) []genSpec {
	specs := make([]genSpec, n)
	for i := range specs {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		specs[i] = genSpec{dirty: i%2 == 1}
		if specs[i].dirty {
			specs[i].json = genJSON(rng, i/2%ruleCount, 1+rng.IntN(4))
		} else {
			specs[i].json = genJSON(rng, 0, 0)
		}
	}
	return specs
}

// genJSON gives a spec that breaks a number of rules: the given one and others.
func genJSON(rng *rand.Rand, rule, broken int) []byte {
	spec := object{
		"schema": "weir/spec/v1", "run_ref": fmt.Sprintf("nlp/support-bot@%d", rng.IntN(1000)), "owner": "ana",
		"objective":            object{"kind": "sft", "purpose": prose(rng, 460), "purposes": []string{"customer_support"}},
		"disclosure_statement": "It may err.",
	}
	// All tags are stated for the spec, some of them for an input as well.
	perInput := make([][]object, 8)
	var whole []object
	for i, r := range tagRules {
		state := map[string]string{"present": "absent", "absent": "present"}[r.state]
		d := object{"tag": r.tag, "state": state, "basis": "structured"}
		whole = append(whole, d)
		if i%8 == 0 {
			at := rng.IntN(len(perInput))
			perInput[at] = append(perInput[at], d)
		}
	}
	inputs := make([]object, 8)
	for i := range inputs {
		inputs[i] = genInput(rng, i)
		if perInput[i] != nil {
			inputs[i]["disclosures"] = perInput[i]
		}
	}
	spec["disclosures"], spec["inputs"] = whole, inputs
	for range broken {
		soil(rng, rule, spec, whole, inputs)
		rule = rng.IntN(ruleCount)
	}
	return ordered(spec)
}

func genInput(rng *rand.Rand, i int) object {
	lineage := object{"derived_from": []object{}}
	if i > 0 && rng.IntN(2) == 0 {
		lineage["derived_from"] = []object{{"ref": fmt.Sprintf("d%d", rng.IntN(i))}}
	}
	return object{
		"id": fmt.Sprintf("d%d", i), "kind": "dataset", "name": words[rng.IntN(len(words))],
		"revision":          hex(rng, 40),
		"sources":           []object{{"kind": pick(rng, "licensed", "public_dataset", "human_authored")}},
		"license":           object{"declared": []object{{"spdx": pick(rng, openLicenses...)}}, "tdm": "not_reserved"},
		"consent":           object{"status": pick(rng, "documented", "not_applicable")},
		"lineage":           lineage,
		"trust_remote_code": false,
	}
}

// soil breaks one rule of the policy, by its place among all of them.
func soil(rng *rand.Rand, rule int, spec object, whole, inputs []object) {
	in := inputs[rng.IntN(len(inputs))]
	if rule < len(tagRules) {
		r := tagRules[rule]
		if rng.IntN(2) == 0 {
			whole[rule]["state"] = r.state
		} else {
			in["disclosures"] = []object{{"tag": r.tag, "state": r.state, "basis": "structured"}}
		}
		return
	}
	license := in["license"].(object)
	switch rule -= len(tagRules); rule {
	case 0:
		license["declared"] = []object{{"spdx": pick(rng, noncommercialLicenses...)}}
	case 1:
		license["declared"] = []object{{"spdx": "see the website"}}
	case 2:
		in["revision"] = "main"
	case 3:
		in["consent"] = object{"status": "absent"}
	case 4:
		license["tdm"] = "reserved"
	case 5:
		in["sources"] = []object{{"kind": "licensed"}, {"kind": pick(rng, "private_third_party", "user_other_services")}}
	case 6:
		in["trust_remote_code"] = true
	case 7:
		in["lineage"] = object{"derived_from": []object{{"ref": "elsewhere"}}}
	default:
		phrases := phraseRules[rule-len(provenanceRules)].phrases
		objective := spec["objective"].(object)
		text := strings.Fields(objective["purpose"].(string))
		text[1+rng.IntN(len(text)-2)] = pick(rng, phrases...)
		objective["purpose"] = strings.Join(text, " ")
	}
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

func hex(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte("0123456789abcdef"[rng.IntN(16)])
	}
	return b.String()
}

// prose is text in whole sentences from ordinary words, the frequent ones often.
func prose(rng *rand.Rand, n int) string {
	zipf := rand.NewZipf(rng, 1.2, 4, uint64(len(words)-1))
	var b strings.Builder
	left := 0
	for range n {
		w := words[zipf.Uint64()]
		if left == 0 {
			if b.Len() > 0 {
				b.WriteString(". ")
			}
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
			left = 8 + rng.IntN(16)
			continue
		}
		b.WriteByte(' ')
		b.WriteString(w)
		left--
	}
	return b.String() + "."
}

// words are English words in about the order of their frequency.
var words = strings.Fields(`the of and to a in is for that on with as be by it are this from or an at which we not have can
	was their more has will our but they all one were these also other its about when than use new data model models time may
	some such only most people work each between into used two first during using over after where them many based should
	language training system information both number so well research would part results through study methods set how what
	because then high same different small case order way large given need within example text systems been there process
	general following important form since response level found under further questions support customer answers product
	account service agents billing order delivery refund password device question request reply message email phone team
	company website issue problem solution steps guide policy help center knowledge article history conversation ticket
	priority tone friendly accurate helpful short clear polite answer quality feedback score review human reviewer language
	translation summary classification intent category topic entity name date amount currency country region market legal
	compliance retention privacy consent license source public licensed dataset collection sampled filtered removed cleaned
	duplicate records documents pages tokens sentences words paragraphs labels annotators guidelines agreement measured
	evaluated baseline improved compared metric precision recall error rate test validation split held out experiments
	training run epochs batch learning rate schedule warmup optimizer weights checkpoint deployed monitored updated weekly
	monthly quarterly version release changes limitations known risks intended users operators developers managers security
	incident report escalate handle refuse unsafe harmful content sensitive personal medical financial advice professional
	emergency local regional national international government public transport education school university library museum
	hospital energy water climate weather agriculture food retail travel insurance banking software hardware network cloud
	storage database server client application interface design testing maintenance documentation tutorial manual`)

// ordered writes the spec with its keys in the order of the documentation, as people do.
func ordered(spec object) []byte {
	var b strings.Builder
	write(&b, spec)
	return []byte(b.String())
}

var keyOrder = func() map[string]int {
	m := map[string]int{}
	for i, k := range strings.Fields(`schema run_ref owner objective kind purpose purposes id name revision sources
		license declared spdx tdm consent status lineage derived_from ref trust_remote_code inputs disclosures tag state basis
		disclosure_statement`) {
		m[k] = i
	}
	m["id"], m["kind"] = -2, -1
	return m
}()

func write(b *strings.Builder, v any) {
	list := func(n int, item func(i int)) {
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			item(i)
		}
		b.WriteByte(']')
	}
	switch v := v.(type) {
	case object:
		b.WriteByte('{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "%q:", k)
			write(b, v[k])
		}
		b.WriteByte('}')
	case []object:
		list(len(v), func(i int) { write(b, v[i]) })
	case []string:
		list(len(v), func(i int) { write(b, v[i]) })
	default:
		out, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings and truth values only
		}
		b.Write(out)
	}
}
