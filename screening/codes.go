package screening

import "strings"

// The closed code lists of the spec. A code that is not listed is refused: a
// typing error must not read as a new, harmless value.
var (
	objectiveKinds = []string{"pretrain", "continued_pretrain", "sft", "dpo", "kto", "orpo", "grpo", "ppo",
		"reward_model", "distill", "embedding", "classifier", "other"}

	inputKinds = []string{"dataset", "base_model", "teacher", "reward_model", "tokenizer", "code"}

	sourceKinds = []string{"web_crawl", "public_dataset", "licensed", "private_third_party", "user_interactions",
		"user_other_services", "synthetic", "sensor", "human_authored", "unknown"}

	restrictionCodes = []string{"nc", "nd", "sa", "no_ml", "research_only", "eu_disallowed", "geo", "unknown", "use_based",
		"limited_commercial", "no_outputs"}

	tdmCodes = []string{"reserved", "not_reserved", "unknown"}

	consentCodes = []string{"documented", "claimed", "absent", "unknown", "not_applicable"}

	splitCodes = []string{"train", "validation", "test", "all", "custom"}

	modalityCodes = []string{"text", "code", "image", "video", "audio", "tabular", "time_series", "graph", "sensor",
		"three_d", "unknown"}

	// openCodes say what a person has to settle of an imported file: a field that
	// the file does not resolve, two statements that cannot both hold, terms of use
	// in words that no code stands for, a part that could not be read, and files
	// without a checksum that can be one.
	openCodes = []string{"unresolved", "contradiction", "restriction", "unreadable", "checksum"}

	euMembers = []string{"AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT",
		"LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK"}

	digestHexLen = map[string]int{"sha256": 64, "sha384": 96, "sha512": 128, "blake3": 64, "md5": 32, "sha1": 40}
)

// numRestrictions bounds the sets of restrictions; a test keeps it equal to len(restrictionCodes).
const numRestrictions = 11

// purposeCodes are the declared purposes of a run. Those under "prohibited"
// name the practices of Article 5 of the EU AI Act; declaring one blocks.
var purposeCodes = []string{
	// ordinary
	"customer_support", "general_assistant", "code_assistance", "search_and_retrieval", "translation",
	"summarisation", "information_extraction", "classification", "speech", "vision", "recommendation",
	"education", "healthcare", "legal", "finance", "hiring", "robotics", "science", "creative",
	"internal_tooling", "commercial_product", "research", "safety_research", "content_moderation", "evaluation",
	// high risk in their kind, not prohibited
	"law_enforcement", "migration_control", "critical_infrastructure", "biometric_verification",
	// prohibited
	"behavioural_manipulation", "exploiting_vulnerability", "social_scoring", "crime_prediction_from_profiling",
	"face_recognition_database", "emotion_recognition_work_or_school", "biometric_sorting",
	"remote_biometric_identification", "intimate_imagery_generation",
}

// tagState is what is known of one disclosure tag at one place.
type tagState uint8

const (
	notAssessed tagState = iota // nothing said
	absent
	unknownState // said not to be known; placeholder counts as this
	present
)

func stateOf(code string) tagState {
	switch code {
	case "present":
		return present
	case "absent":
		return absent
	case "unknown", "placeholder":
		return unknownState
	}
	return notAssessed
}

var stateCodes = []string{"present", "absent", "unknown", "placeholder", "not_assessed"}

var basisCodes = []string{"structured", "prose", "inferred"}

// tag is one disclosure tag. For a protective tag the good state is present:
// consent that is absent is worse than consent that is unknown.
type tag struct {
	name       string
	protective bool
	means      string
}

var tags = []tag{
	{"biometric", false, "data from which a person's body or voice can be identified"},
	{"confidentiality", false, "secrets or data under a duty of confidence"},
	{"consent", true, "the people in the data agreed to this use"},
	{"copyright_material", false, "works under copyright without a licence that covers training"},
	{"deidentified", true, "identifying details were removed"},
	{"dual_use_cbrn", false, "knowledge that helps to make chemical, biological, radiological or nuclear weapons"},
	{"dual_use_cyber", false, "working attack code or operational intrusion knowledge"},
	{"gated_access", false, "access to the source is gated or needs an agreement"},
	{"geo_restriction", false, "terms or law restrict where it may be used"},
	{"hate", false, "content that demeans people for protected traits"},
	{"health", false, "data about people's health"},
	{"human_subjects", false, "data from research on people"},
	{"known_bias", true, "known biases are documented"},
	{"known_limits", true, "known limitations are documented"},
	{"minors", false, "data from or about children"},
	{"model_generated", false, "content written by a model"},
	{"not_for_all_audiences", false, "content marked as not for all audiences"},
	{"personal_data", false, "data about identifiable people"},
	{"self_harm", false, "content about suicide or self-harm"},
	{"sensitive_personal", false, "special categories of personal data: beliefs, origin, sexual life, union membership"},
	{"sexual_content", false, "sexual content"},
	{"synthetic", false, "artificially made data"},
	{"tdm_reserved", false, "rights holders reserved text and data mining"},
	{"user_generated", false, "content that users of a service wrote"},
	{"violent", false, "depictions or praise of violence"},
}

// DisclosureTag is something that a disclosure can speak of. The good state of a
// protective tag is present, of any other absent.
type DisclosureTag struct {
	Name       string
	Protective bool
	Means      string
}

// DisclosureTags lists all tags, by name.
func DisclosureTags() []DisclosureTag {
	all := make([]DisclosureTag, len(tags))
	for i, t := range tags {
		all[i] = DisclosureTag{t.name, t.protective, t.means}
	}
	return all
}

// numTags bounds the arrays of tag states; a test keeps it equal to len(tags).
const numTags = 25

var tagIndex = func() map[string]int {
	m := make(map[string]int, len(tags))
	for i, t := range tags {
		m[t.name] = i
	}
	return m
}()

// placeholders are whole values that stand for "to be filled in". They state
// nothing. NOASSERTION is a statement that it is not known.
var placeholders = map[string]bool{
	"none": true, "null": true, "undefined": true, "unknown": true, "other": true, "n/a": true, "na": true,
	"xxx": true, "xxxx": true, "-": true, "?": true, "noassertion": true, "[more information needed]": true,
	"[needs more information]": true, "more information needed": true, "this is a license.": true,
	"no description available": true, "unspecified": true, "custom": true, "no license": true, "various": true,
}

// unfilled reports whether a text begins like a placeholder: "TBD-on-acceptance", "TODO: ask legal", "<your-dataset-id>".
func unfilled(s string) bool {
	for _, mark := range [...]string{"todo", "tbd", "tbc"} {
		if rest, ok := strings.CutPrefix(s, mark); ok {
			return rest == "" || !(isLower(rest[0]) || '0' <= rest[0] && rest[0] <= '9')
		}
	}
	return len(s) >= 2 && s[0] == '<' && strings.IndexAny(s[1:], "<>") == len(s)-2 && s[len(s)-1] == '>'
}

// IsPlaceholder reports whether a whole text stands for a value that is still to
// come ("TBD", "[More Information Needed]") or is said not to be known.
func IsPlaceholder(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return placeholders[s] || unfilled(s)
}
