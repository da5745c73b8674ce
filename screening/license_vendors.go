package screening

import (
	"strings"
	"sync"
)

// namedLicense is a licence outside the SPDX list that is known all the same: the
// terms of a model vendor or of a data set. It is written LicenseRef-ID, by one of
// its names, or by its id alone.
type namedLicense struct {
	id           string
	restrictions string // codes; where the text leaves room, the stricter reading
	names        string // Hub ids and other names, with | between them; see plainWords
	source       string // where the text stands
}

// The restrictions of a named licence are facts about its text, not legal advice:
// what it limits, in the codes of license.restrictions. A licence that withholds
// only some models of a family from the EU has geo, so that a person looks which.
var namedLicenses = []namedLicense{
	// Meta
	{"llama1", "nc research_only use_based", "llama 1|llama non commercial bespoke license", "github.com/facebookresearch/llama, branch llama_v1"},
	{"llama2", "use_based limited_commercial no_outputs", "llama 2|llama 2 community license|llama 2 community license agreement", "ai.meta.com/llama/license"},
	{"codellama", "use_based limited_commercial no_outputs", "code llama", "ai.meta.com/llama/license"},
	{"llama3", "use_based limited_commercial no_outputs", "llama 3|llama 3 community license|meta llama 3 community license agreement|meta llama 3 community license", "llama.com/llama3/license"},
	{"llama3.1", "use_based limited_commercial", "llama 3.1|llama 3.1 community license|llama 3.1 community license agreement", "llama.com/llama3_1/license"},
	{"llama3.2", "use_based limited_commercial geo", "llama 3.2|llama 3.2 community license|llama 3.2 community license agreement", "llama.com/llama3_2/license and its use policy: multimodal models withheld from the EU"},
	{"llama3.3", "use_based limited_commercial geo", "llama 3.3|llama 3.3 community license|llama 3.3 community license agreement", "llama.com/llama3_3/license and its use policy"},
	{"llama4", "use_based limited_commercial geo eu_disallowed", "llama 4|llama4 community|llama 4 community license|llama 4 community license agreement", "llama.com/llama4/license and its use policy: all models are multimodal"},
	{"opt-175b", "nc research_only use_based", "opt 175b license|opt 175b license agreement|opt license", "github.com/facebookresearch/metaseq, MODEL_LICENSE.md"},
	{"fair-noncommercial-research", "nc research_only use_based", "fair noncommercial research license|fair non commercial research license", "huggingface.co/facebook, FAIR Noncommercial Research License v1"},
	{"sam-license", "use_based", "sam license", "github.com/facebookresearch/sam3, LICENSE"},
	// Google
	{"gemma", "use_based", "gemma terms of use|gemma license", "ai.google.dev/gemma/terms and its prohibited use policy"},
	{"health-ai-developer-foundations", "use_based limited_commercial", "health ai developer foundations terms of use", "developers.google.com/health-ai-developer-foundations/terms"},
	// Responsible AI licences
	{"openrail", "use_based", "open rail|openrail m", "licenses.ai"},
	{"openrail++", "use_based", "openrail++ m|creativeml open rail++ m|creativeml openrail++ m", "huggingface.co/stabilityai, CreativeML Open RAIL++-M"},
	{"creativeml-openrail-m", "use_based", "creativeml open rail m", "huggingface.co/spaces/CompVis/stable-diffusion-license"},
	{"bigscience-bloom-rail-1.0", "use_based", "bigscience rail|bigscience rail 1.0|bloom rail 1.0|bigscience bloom rail", "huggingface.co/spaces/bigscience/license"},
	{"bigscience-openrail-m", "use_based", "bigscience open rail m", "bigscience.huggingface.co/blog/bigscience-openrail-m"},
	{"bigcode-openrail-m", "use_based", "bigcode open rail m|bigcode openrail m v1", "huggingface.co/spaces/bigcode/bigcode-model-license-agreement"},
	{"codeml-openrail-m", "use_based", "codeml open rail m|codeml openrail m 0.1", "huggingface.co/spaces/bigcode, CodeML Open RAIL-M 0.1"},
	{"ai2-impact-low", "use_based", "ai2 impact license low risk|ai2 impact license low risk artifacts", "allenai.org/licenses/impact-lr"},
	{"ai2-impact-medium", "use_based", "ai2 impact license medium risk|ai2 impact license medium risk artifacts", "allenai.org/licenses/impact-mr"},
	{"ai2-impact-high", "use_based nd research_only", "ai2 impact license high risk|ai2 impact license high risk artifacts", "allenai.org/licenses/impact-hr"},
	// Model vendors
	{"qwen", "use_based limited_commercial", "qwen license|qwen license agreement", "huggingface.co/Qwen/Qwen2.5-72B, LICENSE"},
	{"qwen-research", "nc research_only", "qwen research license|qwen research license agreement", "huggingface.co/Qwen/Qwen2.5-3B, LICENSE"},
	{"tongyi-qianwen", "limited_commercial no_outputs", "tongyi qianwen license|tongyi qianwen license agreement", "github.com/QwenLM/Qwen, Tongyi Qianwen LICENSE AGREEMENT"},
	{"tongyi-qianwen-research", "nc research_only no_outputs", "tongyi qianwen research license|tongyi qianwen research license agreement", "github.com/QwenLM/Qwen, Tongyi Qianwen RESEARCH LICENSE AGREEMENT"},
	{"deepseek", "use_based", "deepseek license|deepseek license agreement|deepseek model license", "github.com/deepseek-ai/DeepSeek-V2, LICENSE-MODEL"},
	{"falcon-llm", "use_based", "falcon llm license|falcon 2 llm license|falcon 3 llm license|falcon mamba 7b license", "falconllm.tii.ae, TII Falcon License 2.0 and its acceptable use policy"},
	{"falcon-180b", "use_based limited_commercial", "falcon 180b license|falcon 180b tii license", "huggingface.co/tiiuae/falcon-180B, LICENSE: hosting needs a separate licence"},
	{"tii-falcon-llm-1.0", "use_based limited_commercial", "tii falcon llm license 1.0|tii falcon llm license", "falconllm.tii.ae, TII Falcon LLM License 1.0 of May 2023: royalties"},
	{"mnpl", "nc research_only", "mnpl 0.1|mistral ai non production license|mistral non production license", "mistral.ai/licenses/MNPL-0.1.md"},
	{"mrl", "nc research_only", "mrl 0.1|mistral ai research license|mistral research license|mistral ai research", "mistral.ai/licenses/MRL-0.1.md"},
	{"apple-ascl", "", "apple sample code license|ascl", "huggingface.co/apple, Apple Sample Code License"},
	{"apple-amlr", "nc research_only", "apple machine learning research model license agreement|apple machine learning research model license|amlr|apple ml research", "huggingface.co/apple, Apple Machine Learning Research Model"},
	{"nvidia-open-model", "use_based", "nvidia open model license|nvidia open model license agreement", "nvidia.com, NVIDIA Open Model License Agreement"},
	{"nvidia-source-code-nc", "nc research_only", "nvidia source code license nc|nvidia source code license|nscl|nscl v1|nvidia noncommercial license|nvidia non commercial license", "github.com/NVlabs, LICENSE"},
	{"databricks-open-model", "use_based limited_commercial no_outputs", "databricks open model license|databricks open model|dbrx", "databricks.com/legal/open-model-license"},
	{"grok2-community", "use_based limited_commercial no_outputs", "grok 2 community license|grok 2 community license agreement|grok 2 community", "huggingface.co/xai-org/grok-2, LICENSE"},
	{"cohere-cc-by-nc", "nc use_based", "cohere cc by nc|c4ai cc by nc|cohere cc by nc 4.0|c4ai acceptable use policy", "docs.cohere.com, C4AI Acceptable Use Policy beside CC-BY-NC-4.0"},
	{"stability-community", "use_based limited_commercial no_outputs", "stabilityai ai community|stability ai community license|stability ai community license agreement|stability community|stable community", "stability.ai/community-license-agreement"},
	{"stability-nc-research", "nc research_only use_based", "stabilityai nc research community|sai nc community|stability ai non commercial research community license|stability ai non commercial research community license agreement", "huggingface.co/stabilityai, LICENSE of SDXL Turbo"},
	{"deepfloyd-if", "nc research_only use_based", "deepfloyd if license|deepfloyd if license agreement", "huggingface.co/DeepFloyd, LICENSE"},
	{"yi", "use_based limited_commercial", "yi license|yi series models license agreement|yi series models community license agreement|yi series models community license agreement 2.1|yi series model license", "github.com/01-ai/Yi, MODEL_LICENSE_AGREEMENT.txt"},
	{"flux-1-dev-nc", "nc use_based no_outputs", "flux 1 dev non commercial license|flux.1 dev non commercial license", "huggingface.co/black-forest-labs/FLUX.1-dev, LICENSE.md"},
	{"exaone", "nc research_only no_outputs", "exaone ai model license|exaone ai model license agreement nc|exaone ai model license agreement 1.1 nc", "huggingface.co/LGAI-EXAONE, LICENSE"},
	{"chatglm", "use_based limited_commercial", "chatglm license|the chatglm2 6b license|the chatglm3 6b license|glm 4|glm 4 license", "huggingface.co/THUDM, MODEL_LICENSE"},
	{"baichuan2", "use_based limited_commercial", "baichuan 2|baichuan2 community license|baichuan 2 community license|community license for baichuan2 model", "huggingface.co/baichuan-inc, Community License for Baichuan2 Model"},
	{"tencent-hunyuan-community", "use_based limited_commercial no_outputs geo eu_disallowed", "tencent hunyuan community|tencent hunyuan community license|tencent hunyuan community license agreement", "github.com/Tencent-Hunyuan, LICENSE: not for the EU, the UK and South Korea"},
	{"jamba-open-model", "use_based limited_commercial", "jamba open model license|jamba open model license agreement", "ai21.com, Jamba Open Model License"},
	{"lfm-open-1.0", "use_based limited_commercial", "lfm1.0|lfm open license 1.0", "huggingface.co/LiquidAI, LFM Open License v1.0"},
	{"h-research", "nc research_only", "h research license", "huggingface.co/docs/hub/repositories-licenses, id h-research"},
	{"intel-research", "nc research_only", "intel research license|intel research use license agreement", "huggingface.co/docs/hub/repositories-licenses, id intel-research"},
	{"microsoft-research", "nc research_only", "microsoft research license|microsoft research license agreement|msr la|msrla", "huggingface.co/microsoft, Microsoft Research License Terms"},
	// What a service writes, under the terms of the service
	{"openai-terms", "no_outputs use_based", "openai terms of use|openai terms", "openai.com/policies/row-terms-of-use: not to develop models that compete"},
	{"anthropic-terms", "no_outputs use_based", "anthropic terms of service|anthropic terms", "anthropic.com/legal/commercial-terms"},
	// Data sets
	{"physionet-restricted-1.5.0", "research_only nc nd use_based", "physionet restricted health data license 1.5.0|physionet restricted health data license", "physionet.org/about/licenses/physionet-restricted-health-data-license-150"},
	{"physionet-credentialed-1.5.0", "research_only nc nd use_based", "physionet credentialed health data license 1.5.0|physionet credentialed health data license", "physionet.org/about/licenses/physionet-credentialed-health-data-license-150"},
	{"imagenet-terms", "nc research_only", "imagenet|imagenet terms|imagenet terms of access", "image-net.org/download.php"},
	{"ldc-non-members", "nc research_only nd", "ldc user agreement for non members|ldc user agreement|ldc", "catalog.ldc.upenn.edu/license/ldc-non-members-agreement.pdf"},
	{"common-crawl-terms", "use_based", "common crawl terms of use|common crawl|commoncrawl terms of use", "commoncrawl.org/terms-of-use"},
}

