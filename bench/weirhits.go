package main

import "weir/screening"

func weirHits(found []screening.PhraseHit) []hit {
	hits := make([]hit, len(found))
	for i, h := range found {
		hits[i] = hit{h.Phrase, h.Start, h.End}
	}
	return hits
}
