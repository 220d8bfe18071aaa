package scan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/lazy"
)

// A Rule is a kind of finding.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Help     string   `json:"help"` // what it means and what to do, in one sentence
}

// Rules returns all rules, in an order that does not change between runs.
func Rules() []Rule {
	var all []Rule
	for _, p := range phrases {
		all = append(all, p.Rule)
	}
	all = append(all, shapes...)
	all = append(all, marks...)
	return append(all, skillRules...)
}

// The rules about skills. They are applied where the files of skills are read: see [Of].
const (
	RuleSkillFile   = "skill/file"
	RuleSkillWidens = "skill/widens"
)

var skillRules = []Rule{
	{RuleSkillFile, Medium, "A file of the skill runs a command, is a program or an archive, or holds what is not seen: look at it before you approve the skill."},
	{RuleSkillWidens, Medium, "The frontmatter asks for more than a skill describes, such as tools without a question: the gateway never acts on it, and a host may."},
}

// Of returns a finding by a rule.
func Of(rule, at, excerpt string) Finding {
	r := byID[rule]
	return Finding{Rule: rule, Severity: r.Severity, At: at, Excerpt: excerpt, Help: r.Help}
}

// byID finds rules.
var byID = func() map[string]Rule {
	m := make(map[string]Rule)
	for _, r := range Rules() {
		m[r.ID] = r
	}
	return m
}()

// A phrase is a rule about what a text says. Its expression is matched against
// the text in small letters, without hidden characters and with single spaces, if
// of each group of words one is in it: expressions are slow, and most texts have no
// such words.
type phrase struct {
	Rule
	groups  [][]string
	pattern func() *regexp.Regexp
}

// say makes a phrase. Words are groups, separated by commas.
func say(id string, s Severity, help, words string, alternatives ...string) phrase {
	p := phrase{Rule: Rule{id, s, help}, pattern: lazy.Regexp(strings.Join(alternatives, "|"))}
	for group := range strings.SplitSeq(words, ",") {
		p.groups = append(p.groups, strings.Fields(group))
	}
	return p
}

// find returns where a folded text says it, or nil.
func (p *phrase) find(text string) []int {
	for _, words := range p.groups {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			return nil
		}
	}
	return p.pattern().FindStringIndex(text)
}

const (
	// anyOther matches mentions of other tools than the one described.
	anyOther = `(any|all|every|each)( of)?( the)?( other)? (tool|function|task|request|action|operation)`
	// private is what a tool that does something else has no business with.
	private = `(conversations?|chat (history|log)|(user|chat|all) messages|credentials?|passwords?|secrets?|api[ _-]?keys?|private keys?|access tokens?|` +
		`file contents|all files|clipboard|environment variables|browser history|location history|account numbers|fingerprint)`
	// away is where data leave the machine for.
	away = `(https?://|(external|remote|our|another|third[ -]party) (server|endpoint|service|logging|url|host)|third parties|externally|remotely|attacker|via cloud|marketing)`
	send = `(send|sent|forward|upload|post|transmit|stream|exfiltrate|leak|cop(y|ies|ied)|share|sync|cache|log|store|report|deliver)(s|d|ed|ing)?`
)