// conditionWords are what sources write in place of a licence. They name a
// restriction, and leave open which licence it is part of: what they say counts,
// and the licence stays unidentified.
var conditionWords = []struct{ restrictions, names string }{
	{"research_only nc", "research only|research use only|for research only|for research use only|research purposes only|for research purposes only|" +
		"for research purpose only|academic only|academic use only|for academic use only|academic research only|for academic research only|" +
		"academic purposes only|for academic purposes only|research and educational use only|research and education only|" +
		"for research and educational purposes only|scientific research only|for scientific research only|" +
		"non commercial research|noncommercial research|non commercial research only|noncommercial research only|" +
		"non commercial research use only|non commercial research purposes only|for non commercial research purposes only|" +
		"for non commercial research and educational purposes|free for research|free for academic use|free for research use"},
	{"nc", "nc|non commercial|noncommercial|non commercial only|noncommercial only|non commercial use|noncommercial use|non commercial use only|" +
		"noncommercial use only|for non commercial use only|for noncommercial use only|non commercial purposes only|for non commercial purposes only|" +
		"no commercial use|not for commercial use|commercial use prohibited|personal use only|for personal use only|evaluation only|for evaluation only|" +
		"educational use only|for educational use only|free for non commercial use"},
	{"nd", "nd|no derivatives|no derivs|noderivatives|noderivs|no derivative works|no modifications|no modification"},
	{"nc nd", "non commercial no derivatives|noncommercial noderivatives"},
	{"sa", "sa|share alike|sharealike|copyleft"},
	{"no_ml", "no ml|no ai|no ai training|no ai use|no machine learning|no ml training|no training|not for ai training|not for machine learning|" +
		"not for training|noai|no ai|noimageai|ai training prohibited|machine learning prohibited|no generative ai|" +
		"no text and data mining|no tdm|tdm reserved|text and data mining reserved|all rights reserved including text and data mining|" +
		"tdm reservation|no data mining|no scraping or ai training"},
	{"no_outputs use_based", "openai|anthropic|chatgpt|gpt 4"},
	{"eu_disallowed geo", "not for the eu|not available in the eu|not for use in the eu|eu excluded"},
}

