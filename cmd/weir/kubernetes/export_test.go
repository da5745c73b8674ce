package kubernetes

import (
	"encoding/json"
	"errors"
)

// SpecOf gives the bytes that are screened for the object of a request.
func SpecOf(review []byte) ([]byte, error) {
	var in struct {
		Request struct {
			Kind   groupVersionKind `json:"kind"`
			Object json.RawMessage  `json:"object"`
		} `json:"request"`
	}
	if err := json.Unmarshal(review, &in); err != nil {
		return nil, err
	}
	k, ok := kindOf(in.Request.Kind.Group, in.Request.Kind.Version, in.Request.Kind.Kind)
	if !ok {
		return nil, errors.New("unknown kind")
	}
	o, err := readObject(k, in.Request.Object)
	if err != nil {
		return nil, err
	}
	return specOf(o)
}

// MaxMessage bounds status.message in bytes.
const MaxMessage = maxMessage
