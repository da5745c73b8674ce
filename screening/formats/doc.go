// Package formats reads the files that teams have.
//
// Importers read metadata of data sets and models (Croissant, Hugging Face
// cards, SPDX, CycloneDX, data provenance records) and training-run files
// (Axolotl, LLaMA-Factory, TRL, Kubeflow). [Read] tells the format and gives an
// [Import]: records, findings, and for each value the place in the file it came
// from. [Merge] joins the imports of one run into a [Draft] of a spec.
//
// An importer passes on what a file says and never fills in what it does not:
// absent is not "no", a placeholder is no value, and prose states nothing. What
// it cannot read it reports, and what must not be lost on the way (a restriction
// in words, an unreadable disclosure, a contradiction) becomes an open point of
// the spec, which only a person can take out. Nothing is opened, followed,
// expanded or run: no address, no path, no "${…}", no code.
//
// The way back: [ExportCycloneDX] and [ExportSPDX] write a spec as a BOM, and
// [Summarise] drafts a regulator's summary. They list what they cannot hold and
// what the spec does not state, and make nothing up.
//
// [ReadExamples] reads training examples, as chats or plain text, in JSON Lines
// and Parquet.
package formats
