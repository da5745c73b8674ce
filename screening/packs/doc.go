// Package packs holds the shipped harm vocabulary as files: per pack its terms
// (<id>.yaml), the cases it has to get right (<id>.cases.yaml) and, once it is
// ratified, the report that puts it in force (<id>.report.json).
//
// safety_floor blocks prohibited practices and sexualised minors, on structured
// facts alone. content_hazards sends hazardous content to people; it never
// blocks, because safety and moderation data legitimately holds such content.
// data_rights asks where data came from, what its licence allows, whom it is
// about and whether its bytes and parents are known.
//
// The package knows nothing of weir, so that anybody may read the files; package
// screening gives them their meaning. A pack that was edited is no longer in
// force: run weir pack ratify.
package packs

import "embed"

// FS holds the files at its root. The pattern takes .yaml and .report.json, and
// also compiles while no report exists.
//
//go:embed *.[yr]*
var FS embed.FS
