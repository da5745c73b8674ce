package formats

import (
	"errors"
	"path"
	"testing"

	"weir/screening"
)

// FuzzRead: whatever the bytes, a file ends as an import whose values all point
// into it and whose draft is a spec, or as a refusal with a reason.
func FuzzRead(f *testing.F) {
	for name, data := range filesBelow(f, fixtures) {
		f.Add(path.Base(name), data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if len(data) > 64<<10 {
			return // size has tests of its own
		}
		im, err := Read(name, data)
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason == "" || im != nil {
				t.Fatalf("got %v, %v", im, err)
			}
			return
		}
		checkImport(t, name, data, im)
		draftOf(t, im)
	})
}

// FuzzMerge: two files of whatever kind make one spec, or an error.
func FuzzMerge(f *testing.F) {
	card := []byte(cardOf("pretty_name: d\nlicense: mit\nsource_datasets: [extended|lab/talk]"))
	for name, data := range filesBelow(f, fixtures) {
		f.Add(path.Base(name), data, "c.md", card)
		f.Add("a.yaml", []byte(runOfTwo), path.Base(name), data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte, name2 string, data2 []byte) {
		if len(data)+len(data2) > 64<<10 {
			return
		}
		a, err := Read(name, data)
		if err != nil {
			return
		}
		b, err := Read(name2, data2)
		if err != nil {
			return
		}
		draftOf(t, a, b)
	})
}

func draftOf(t *testing.T, ims ...*Import) {
	d, err := Merge(ims, Options{})
	if err != nil {
		return
	}
	d.Spec.RunRef, d.Spec.Owner = "r", "ana"
	if d.Spec.Objective.Kind == "" {
		d.Spec.Objective.Kind = "sft"
	}
	raw, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 900<<10 {
		return // many inputs with much text can outgrow a spec, which then is refused
	}
	if _, err := screening.ParseSpec(raw); err != nil {
		t.Fatalf("the draft is no spec: %v", err)
	}
}
