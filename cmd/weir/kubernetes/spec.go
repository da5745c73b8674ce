package kubernetes

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

// WorkloadInput is the id of the input that stands for the object's workload. A
// spec may declare it, with kind code, to state its licence and what else is
// known; digests and images are added to it.
const WorkloadInput = "workload"

// ManifestSpec gives the spec that would be screened for a manifest in YAML or
// JSON. The API server fills in defaults before it asks, so its digest is another
// one. The error says what is wrong with the manifest or its spec.
func ManifestSpec(name string, manifest []byte) ([]byte, error) {
	var raw jsontext.Value
	if err := screening.Decode("manifest", name, manifest, &raw); err != nil {
		return nil, err
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, errors.New("the manifest has no apiVersion and kind")
	}
	group, version, _ := strings.Cut(object.APIVersion, "/")
	k, ok := kindOf(group, version, object.Kind)
	if !ok {
		return nil, errors.New("the manifest is of a kind that is not gated; gated are " + kindNames())
	}
	o, err := readObject(k, raw)
	if err != nil {
		return nil, err
	}
	return specOf(o)
}

// specOf gives the bytes that are screened: the annotation's spec with the
// workload as an input, in the form of RFC 8785. The error is for the person who
// wrote the object.
func specOf(o *object) ([]byte, error) {
	if !o.hasSpec || strings.TrimSpace(o.spec) == "" {
		return nil, refusal("the annotation " + SpecAnnotation + " is missing; it has to hold the training spec")
	}
	spec, err := screening.ParseSpec([]byte(o.spec))
	if bad := (*screening.InvalidError)(nil); errors.As(err, &bad) {
		return nil, refusal(invalidWords(bad, true))
	} else if err != nil {
		return nil, err
	}
	if err := checkData(o, spec.Spec); err != nil {
		return nil, err
	}
	var doc map[string]jsontext.Value
	if err := json.Unmarshal(spec.JSON(), &doc); err != nil {
		return nil, err
	}
	if o.team != "" && cmp.Or(spec.Team, o.team) != o.team {
		return nil, refusal("the label " + TeamLabel + " and the spec's team differ; keep one")
	}
	if o.team != "" && spec.Team == "" {
		if doc["team"], err = json.Marshal(o.team); err != nil {
			return nil, err
		}
	}
	if doc["inputs"], err = withWorkload(o, spec.Spec, doc["inputs"]); err != nil {
		return nil, err
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return screening.Canonical(out)
}

// checkData refuses an object that loads data the spec says nothing of.
func checkData(o *object, spec *screening.Spec) error {
	for _, uri := range o.data {
		if !slices.ContainsFunc(spec.Inputs, func(in screening.Input) bool { return slices.Contains(in.URIs, uri.text) }) {
			return refusal(uri.at + " is data that no input of the training spec names; add it, with where it comes from, to the uris of its input")
		}
	}
	return nil
}

func withWorkload(o *object, spec *screening.Spec, declared jsontext.Value) (jsontext.Value, error) {
	var inputs []map[string]jsontext.Value
	if len(declared) > 0 {
		if err := json.Unmarshal(declared, &inputs); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(spec.Inputs, func(in screening.Input) bool { return in.ID == WorkloadInput })
	if i < 0 {
		i = len(inputs)
		inputs = append(inputs, map[string]jsontext.Value{"id": jsontext.Value(`"` + WorkloadInput + `"`), "kind": jsontext.Value(`"code"`)})
	} else if spec.Inputs[i].Kind != "code" {
		return nil, refusal("the input " + WorkloadInput + " stands for what this object runs and has to be of kind code; rename yours")
	}
	var digests []any
	var uris []any
	if err := unmarshalOptional(inputs[i]["digests"], &digests); err != nil {
		return nil, err
	}
	if err := unmarshalOptional(inputs[i]["uris"], &uris); err != nil {
		return nil, err
	}
	digests = append(digests, digest(o.workload, "workload of the "+o.kind.String()))
	for _, p := range o.programs {
		digests = append(digests, digest(p.bytes, p.words()))
		if p.Image == "" {
			continue
		}
		if uri := any("oci://" + p.Image); !slices.Contains(uris, uri) {
			uris = append(uris, uri)
		}
		if pinned, ok := imageDigest(p.Image); ok {
			if d := (map[string]any{"alg": "sha256", "value": pinned, "of": "image " + p.Image}); !containsDigest(digests, d) {
				digests = append(digests, d)
			}
		}
	}
	var err error
	if inputs[i]["digests"], err = json.Marshal(digests); err != nil {
		return nil, err
	}
	if uris != nil {
		if inputs[i]["uris"], err = json.Marshal(uris); err != nil {
			return nil, err
		}
	}
	return json.Marshal(inputs)
}

func unmarshalOptional(v jsontext.Value, into *[]any) error {
	if len(v) == 0 {
		return nil
	}
	return json.Unmarshal(v, into)
}

func containsDigest(list []any, d map[string]any) bool {
	return slices.ContainsFunc(list, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["value"] == d["value"] && m["of"] == d["of"]
	})
}

// words says what a program is. Phrases are looked for in it, as in every text.
func (p *program) words() string {
	at := cmp.Or(p.Path, "spec")
	if p.Image != "" {
		at += ", image " + p.Image
	}
	if p.Runs != "" {
		at += ", runs: " + p.Runs
	}
	return at
}

// imageDigest gives the digest that an image is pinned to.
func imageDigest(image string) (string, bool) {
	_, pin, _ := strings.Cut(image, "@sha256:")
	_, err := screening.ParseDigest256(pin)
	return pin, err == nil
}
