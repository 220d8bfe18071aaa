package secrets

// providers are kinds of credentials with a shape of their own that gitleaks has not, or
// has only next to the name of the provider. The expressions take the credential alone.
var providers = []struct{ id, of, regex string }{
	{"airtable-token", "Airtable", `\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b`},
	{"anthropic-token", "a login of Anthropic", `\bsk-ant-(?:oat|ort|sid)\d{2}-[\w-]{80,140}`},
	{"apify-token", "Apify", `\bapify_(?:api|proxy)_[A-Za-z0-9]{30,44}\b`},
	{"artifactory-token", "Artifactory", `\b(?:AKCp[A-Za-z0-9]{69}|cmVmdGtu[A-Za-z0-9]{56})\b`},
	{"aws-secret-key", "AWS", `(?i)\baws_?(?:secret_?)(?:access_?)?key["']?[ \t]{0,8}(?:=>|[=:])[ \t]{0,8}["']?([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)`},
	{"azure-account-key", "Azure", `(?i)\b(?:Account|SharedAccess)Key=([a-z0-9/+]{42,86}={1,2})`},
	{"azure-devops-token", "Azure DevOps", `\b[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{18}AZDO[A-Za-z0-9]{4}\b`},
	{"browserbase-token", "Browserbase", `\bbb_live_[A-Za-z0-9_-]{24,40}`},
	{"buildkite-token", "Buildkite", `\bbk(?:ua|aj|ct|pt|pat)_[0-9a-f]{40}\b`},
	{"cerebras-token", "Cerebras", `\bcsk-[a-z0-9]{48}\b`},
	{"circleci-token", "CircleCI", `\bCCI[A-Z]{3}_[A-Za-z0-9]{20,24}_[0-9a-f]{40}\b`},
	{"contentful-token", "Contentful", `\bCFPAT-[A-Za-z0-9_-]{43}`},
	{"crates-token", "crates.io", `\bcio[A-Za-z0-9]{32}\b`},
	{"cursor-token", "Cursor", `\b(?:key|crsr)_[0-9a-f]{64}\b`},
	{"discord-bot-token", "Discord", `\b[MNO][A-Za-z0-9_-]{22,28}\.[GXYZ][A-Za-z0-9_-]{5}\.[A-Za-z0-9_-]{27,40}`},
	{"discord-webhook", "Discord", `\bdiscord(?:app)?\.com/api/webhooks/\d{17,20}/([A-Za-z0-9_-]{60,80})`},
	{"docker-token", "Docker", `\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{24,64}`},
	{"dropbox-token", "Dropbox", `\bsl\.(?:[a-z]\.)?[A-Za-z0-9_-]{130,}`},
	{"e2b-token", "E2B", `\b(?:e2b|sk_e2b)_[0-9a-f]{40}\b`},
	{"elevenlabs-token", "ElevenLabs", `\bsk_[0-9a-f]{48}\b`},
	{"figma-token", "Figma", `\bfig(?:d|o|oh|u|ur)_[A-Za-z0-9_-]{38,64}`},
	{"firecrawl-token", "Firecrawl", `\bfc-[0-9a-f]{32}\b`},
	{"fireworks-token", "Fireworks", `\bfw_[A-Za-z0-9]{22,32}\b`},
	{"google-oauth-secret", "a client of Google's OAuth", `\bGOCSPX-[A-Za-z0-9_-]{28}`},
	{"google-oauth-token", "Google's OAuth", `\b(?:ya29\.[A-Za-z0-9_-]{30,}|1//0[A-Za-z0-9_-]{40,})`},
	{"groq-token", "Groq", `\bgsk_[A-Za-z0-9]{40,64}\b`},
	{"helicone-token", "Helicone", `\bsk-helicone-[a-z0-9-]{20,64}`},
	{"jina-token", "Jina", `\bjina_[A-Za-z0-9_-]{50,70}`},
	{"langfuse-token", "Langfuse", `\bsk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`},
	{"langsmith-token", "LangSmith", `\bls(?:v2_pt_|v2_sk_|__)[0-9a-f]{32}(?:_[0-9a-f]{10})?\b`},
	{"linear-oauth-token", "Linear", `\blin_[a-z]{2,8}_[A-Za-z0-9]{32,64}\b`},
	{"llamacloud-token", "LlamaCloud", `\bllx-[A-Za-z0-9]{48,52}\b`},
	{"mapbox-token", "Mapbox", `\bsk\.eyJ[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{20,64}`},
	{"mongodb-atlas-token", "MongoDB Atlas", `\bmdb_sa_sk_[A-Za-z0-9_-]{36,48}`},
	{"neon-token", "Neon", `\bnapi_[a-z0-9]{48,72}\b`},
	{"netlify-token", "Netlify", `\bnf[a-z]_[A-Za-z0-9]{36,44}\b`},
	{"newrelic-token", "New Relic", `\b(?:NRAK-[A-Z0-9]{27}\b|NRII-[A-Za-z0-9_-]{32}|NRJS-[0-9a-f]{19}\b|NRRA-[0-9a-f]{42}\b)`},
	{"notion-token", "Notion", `\bsecret_[A-Za-z0-9]{43}\b`},
	{"nvidia-token", "NVIDIA", `\bnvapi-[A-Za-z0-9_-]{50,80}`},
	{"openai-token", "OpenAI, or a provider with keys of that form", `\bsk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,200}|[A-Za-z0-9]{32,64}\b)`},
	{"openrouter-token", "OpenRouter", `\bsk-or-v\d-[A-Za-z0-9]{64}\b`},
	{"pinecone-token", "Pinecone", `\bpcsk_[A-Za-z0-9_]{50,90}\b`},
	{"posthog-token", "PostHog", `\bph[xs]_[A-Za-z0-9]{40,56}\b`},
	{"render-token", "Render", `\brnd_[A-Za-z0-9]{28,40}\b`},
	{"replicate-token", "Replicate", `\br8_[A-Za-z0-9]{37,40}\b`},
	{"resend-token", "Resend", `\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b`},
	{"sonar-token", "SonarQube", `\bsq[apu]_[0-9a-f]{40}\b`},
	{"stripe-webhook-secret", "a webhook of Stripe", `\bwhsec_[A-Za-z0-9+/]{32,64}={0,2}`},
	{"supabase-token", "Supabase", `\b(?:sbp_(?:[a-z]\d_)?[A-Za-z0-9]{40}\b|sb_secret_[A-Za-z0-9_-]{28,50})`},
	{"tailscale-token", "Tailscale", `\btskey-[a-z]{3,9}-[A-Za-z0-9-]{16,80}`},
	{"tavily-token", "Tavily", `\btvly-(?:[a-z]{3,5}-)?[A-Za-z0-9-]{28,64}`},
	{"telegram-token", "a bot of Telegram", `\b\d{8,10}:AA[A-Za-z0-9_-]{33}`},
	{"vercel-token", "Vercel", `\bvc[aikpr]_[A-Za-z0-9]{48,72}\b`},
	{"wandb-token", "Weights & Biases", `\bwandb_v\d_[A-Za-z0-9_]{40,120}\b`},
	{"xai-token", "xAI", `\bxai-[A-Za-z0-9]{64,96}\b`},
}