var phrases = []phrase{
	say("prompt/secrecy", High, "Text that asks the model to keep something from the user; ask its author why.",
		"user human anyone person secret silently covertly this these that it, not n't dont never without secret silently covertly cannot",
		`(do not|don't|dont|never|must not|should not|without) (ever )?(tell|inform|mention|notify|reveal|alert|disclos|let)\w*( \w+){0,6} (user|human|anyone|person)\b`,
		`(do not|don't|never|without) (mention|reveal|disclos)\w* (this|that|these|it|any of this)\b`,
		`(user|human|person) (must not|should not|need not|does not need to|doesn't need to|must never|should never|cannot|can't) (know|see|be told|be informed|be aware|notice|find out)`,
		`(keep|kept|remain|stay)s?( \w+){0,3} (secret|hidden|concealed) from`,
		`(silently|secretly|covertly) (send|forward|copy|upload|read|include|append|run|execute|call|add|record)`),
	say("prompt/override", High, "Text that tells the model to set its instructions aside; no description needs that.",
		"ignore disregard forget override bypass admin, instruction rule guideline prompt message direction restriction safeguard polic everything above told override",
		`(ignore|disregard|forget|override|bypass)( \w+){0,3} (previous|prior|earlier|above|preceding|existing|safety|system)( \w+)? (instruction|rule|guideline|prompt|message|direction|restriction|safeguard|polic)`,
		`(ignore|disregard|forget) (all|everything|any) (previous|prior|above|you were told)`,
		`\b(admin|system|safety|instruction)[ _-]override\b`),
	say("prompt/impersonation", High, "Text that speaks as the user, the system or the operator, who write elsewhere.",
		"from signed following, user system admin developer operator following, message request instruction note order signed before",
		`(message|request|instruction|note|order)s? from (the )?(user|system|administrator|admin|developer|operator)\b`,
		`signed, ?(by )?(the )?(user|admin|system)`,
		`before you (can )?(solve|do|answer|start|complete|continue)( \w+){0,8} (do|perform|complete|execute|follow) the following`),
	say("prompt/tag", High, "A tag or heading that is made to look like part of the model's prompt.",
		"important information system instruction critical secret admin hidden",
		`<\s*/?\s*(important|information|system|instructions?|critical|secret|admin|hidden|hidden[ _-]\w+|system[ _-]\w+)\s*>`,
		`\[\s*/?(important|system|critical|admin|instructions?|hidden)\s*\]`,
		`<!--.{0,40}\b(important|system|instruction|critical|hidden|secret|admin)`,
		`\|{2,} ?\w*(system|admin|important|instruction|critical)\w* ?\|{2,}`,
		`#{2,} ?(system|hidden|secret|admin) ?(prompt|instruction|message)s?`),
	say("prompt/precedence", Medium, "Text that wants this tool to be called before or after others, or every time; such order is the user's to decide.",
		"before after every each always, tool function task request action operation before user",
		`before (you )?(use|using|call|calling|invok|run|running|execut|answer|do|doing|perform)\w* `+anyOther,
		`after (you )?(use|using|call|calling|invok|run|running|execut)\w* (the |any |a )?[\w'"-]+( \w+)? (tool|function)`,
		`(every|each) time (the )?(user|you|another|any)( \w+){0,4} (tool|message|ask|inform|say|call)`,
		`(must|should|always|shall) (always |first )?(be )?(call|use|invoke|run|execute)d?( \w+){0,4} before (any|all|every|each)`),
	say("prompt/preference", Medium, "Text that praises the tool over others or warns of them, so that the model chooses it.",
		"best greatest ultimate only other always prefer priority, tool function service this priority",
		`\b(best|greatest|ultimate|only trusted|only reliable) (\w+ )?(tool|function|service)\b`,
		`\b(use|prefer|choose|select|call)s? this( \w+)? (rather than|instead of|over) (any |all )?(the )?others?\b`,
		`\b(do not|don't|never|avoid) us(e|ing) (any |the )?others? (tool|function|one)?`,
		`(always|only) (use|prefer|choose|select) this (tool|function)`,
		`(highest|top|maximum) priority`),
	say("prompt/tamper", High, "Text that has the model change what another tool is given or has returned.",
		"modify change replace redirect rewrite alter swap tamper, tool function call, recipient argument parameter result output response address destination",
		`(modify|change|replace|redirect|rewrite|alter|swap|tamper with)s?( the| any| all)?( \w+){0,3} (recipient|argument|parameter|result|output|response|address|destination)s?( \w+){0,3} (of|for|from|to|in|with|when)( the| any| another| other)?( [\w'"-]+){0,2} (tool|function|call)s?\b`),
	say("prompt/credentials", High, "Names a file or store of credentials, which few tools have reason to read.",
		"ssh id_ /etc/ .env .pem .aws .netrc .npmrc mcp.json gnupg keychain authorized_keys",
		`(~|\$home|%userprofile%|/root|/home/[\w.-]+|/users/[\w.-]+)[/\\]\.(ssh|gnupg|netrc|npmrc|pypirc|git-credentials|cursor|claude)\b`,
		`\bid_(rsa|ed25519|ecdsa|dsa)\b`, `/etc/(passwd|shadow|sudoers)\b`, `\bauthorized_keys\b`, `\bssh-(rsa|ed25519|dss) aaaa`,
		`\.(cursor|vscode|claude)[/\\]\w*mcp\.json`,
		`(read|cat|open|send|include|upload|pass|copy|contents? of)( \S+){0,5} \S*\.(env|pem|netrc|npmrc|aws/credentials)\b`,
		`\*\.(env|pem|key)\b`),
	say("prompt/exfiltration", High, "Says that private data are sent or stored elsewhere.",
		"http external remote our another third attacker cloud marketing, send sent forward upload post transmit stream exfiltrat leak cop shar sync cach log stor report deliver, conversation chat messages credential password secret key token files clipboard environment history account fingerprint part",
		`\b`+send+`\b.{0,120}\b`+private+`.{0,120}`+away,
		`\b`+private+`.{0,120}\b`+send+`\b.{0,80}`+away,
		`\b`+send+`\b.{0,60}\b(with|to) third parties`),
	say("prompt/conversation", Medium, "Asks for the conversation or the model's instructions, which a tool has no use for.",
		"conversation prompt chat dialog system tools",
		`(full|entire|complete|whole|all|current|previous|prior)( of)?( the| your| our)? (conversation|chat|dialogue?)( history| context| log| transcript)?\b`,
		`(conversation|chat|dialogue?) (history|transcript|context|so far)`,
		`(your|the|full|entire) system (prompt|message|instructions?)`,
		`(names?|list|descriptions?) of (all )?(the )?tools (that )?(you|available|are)`),
	say("prompt/command", High, "A command line that fetches and runs, destroys or opens a connection.",
		"curl wget chmod base64 powershell rm nc, - |",
		`\b(curl|wget)\b[^|]{0,200}\| ?(sudo )?(ba|z)?sh\b`,
		`\bcurl\b.{0,80} (-d|--data|-f|--form|-t|--upload-file)\b.{0,40}(@|\$\()`,
		`\brm -(rf|fr) [/~*]`, `\| ?nc(at)? [\w.-]+ \d+`, `\bbase64 (-d|--decode)\b.{0,40}\|`,
		`\bchmod (777|\+s|4755)\b`, `\bpowershell(\.exe)? .{0,40}-(enc|encodedcommand|e)\b`),
	say("prompt/other-tool", Low, "Text that has the model call another tool by name.",
		"tool function, use using call invoke run with, _ -",
		`(use|using|call|calling|invoke|run|with)( the)? ['"`+"`"+`]?[a-z0-9]+([_-][a-z0-9]+)+['"`+"`"+`]? (tool|function)`),
	say("link/data", Medium, "A link with a place to be filled in: whoever follows it tells its host what the model wrote there.",
		"http, { $ < [ ?",
		`!\[[^\]]*\]\(https?://[^)\s]*[?{$]`, `https?://[^\s)]+\?[^\s)]*=(\{[^}]*\}|\$\{|<[a-z_ ]+>|\[[a-z_ ]+\])`),
}

