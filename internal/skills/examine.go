package skills

import (
	"bytes"
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/sanitize"
)

// A Verdict is what was found in the files of a skill. It holds for one set of digests.
type Verdict struct {
	Refused string   // why the skill is not offered; "" if it is
	Notes   []string // what a person should know
	Text    string   // of SKILL.md below its frontmatter, as far as it is kept to show changes
}

const (
	maxNotes = 32
	maxText  = 64 << 10 // of a SKILL.md that is kept
)

// code finds hidden text, and no markup: files hold examples of that.
var code = sync.OnceValue(func() *sanitize.Sanitizer {
	s, err := sanitize.New(sanitize.Options{Profile: sanitize.Code})
	if err != nil {
		panic(err) // the profile is known
	}
	return s
})

// hidden returns the rules by which a text hides something; "" if it does not.
func hidden(text string) string {
	var rules []string
	_, found := code().Sanitize(text)
	for _, f := range found {
		if f.Removed && !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return strings.Join(rules, ", ")
}

// Examine looks through all files of a skill, one after the other. read returns the bytes of one.
// An error of it is not a verdict: the file could not be had.
func Examine(s *gate.Skill, read func(p string, f gate.SkillFile) ([]byte, error)) (v Verdict, err error) {
	note := func(p, what string) {
		if len(v.Notes) < maxNotes {
			v.Notes = append(v.Notes, p+": "+what)
		}
	}
	for _, p := range Paths(s) {
		b, err := read(p, s.Files[p])
		if err != nil {
			return Verdict{}, fmt.Errorf("%s: %w", p, err)
		}
		if p == File {
			front, text, err := Frontmatter(string(b))
			if err == nil && !utf8.Valid(b) {
				err = fmt.Errorf("SKILL.md is not in UTF-8")
			}
			if err == nil {
				err = checkFront(front, s.Entry.Get("frontmatter"))
			}
			if err != nil {
				return Verdict{Refused: err.Error()}, nil
			}
			if len(text) <= maxText {
				v.Text = text
			}
		}
		if why := refused(p, b); why != "" {
			return Verdict{Refused: p + ": " + why}, nil
		}
		for _, what := range notes(p, b) {
			note(p, what)
		}
	}
	return v, nil
}

// textual are the extensions of files that are text whatever is in them.
var textual = strings.Fields(".md .mdx .markdown .txt .py .sh .bash .js .mjs .ts .json .yaml .yml .toml .html .xml .csv .rb .go .rs .css .svg")

// prose are those that are shown as Markdown.
var prose = strings.Fields(".md .mdx .markdown .txt")

// isText reports whether models get a file as text.
func isText(p string, b []byte) bool {
	if slices.Contains(textual, strings.ToLower(path.Ext(p))) {
		return true
	}
	return utf8.Valid(b) && !bytes.ContainsRune(b, 0)
}

// refused returns why a file must not reach a model; "" if it may.
func refused(p string, b []byte) string {
	if !isText(p, b) {
		return ""
	}
	text := strings.TrimPrefix(string(b), "\ufeff")
	if rules := hidden(text); rules != "" {
		return "hidden text (" + rules + ")"
	}
	if slices.Contains(prose, strings.ToLower(path.Ext(p))) {
		return unseen(text)
	}
	return ""
}

var (
	title      = regexp.MustCompile(`\]\([^()\s]*\s+("[^"]*"|'[^']*'|\([^)]*\))\s*\)`)
	definition = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s*\S+\s+(["'(].*)$`)
	styled     = regexp.MustCompile(`(?i)<[a-z][a-z0-9]*\b[^>]*\bstyle\s*=\s*["']?[^"'>]*(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(px|pt|em|rem|%)?\s*(;|["'>])|opacity\s*:\s*0(\.0+)?\s*(;|["'>]))`)
	attribute  = regexp.MustCompile(`(?i)<[a-z][a-z0-9]*\b[^>]*\shidden(\s|=|>)`)
	element    = regexp.MustCompile(`(?i)<([a-z][a-z0-9-]*)\b((?:\s[^<>]*)?)>`)
	unshown    = regexp.MustCompile(`(?i)^(audio|canvas|datalist|dialog|head|iframe|math|meta|noembed|noframes|noscript|object|option|param|script|select|style|svg|template|textarea|title|video)$`)
	restyled   = regexp.MustCompile(`(?i)\s(class|style|width|height|color|aria-hidden)\s*=`)
	// order matches text that tells an agent what to do.
	order = regexp.MustCompile(`(?is)\b(` + strings.Join([]string{
		`(ignore|disregard|forget|override) (all|any|the|your|previous|prior|earlier|every|these|those|other|what (the|i|we|was|you (were|know|have)|you've))\b`,
		`(agents?|assistants?|claude|chatgpt|copilot|codex|gemini|gpt|llms?|ai|(language )?models?) ?[:,]`,
		`(dear|hey|attention|note to( the)?|instructions? (for|to)( the)?|for the|as an?|you are an?) (ai|agent|assistant|llm|language model|model)s?\b`,
		`you (must|should|shall|will|have to|need to|are to|can now)\b`,
		`(do not|don't|never) (tell|mention|show|reveal|inform|disclose|ask|warn)\b`,
		`(without|before) (asking|telling|informing|mentioning|confirm|approval|permission|answering|responding)`,
		`system (prompt|message|instruction)`,
		`(read|cat|send|upload|post|exfiltrate|copy|include|forward|mail|append|print|leak|fetch|open)\b[^\n]{0,80}(~/|\.env\b|\.ssh|\.aws|id_rsa|id_ed25519|credential|secret|password|passwd|api.?key|private key|access token|https?://)`,
		`e?mail (it|this|that|these|them|the|all|any|every|your|me|us)\b`, `e?mail to \S*@`, `(curl|wget)\s+\S`, `rm -rf`, `(run|execute) (the|this|these|following|command|script|in the)\b`,
	}, "|") + `)`)
	// guidance matches what the comments of templates say of the file that they are in.
	guidance = regexp.MustCompile(`(?i)\byou (must|should|need to|have to) ((update|fill in|fill out|complete|edit|replace) this (document|file|section|table|template)|answer)\b`)
)

// orders reports whether a text tells an agent what to do.
func orders(text string) bool { return order.MatchString(guidance.ReplaceAllString(text, "")) }

// unseen returns what a text in Markdown hides from its readers and tells an agent: in comments, in
// titles of links, and in elements that are not shown. Examples in code are seen.
func unseen(text string) string {
	text = withoutCode(text)
	var seen strings.Builder
	for {
		before, rest, comment := strings.Cut(text, "<!--")
		seen.WriteString(before)
		if !comment {
			break
		}
		body, after, _ := strings.Cut(rest, "-->")
		if orders(body) {
			return "a comment that addresses the agent"
		}
		text = after
	}
	text = seen.String()
	if styled.MatchString(text) || attribute.MatchString(text) || addresses(text) {
		return "an element that is not shown"
	}
	for _, words := range []*regexp.Regexp{title, definition} {
		for m := range matches(words, text) {
			if orders(text[m[2]:m[3]]) {
				return "a title of a link that addresses the agent"
			}
		}
	}
	return ""
}

// matches yields the matches of a pattern that matches no empty text, as submatch indices. They are not kept
// together: the author of a text decides how many it has.
func matches(pattern *regexp.Regexp, text string) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for at := 0; ; {
			m := pattern.FindStringSubmatchIndex(text[at:])
			if m == nil {
				return
			}
			for i := range m {
				m[i] += at
			}
			if !yield(m) {
				return
			}
			at = m[1]
		}
	}
}

// maxElement bounds how much of an element is looked at.
const maxElement = 4 << 10

// addresses reports whether an attribute, or an element that a style or its kind may hide, tells an
// agent what to do. What several elements may hide is looked through once.
func addresses(text string) bool {
	from, to := 0, 0 // what may be hidden, and is not looked through yet
	for m := range matches(element, text) {
		name, attributes := text[m[2]:m[3]], text[m[4]:m[5]]
		if orders(attributes) {
			return true
		}
		if !unshown.MatchString(name) && !restyled.MatchString(attributes) {
			continue
		}
		if m[1] > to {
			if orders(text[from:to]) {
				return true
			}
			from = m[1]
		}
		content, _, _ := strings.Cut(text[m[1]:min(len(text), m[1]+maxElement)], "</"+name)
		to = max(to, m[1]+len(content))
	}
	return orders(text[from:to])
}

var (
	injected  = regexp.MustCompile("(?m)(^|[^`\\\\])!`[^`\n]+`")
	piped     = regexp.MustCompile(`(?im)\b(curl|wget|iwr|invoke-webrequest)\b[^\n|]*\|\s*(sudo\s+(-\S+\s+)*)?((\S*/)?env\s+)?(\w+=\S*\s+)*(\S*/)?((ba|z|da|k)?sh\b|(python[\d.]*|perl|ruby|node|php)[ \t]*-?[ \t]*$)|\b(bash|sh)\s+<\(\s*curl|\biex\b[^\n]*\b(iwr|downloadstring)\b`)
	installed = regexp.MustCompile(`"(pre|post)?install"\s*:|"prepare"\s*:`)
)

// startFiles are run by tools that find them, by the name or the beginning of the path.
var startFiles = []string{"conftest.py", ".envrc", "sitecustomize.py", "usercustomize.py", ".pre-commit-config.yaml", ".npmrc", ".git/", ".husky/", ".vscode/", ".claude/"}

// notes returns what a person should know of a file before it is approved.
func notes(p string, b []byte) (all []string) {
	name := path.Base(p)
	for _, one := range startFiles {
		if name == one || strings.HasSuffix(one, "/") && (strings.HasPrefix(p, one) || strings.Contains(p, "/"+one)) {
			all = append(all, "tools run it by themselves")
			break
		}
	}
	if !isText(p, b) {
		return append(all, binary(b)...)
	}
	if p == File && injected.Match(b) {
		all = append(all, "runs a command when it is loaded (!`command`)")
	}
	if piped.Match(b) {
		all = append(all, "runs what it downloads")
	}
	if name == "package.json" && installed.Match(b) {
		all = append(all, "runs a command when it is installed")
	}
	return all
}

// magic are the first bytes of files that are more than data.
var magic = []struct{ begins, is string }{
	{"\x7fELF", "a program"}, {"MZ", "a program"}, {"\xcf\xfa\xed\xfe", "a program"}, {"\xca\xfe\xba\xbe", "a program"}, {"\x00asm", "a program"},
	{"PK\x03\x04", "an archive"}, {"\x1f\x8b", "an archive"}, {"7z\xbc\xaf", "an archive"}, {"BZh", "an archive"}, {"\xfd7zXZ", "an archive"}, {"Rar!", "an archive"},
}

func binary(b []byte) []string {
	for _, m := range magic {
		if bytes.HasPrefix(b, []byte(m.begins)) {
			return []string{m.is}
		}
	}
	png := bytes.HasPrefix(b, []byte("\x89PNG")) && (bytes.Contains(b, []byte("tEXt")) || bytes.Contains(b, []byte("zTXt")) || bytes.Contains(b, []byte("iTXt")))
	jpeg := bytes.HasPrefix(b, []byte("\xff\xd8\xff")) && (bytes.Contains(b[:min(len(b), 64<<10)], []byte("\xff\xfe")) || bytes.Contains(b[:min(len(b), 64<<10)], []byte("Exif\x00\x00")))
	if png || jpeg {
		return []string{"a picture with text in it"}
	}
	return []string{"a binary"}
}