// licenseWords finds the licence that plain words stand for, as an expression.
var licenseWords = sync.OnceValue(func() map[string]string {
	words := make(map[string]string, 1000)
	for name, expression := range licenseAliases {
		words[plainWords(name)] = expression
	}
	for _, l := range namedLicenses {
		words[plainWords(l.id)] = licenseRef + l.id
		for name := range strings.SplitSeq(l.names, "|") {
			words[plainWords(name)] = licenseRef + l.id
		}
	}
	for _, c := range conditionWords {
		for name := range strings.SplitSeq(c.names, "|") {
			words[plainWords(name)] = licenseRef + conditionPrefix + strings.ReplaceAll(c.restrictions, " ", "-")
		}
	}
	return words
})

const (
	licenseRef      = "LicenseRef-"
	conditionPrefix = "only-" // of the ids that conditionWords come to
)

// licenseRefs are the ways of every LicenseRef that is known, by its lower-case id without the prefix.
var licenseRefs = sync.OnceValue(func() map[string]branches {
	refs := make(map[string]branches, len(namedLicenses)+len(conditionWords))
	for _, l := range namedLicenses {
		refs[strings.ToLower(l.id)] = branches{restrictionsOf(strings.Fields(l.restrictions)...)}
	}
	for _, c := range conditionWords {
		id := conditionPrefix + strings.ReplaceAll(c.restrictions, " ", "-")
		refs[id] = branches{restrictionsOf(strings.Fields(c.restrictions)...) | unknownLicense}
	}
	return refs
})

