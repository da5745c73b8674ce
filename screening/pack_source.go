package screening

import "github.com/go-json-experiment/json/jsontext"

// JSON is the pack as it was loaded, with its notes, as JSON: loading it gives a
// pack of the same digest.
func (p *Pack) JSON() jsontext.Value { return p.doc.json }
