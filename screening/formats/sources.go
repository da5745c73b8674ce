package formats

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"weir/screening"
)

// Limits of the files that a spec keeps, so that it stays below its own.
const (
	maxKeptBytes  = 480 << 10
	maxOpenOfFile = 150
	partBytes     = 45 << 10 // 60 KiB in base64
)

func sourceFiles(imports []*Import) (all []screening.SourceFile) {
	left := maxKeptBytes
	for _, im := range imports {
		f := screening.SourceFile{Name: oneLine(im.Name), Format: im.Format, SHA256: im.SHA256.String()}
		if screening.IsBlank(f.Name) {
			f.Name = "unnamed"
		}
		switch {
		case im.secret != "":
		case len(im.data) <= left:
			left -= len(im.data)
			for part := range slices.Chunk(im.data, partBytes) {
				f.Bytes = append(f.Bytes, base64.StdEncoding.EncodeToString(part))
			}
		default:
			im.note(Note, "", "", "is too large to be kept in the spec; only its digest is. Keep the file")
		}
		more := 0
		for _, finding := range im.Findings {
			if !finding.Open() {
				continue
			}
			if len(f.Open) == maxOpenOfFile {
				more++
				continue
			}
			detail, _ := clip(strings.TrimSpace(finding.Field+" "+finding.Detail), maxProse)
			pointer, _ := clip(finding.Pointer, 512)
			f.Open = append(f.Open, screening.OpenPoint{Code: string(finding.Code), Pointer: pointer, Detail: detail})
		}
		if more > 0 {
			f.Open = append(f.Open, screening.OpenPoint{Code: string(Unreadable), Detail: fmt.Sprintf("%d more open points; weir import lists them", more)})
		}
		all = append(all, f)
	}
	return all
}