// plainWords brings the name of a licence to the form in which names are
// compared: lower case, without marks between words and words that add nothing.
// "The Apache License, Version 2.0" and "apache-2.0" are both "apache 2.0".
func plainWords(name string) string {
	name = strings.ToLower(name)
	name = strings.NewReplacer("licence", "license").Replace(name)
	words := strings.FieldsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '+' || r > 0x7f)
	})
	kept := words[:0]
	for i, w := range words {
		w = strings.Trim(w, ".")
		if len(w) > 1 && w[0] == 'v' && isDigits(w[1:2]) {
			w = w[1:]
		}
		switch w {
		case "", "the", "a", "v", "version", "ver":
			continue
		case "license", "licensed", "licenses":
			if i > 0 || len(words) > 1 {
				continue
			}
		}
		kept = append(kept, w)
	}
	return strings.Join(kept, " ")
}

// creativeCommons reads the names that Creative Commons licences go by, in words
// or in short: "CC BY-NC 4.0", "Creative Commons Attribution-NonCommercial 4.0
// International (CC BY-NC 4.0)". A word that is not part of such a name makes it
// none. Without a version it is read as the latest; all ask the same.
func creativeCommons(plain string) (expression string, ok bool) {
	var by, nc, nd, sa, named bool
	version := ""
	words := strings.Fields(plain)
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch w := words[i]; w {
		case "cc", "creative", "commons":
			named = true
		case "by", "attribution":
			by = true
		case "nc", "noncommercial":
			nc = true
		case "nd", "noderivatives", "noderivs", "noderivative":
			nd = true
		case "sa", "sharealike":
			sa = true
		case "non", "no", "share":
			switch w + next {
			case "noncommercial":
				nc = true
			case "noderivatives", "noderivs", "noderivative", "noderiv":
				nd = true
			case "sharealike":
				sa = true
			default:
				return "", false
			}
			i++
		case "international", "intl", "unported", "generic", "public":
		default:
			if len(w) == 1 {
				w += ".0"
			}
			switch w {
			case "1.0", "2.0", "2.5", "3.0", "4.0":
			default:
				return "", false
			}
			if version != "" && version != w {
				return "", false
			}
			version = w
		}
	}
	if !named && !(by && version != "") || !by && !nc && !nd && !sa {
		return "", false
	}
	expression = "CC-BY"
	for _, part := range []struct {
		given bool
		code  string
	}{{nc, "-NC"}, {nd, "-ND"}, {sa && !nd, "-SA"}} {
		if part.given {
			expression += part.code
		}
	}
	if version == "" {
		version = "4.0"
	}
	expression += "-" + version
	if sa && nd { // there is no such licence: what it says counts, and it stays unidentified
		expression += " AND CC-BY-SA-4.0"
	}
	if sa && nd || !by {
		expression += " AND " + licenseRef + "unread"
	}
	return expression, true
}
