package screening

type phraseMatcher struct{}
type textField struct{ pointer, text string }
type hitForm int
func (hitForm) loose() bool { return false }
func (hitForm) String() string { return "" }
type phraseHit struct{ phrase, field, start, end int; form hitForm }
type textObfuscation struct{ field, start, end int; kind hitForm }
type textFindings struct { hits []phraseHit; obfuscations []textObfuscation }
func newPhraseMatcher(p []string) (*phraseMatcher, error) { return &phraseMatcher{}, nil }
func (m *phraseMatcher) find(f []textField) textFindings { return textFindings{} }
func isIgnorable(r rune) bool { return r == 0x200b }