// RulePartialKey is the rule for private keys without their first or last line, as commands
// that show the beginning or the end of a file return them. gitleaks finds whole keys alone.
const RulePartialKey = "private-key-part"

const (
	keyLabel = `[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`
	keyGap   = `(?:\s|\\[nr]|[>|#*])`
	keyHead  = `-----BEGIN` + keyLabel + `(?:` + keyGap + `{1,80}[A-Za-z-]{2,20}: [^\n]{0,100})*(?:` + keyGap + `{0,80}[A-Za-z0-9+/=]{40,})+(?:` + keyGap + `{1,80}[A-Za-z0-9+/=]+\s*\z)?`
	keyTail  = `[A-Za-z0-9+/]{40,}=*` + keyGap + `{1,80}(?:[A-Za-z0-9+/=]+` + keyGap + `{1,80})*-----END` + keyLabel
)

// ownRules are the rules of this package that are expressions.
func ownRules() []ruleSource {
	rules := []ruleSource{{ID: RulePartialKey, Description: "Found a part of a private key.", Regex: keyHead + "|" + keyTail, Entropy: 3.5, Keywords: []string{"-----begin", "-----end"}}}
	for _, p := range providers {
		rules = append(rules, ruleSource{ID: p.id, Description: "Found a key or token of " + p.of + ".", Regex: p.regex, Entropy: 3})
	}
	return rules
}