// The rules about the form of a definition.
const (
	ruleMixed      = "name/mixed-script"
	ruleHiddenName = "name/hidden"
	ruleReadOnly   = "annotation/contradiction"
	ruleAsks       = "parameter/conversation"
	ruleModel      = "parameter/model"
	ruleSecret     = "parameter/credentials"
	ruleBase64     = "text/base64"
	// RuleMention is the rule of a definition that speaks of a tool of another server.
	RuleMention = "tool/mention"
	// RuleUnread is that of a definition, or a text of one, that was not scanned to
	// its end.
	RuleUnread = "text/unread"
)

var shapes = []Rule{
	{ruleMixed, High, "A name with letters of several scripts, of which some look like others."},
	{ruleHiddenName, High, "A name with a character that cannot be seen."},
	{ruleReadOnly, Medium, "The annotations say that the tool changes nothing, and its name says otherwise."},
	{ruleAsks, High, "A parameter for the conversation, the prompt or the model's thoughts, which would be sent to the server."},
	{ruleModel, Medium, "A parameter for which model or client calls, which the server has no need to know."},
	{ruleSecret, Low, "A parameter for a password or key: the model would have to know it."},
	{ruleBase64, Medium, "A long encoded text, which a person cannot read."},
	{RuleMention, Medium, "The definition speaks of a tool of another server."},
	{"app/injection", High, "A source that holds more than one: a host that joins sources would widen the page's policy. Hosts do not get it."},
	{"app/wildcard", High, "A source that is every name of a domain, or any address."},
	{"app/frames", High, "The page may show pages of others."},
	{"app/base", High, "The page may have its relative addresses lead elsewhere."},
	{"app/device", High, "The page asks for the camera, the microphone or the place of the person."},
	{"app/connect", Medium, "The page can send what it sees to this address."},
	{"app/resources", Medium, "The page loads files from this address, scripts too. Their bytes are not pinned."},
	{"app/cut", Medium, "Malformed or unknown: hosts do not get it."},
	{"app/domain", Medium, "The page runs at this domain, and shares what is stored there with all pages that ask for the same."},
	{"app/clipboard", Low, "The page may write to the clipboard."},
	{"app/narrowed", Low, "The page asks for it, and the configuration does not allow it. Hosts do not get it."},
	{RuleUnread, Medium, "So long a text that the rest of it was not looked at."},
}

