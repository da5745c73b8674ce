package formats

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

func summaryOf(t *testing.T, spec *screening.Spec) *Summary {
	t.Helper()
	s, err := Summarise(spec, exportOptions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answers gives the texts of a field's answer and its gap.
func (s *Summary) answers(t *testing.T, id string) (texts []string, gap string) {
	t.Helper()
	for _, sec := range s.Sections {
		for _, f := range sec.Fields {
			if f.ID == id {
				for _, c := range f.Answer {
					texts = append(texts, c.Text)
				}
				return texts, f.Gap
			}
		}
	}
	t.Fatalf("there is no field %s", id)
	return nil, ""
}

const summarySpec = `schema: weir/spec/v1
run_ref: lab/run@1
owner: ana
objective: {kind: distill, purpose: "p"}
base_model: base
inputs:
- {id: base, kind: base_model, name: Base 7B, version: "2", uris: ["hf://lab/base"]}
- {id: big, kind: teacher, name: Big}
- id: talk
  kind: dataset
  name: "Talk\n| of * people"
  description: What people said.
  sources: [{kind: public_dataset}, {kind: web_crawl, detail: forums}]
  shape: {modalities: [text, image], size_raw: 4 GB, records: TBD, languages: [de, fr]}
  collection: {start: "2024-01", end: "2024-03-05", geography: [DE]}
  license: {tdm: reserved}
- id: crawl
  kind: dataset
  name: Crawl
  sources: [{kind: web_crawl}]
  collection: {crawler: webbot, end: "2025", description: Blogs.}
  shape: {modalities: [unknown]}
  disclosures: [{tag: tdm_reserved, state: absent, basis: structured}, {tag: deidentified, state: not_assessed, basis: prose, detail: Names are masked.}]
- {id: bought, kind: dataset, name: Bought, sources: [{kind: licensed}], dates: {retrieved: last summer}, shape: {modalities: [audio]}}
- {id: logs, kind: dataset, sources: [{kind: user_interactions}, {kind: user_other_services}], description: TBD}
- {id: made, kind: dataset, name: Made, sources: [{kind: human_authored}], lineage: {generated_by_models: [{ref: base}, {label: Another model}]}}
- {id: silent, kind: dataset, name: Silent}
`

// TestSummary: each field says what the spec states, and what it does not.
func TestSummary(t *testing.T) {
	t.Parallel()
	parsed, err := screening.ParseSpec([]byte(summarySpec))
	if err != nil {
		t.Fatal(err)
	}
	s := summaryOf(t, parsed.Spec)
	const talk = "Talk | of * people"
	for _, tt := range []struct {
		field   string
		answers []string
		gap     string // a part of it; "" = none
	}{
		{"1.1/name", nil, "the provider fills it in"},
		{"1.2/name", []string{"lab/run@1"}, "name of the training run"},
		{"1.2/dependencies", []string{"Base 7B, version 2, hf://lab/base"}, "link to the summary"},
		{"1.3/text", []string{talk + ": text; size 4 GB"}, "choose the size of all together: less than 1 billion"},
		{"1.3/text_content", []string{talk + ": What people said."}, "not stated which modalities are in: Crawl, logs, Made, Silent"},
		{"1.3/audio", []string{"Bought: audio"}, "or more than 1 million hours; it is not stated"},
		{"1.3/audio_content", nil, "not every data set of this modality is described"},
		{"1.3/video", nil, "that there is none is not stated"},
		{"1.3/acquired", []string{"2025, of Crawl"}, "no date of collection for: logs, Made, Silent; dates that cannot be compared: Bought (last summer)"},
		{"1.3/languages", []string{talk + ": de, fr"}, "languages not stated for: Crawl, Bought, logs, Made, Silent"},
		{"1.3/characteristics", []string{talk + ": DE"}, "places not stated for: Crawl"},
		{"2.1/used", []string{"Yes: " + talk}, ""},
		{"2.1/modalities", []string{talk + ": text, image"}, ""},
		{"2.1/list", []string{talk}, "say which are large"},
		{"2.2.1/used", []string{"Yes: Bought"}, ""},
		{"2.2.2/used", nil, "that there is none is not stated"},
		{"2.2.2/list", nil, "asked for if the answer above is yes"},
		{"2.3/used", []string{"Yes: Crawl"}, "say who crawled: " + talk},
		{"2.3/crawlers", []string{"Crawl: webbot"}, ""},
		{"2.3/period", []string{"Crawl: 2025"}, "first day not stated for: Crawl"},
		{"2.3/content", []string{"Crawl: Blogs."}, ""},
		{"2.3/modalities", nil, "modalities not stated for: Crawl"},
		{"2.3/domains", nil, "no list of domains"},
		{"2.4/interactions", []string{"Yes: logs"}, ""},
		{"2.4/services", []string{"Yes: logs"}, ""},
		{"2.4/services_used", nil, "description not stated for: logs"},
		{"2.5/used", []string{"Yes: Made", "Yes: output of the teacher Big"}, ""},
		{"2.5/models", []string{"Base 7B, version 2, hf://lab/base", "Another model", "Big"}, "general-purpose models"},
		{"2.6/used", []string{"Yes: Made, human_authored"}, ""},
		{"2.6/open", nil, "may lack it: Silent"},
		{"3.1/code_of_practice", nil, "the provider fills it in"},
		{"3.1/measures", []string{talk + ": rights are reserved", "Crawl: no reservation was found"}, "the measures are not in a spec"},
		{"3.2/measures", nil, "the provider fills it in"},
		{"3.3/processing", []string{"Crawl: Names are masked."}, "may not name all"},
	} {
		got, gap := s.answers(t, tt.field)
		if diff := cmp.Diff(tt.answers, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.field, diff)
		}
		if !strings.Contains(gap, tt.gap) || (tt.gap == "") != (gap == "") {
			t.Errorf("%s: gap %q, want %q", tt.field, gap, tt.gap)
		}
	}
	for _, pointer := range []string{"/owner", "/objective/kind", "/objective/purpose", "/inputs/2/shape/records", "/inputs/3/shape/modalities/0", "/inputs/5/description", "/inputs/7/name"} {
		if !slices.Contains(s.NotHeld, pointer) {
			t.Errorf("%s is not listed as not held: %v", pointer, s.NotHeld)
		}
	}
	for _, pointer := range []string{"/run_ref", "/base_model", "/inputs/0/name", "/inputs/2/name", "/inputs/2/sources/1", "/inputs/3/collection/crawler"} {
		if slices.Contains(s.NotHeld, pointer) != (pointer == "/inputs/2/sources/1") { // whose crawl it is is open
			t.Errorf("%s: listed as not held: %v", pointer, s.NotHeld)
		}
	}
}

// TestSummaryDeniesOnlyWhatIsDenied: no is an answer only where every data set
// says it in a coded way, of its whole.
func TestSummaryDeniesOnlyWhatIsDenied(t *testing.T) {
	t.Parallel()
	const absent = `{tag: synthetic, state: absent, basis: structured}, {tag: model_generated, state: absent, basis: structured}`
	for name, tt := range map[string]struct {
		run, one, two string
		no            bool
	}{
		"each data set":       {"", absent, absent, true},
		"the run":             {absent, "", "", true},
		"one of two":          {"", absent, "", false},
		"one of two tags":     {"", absent, `{tag: synthetic, state: absent, basis: structured}`, false},
		"in prose":            {"", absent, strings.ReplaceAll(absent, "structured", "prose"), false},
		"of a part":           {"", absent, strings.ReplaceAll(absent, "basis", "scope: train, basis"), false},
		"beside unknown":      {`{tag: synthetic, state: unknown, basis: structured}`, absent, absent, false},
		"beside inferred":     {`{tag: synthetic, state: present, basis: inferred}`, absent, absent, false},
		"nothing is stated":   {"", "", "", false},
		"present for the run": {`{tag: synthetic, state: present, basis: structured}`, absent, absent, false},
	} {
		parsed, err := screening.ParseSpec([]byte("schema: weir/spec/v1\nrun_ref: r\nowner: o\nobjective: {kind: sft}\ndisclosures: [" + tt.run + "]\ninputs:\n" +
			"- {id: a, kind: dataset, disclosures: [" + tt.one + "]}\n- {id: b, kind: dataset, disclosures: [" + tt.two + "]}\n"))
		if err != nil {
			t.Fatal(name, err)
		}
		s := summaryOf(t, parsed.Spec)
		got, _ := s.answers(t, "2.5/used")
		if no := len(got) == 1 && strings.HasPrefix(got[0], "No"); no != tt.no {
			t.Errorf("%s: %v", name, got)
		}
		for _, sec := range s.Sections {
			for _, f := range sec.Fields {
				for _, c := range f.Answer {
					if f.ID != "2.5/used" && strings.HasPrefix(c.Text, "No") {
						t.Errorf("%s: %s answers %s", name, f.ID, c.Text)
					}
				}
			}
		}
	}
	none := summaryOf(t, &screening.Spec{RunRef: "r"})
	if got, gap := none.answers(t, "2.5/used"); len(got) > 0 || gap == "" {
		t.Errorf("without data: %v", got)
	}
}

// TestSummaryStandsOnTheSpec: whatever the spec, every answer points to what it
// stands on, every field without one is a gap, every gap is listed, and of what
// the spec says each is either used or listed as not held.
func TestSummaryStandsOnTheSpec(t *testing.T) {
	t.Parallel()
	for name, spec := range specsOfAllKinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := summaryOf(t, spec)
			tree, err := treeOf(spec)
			if err != nil {
				t.Fatal(err)
			}
			var gaps []SummaryGap
			seen := map[string]bool{}
			for _, sec := range s.Sections {
				for _, f := range sec.Fields {
					if seen[f.ID] || !strings.HasPrefix(f.ID, sec.Number+"/") {
						t.Errorf("%s: twice, or of another section", f.ID)
					}
					seen[f.ID] = true
					if f.Gap != "" {
						gaps = append(gaps, SummaryGap{f.ID, f.Gap})
					}
					want := map[[2]bool]SummaryState{{true, false}: Provided, {true, true}: PartlyProvided, {false, true}: NotProvided}[[2]bool{len(f.Answer) > 0, f.Gap != ""}]
					if f.State != want {
						t.Errorf("%s is %q, want %q", f.ID, f.State, want)
					}
					for _, c := range f.Answer {
						if c.Text == "" || len(c.From) == 0 || strings.ContainsAny(c.Text, "\n\r\t") {
							t.Errorf("%s: a claim that says nothing, stands on nothing or has lines: %+v", f.ID, c)
						}
						for _, pointer := range c.From {
							if _, ok := find(tree, pointer); !ok {
								t.Errorf("%s stands on %s, which is not in the spec", f.ID, pointer)
							}
							if slices.Contains(s.NotHeld, pointer) {
								t.Errorf("%s stands on %s, which is listed as not held", f.ID, pointer)
							}
						}
					}
				}
			}
			if diff := cmp.Diff(gaps, s.Gaps); diff != "" {
				t.Errorf("gaps (-fields +listed)\n%s", diff)
			}
			for _, pointer := range s.NotHeld {
				if _, ok := find(tree, pointer); !ok {
					t.Errorf("%s is not in the spec", pointer)
				}
			}
			if again := summaryOf(t, spec); cmp.Diff(s, again) != "" {
				t.Error("a second summary differs")
			}
		})
	}
}
