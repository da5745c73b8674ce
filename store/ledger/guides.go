package ledger

import (
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"fmt"
	htmltemplate "html/template"
	"io"
	"maps"
	"slices"
	texttemplate "text/template"
)

// The guides that go into every bundle: for people who have nothing but it.
var (
	//go:embed bundle_readme.md
	readmeText string
	//go:embed bundle_index.html
	indexText string

	readme = texttemplate.Must(texttemplate.New(ReadmeFile).Parse(readmeText))
	index  = htmltemplate.Must(htmltemplate.New(IndexFile).Parse(indexText))
)

// outcomeCount is a row of the guides.
type outcomeCount struct {
	Outcome string
	Count   int
}

type guide struct {
	Manifest
	Last     int64
	Counts   []outcomeCount
	KeyIDs   []string
	Included bool // payloads
}

// WriteGuides writes the keys and the pages that tell people what a bundle is and
// how to check it.
func WriteGuides(w *BundleWriter, m *Manifest, keys []PublicKey) error {
	g := guide{Manifest: *m, Last: m.Size - 1, Included: m.Payloads == "included"}
	for _, o := range slices.Sorted(maps.Keys(m.Outcomes)) {
		g.Counts = append(g.Counts, outcomeCount{o, m.Outcomes[o]})
	}
	for _, k := range keys {
		g.KeyIDs = append(g.KeyIDs, k.ID())
	}
	if err := w.Write(KeyFile, func(out io.Writer) error {
		for _, k := range keys {
			der, err := x509.MarshalPKIXPublicKey(k.public)
			if err != nil {
				return fmt.Errorf("write a public key: %w", err)
			}
			if err := pem.Encode(out, &pem.Block{Type: "PUBLIC KEY", Bytes: der}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.Write(ReadmeFile, func(out io.Writer) error { return readme.Execute(out, g) }); err != nil {
		return err
	}
	return w.Write(IndexFile, func(out io.Writer) error { return index.Execute(out, g) })
}