// marks are the rules of package sanitize, as [Options.Sanitize] names them. One
// that is not here counts as "text/other".
var marks = []Rule{
	{"unicode/tag", High, "Tag characters, which are not shown and can spell out any text."},
	{"unicode/variation", High, "Variation selectors that vary nothing: they can spell out any text."},
	{"unicode/zero-width", High, "Zero-width characters where they have no function."},
	{"unicode/bidi", High, "Direction controls: the text is read in another order than it is shown."},
	{"unicode/invisible", High, "Characters without a shape."},
	{"unicode/overlay", Medium, "Marks that strike letters out, or pile up on them."},
	{"unicode/fullwidth", Medium, "Full-width Latin letters outside of East Asian text."},
	{"control/ansi", High, "Terminal sequences: a terminal hides or moves what follows."},
	{"control/c0", High, "Control characters."},
	{"control/return", Medium, "A carriage return that overwrites the line in a terminal."},
	{"token/chat", High, "A control token of a chat template, which ends the description for some models."},
	{"text/padding", Medium, "White space that pushes text out of view."},
	{"html/script", High, "An element that runs or loads something."},
	{"html/element", Low, "An HTML element that acts on a page."},
	{"html/comment", Medium, "A comment, which a page does not show and a model reads."},
	{"html/handler", High, "An event handler."},
	{"html/url", High, "A URL that runs a script."},
	{"html/hidden", High, "An element that is made invisible."},
	{"link/image", Medium, "An image that is fetched without a click."},
	{"link/target", Low, "A link to a place that nobody has approved."},
	{"text/unstable", High, "Text that could not be made safe: what is taken out of it leaves more of the same."},
	{"text/other", Low, "Text that is changed before a model sees it."},
}

var (
	asksFor = lazy.Regexp(`^((full|entire|whole|complete|prior|previous)_?)?(conversation(_?(history|context|summary|so_?far))?|chat_?(history|context|log)|message_?history|(previous|prior|all)_?messages|side_?notes?|system_?(prompt|message|instructions?)|(available|other)_?tools|tool_?list|(model_?)?(thoughts|reasoning|chain_?of_?thought|scratchpad)|user_?prompt|feedback_?for_?model)$`)
	modelOf = lazy.Regexp(`^((calling|caller|current)_?)?(llm|ai|agent|assistant)_?(model_?)?(name|version|identity|vendor)$`)
	secret  = lazy.Regexp(`^((user|admin|root|db|database|master|my)_?)?(password|passwd|passphrase|credentials?|api_?key|private_?key|ssh_?key|secret_?key|access_?token|env(ironment)?_?vars?|client_?secret)$`)

	// changes are the verbs of names whose tools are not read-only.
	changes = strings.Fields("delete remove destroy drop exec execute run write create update set insert send post put kill terminate wipe erase purge move rename install deploy transfer pay")
)

// unread are the members whose strings nobody reads as text.
var unread = strings.Fields("type format $ref $schema $id $anchor pattern mimeType")

// readable reports whether the strings of a member are text.
func readable(member string) bool { return !slices.Contains(unread, member) }
