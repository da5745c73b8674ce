package formats

import (
	"regexp"
	"strings"
)

// topicTags are words in tags, keywords and names of tasks that say something
// about what is inside. Anybody can choose them, so they only hint.
var topicTags = map[string]string{
	"medical": "health", "medicine": "health", "health": "health", "healthcare": "health", "clinical": "health", "patient": "health", "patients": "health",
	"nsfw": "sexual_content", "adult": "sexual_content", "porn": "sexual_content", "pornography": "sexual_content", "erotic": "sexual_content", "sexual": "sexual_content",
	"hate": "hate", "toxicity": "hate", "toxic": "hate", "offensive": "hate", "pii": "personal_data",
	"face": "biometric", "faces": "biometric", "facial": "biometric", "voice": "biometric", "voices": "biometric", "biometric": "biometric", "biometrics": "biometric",
	"cybersecurity": "dual_use_cyber", "malware": "dual_use_cyber", "exploit": "dual_use_cyber", "exploits": "dual_use_cyber",
	"cbrn": "dual_use_cbrn", "biosecurity": "dual_use_cbrn", "violence": "violent", "violent": "violent", "suicide": "self_harm",
}

var minorWords = regexp.MustCompile(`(?i)\b(?:child(?:ren)?s?|kids?|minors?|teen(?:ager)?s?|pupils?|toddlers?|infants?|p(?:a?e)diatrics?)\b`)

// maxTopics bounds the words that are looked at, in all of a file.
const maxTopics = 2_000

var betweenTopics = regexp.MustCompile(`[^\pL\pN]+`)

// topic discloses what the words of a topic hint at.
func (r *reader) topic(rec *Record, item value, what string) {
	s := strings.ToLower(item.words())
	if len(s) > 200 { // a text, not a topic
		return
	}
	if r.topics++; r.topics > maxTopics {
		if r.topics == maxTopics+1 {
			r.find(Unreadable, "disclosures", item.at, "is one of more than 2,000 words about what is inside; the rest was not read")
		}
		return
	}
	words := " " + betweenTopics.ReplaceAllString(s, " ") + " "
	hint := func(tag string) { rec.disclose(tag, "present", "inferred", what+": "+s, item.at) }
	for word := range strings.FieldsSeq(words) {
		if tag := topicTags[word]; tag != "" {
			hint(tag)
		}
	}
	if strings.Contains(words, " not for all audiences ") {
		hint("not_for_all_audiences")
	}
	if strings.Contains(words, " self harm ") {
		hint("self_harm")
	}
	if strings.Contains(words, " synthetic ") {
		hint("synthetic")
	}
	if minorWords.MatchString(words) {
		hint("minors")
	}
}
