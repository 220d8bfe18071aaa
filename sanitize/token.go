package sanitize

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// fullBar stands for the bar in the tokens of some models.
	fullBar = '\uff5c'
	// systemWord marks the system's turn in some home-made templates.
	systemWord = "__system__"
	// maxTokenName bounds the name of a token between bars.
	maxTokenName = 48
	// maxNested bounds how often the ampersand of a reference is itself one.
	maxNested = 4
)

// Chat templates mark turns with words that a model takes for the template's own
// when a text holds them. Most have bars: ChatML, Llama 3, Phi, Zephyr, Qwen,
// Command R, gpt-oss, EXAONE. These are the others, by their brackets.
var (
	angleNames  = []string{"start_of_turn", "end_of_turn", "bos", "eos", "sop", "eop", "BOS_TOKEN", "EOS_TOKEN", "tool_call_begin", "tool_call_end"} // Gemma, GLM, Command R
	doubleNames = []string{"SYS", "/SYS"}                                                                                                            // Llama 2
	squareNames = []string{                                                                                                                          // Llama 2, Mistral, GLM
		"INST", "/INST", "SYSTEM_PROMPT", "/SYSTEM_PROMPT", "AVAILABLE_TOOLS", "/AVAILABLE_TOOLS",
		"TOOL_CALLS", "TOOL_CONTENT", "/TOOL_CONTENT", "TOOL_RESULTS", "/TOOL_RESULTS", "gMASK",
	}
	waveNames = []string{"]~b]", "]~!b[", "[e~[", "]~e]", "[~b["} // MiniMax
)

// spacedNames are names between bars that stay tokens with spaces in them: some tokenizers
// drop those. Names that programs have between such bars, F#'s pipes, are none of them.
var spacedNames = words(`imstart imend imsep system assistant endoftext eotid eomid startheaderid endheaderid beginoftext startofturn
	endofturn startofrole endofrole endofprompt toolcall toolresponse fimprefix fimsuffix fimmiddle`)

// turnNames are the tags that hosts and templates put around what is not the user's: results
// of tools, thoughts, and their own words. They are also names in ordinary XML and HTML, so
// that they lose their form alone, and the first two, which many files have, as they are alone.
var turnNames = []string{
	"system", "s", "system-reminder", "tool_result", "tool_results", "function_results", "function_calls", "think", "thinking", "tool_call", "tool_calls",
	"tool_response", "tool_responses", "start_function_call", "end_function_call", "start_function_response", "end_function_response",
	"start_function_declaration", "end_function_declaration", "seed:bos", "seed:eos", "seed:think", "seed:tool_call", "unk",
}

// turnWords are those of the kind between square brackets, which help texts have, too.
var turnWords = []string{"ARGS", "CALL_ID", "THINK", "/THINK", "BOS", "EOS", "UNK"}

// bracketStart marks the letters that square tokens begin with.
var bracketStart = func() (t [256]bool) {
	for _, name := range slices.Concat(squareNames, turnWords, []string{"|", "e", "~"}) {
		t[name[0]] = true
	}
	return t
}()

// tokenStart marks what follows an angle where a token or a tag of a host may begin.
var tokenStart = func() (t [256]bool) {
	for _, name := range slices.Concat(angleNames, []string{"|", "<", "&", "/", string(fullBar)}) {
		t[name[0]] = true
	}
	for c := range turnStart {
		t[c] = t[c] || turnStart[c]
	}
	return t
}()

// turnStart marks the letters that tags of hosts begin with.
var turnStart = func() (t [256]bool) {
	for _, name := range append(turnNames, "extra_id_") {
		t[name[0]], t[name[0]-'a'+'A'] = true, true
	}
	return t
}()

// tokens removes control tokens, also those whose brackets and bars are
// character references; turns says that tags of hosts lose their form.
func (f *findings) tokens(s string, turns bool) string {
	o := output{from: s, max: f.max}
	for i := 0; i < len(s); {
		n := tokenAt(s, i)
		switch {
		case n > 0:
			f.remove(ruleToken)
			o.replace(i, i+n, "token")
			i += n
		case turns && turnTag(s[i:]):
			f.remove(ruleToken)
			o.insert(i+1, " ")
			i++
		default:
			i++
		}
	}
	return o.String()
}

// tokenEdits returns what takes tokens and tags of hosts their form: a space after
// their first character.
func tokenEdits(s string) (edits []edit) {
	for i := 0; i < len(s); i++ {
		if tokenAt(s, i) > 0 || turnTag(s[i:]) {
			_, n := char(s[i:])
			edits = append(edits, edit{i + n, " ", ruleToken})
		}
	}
	return edits
}

// tokenAt returns the length of the control token at s[i], or 0.
func tokenAt(s string, i int) int {
	if s[i] == '_' && i > 0 && isWord(rune(s[i-1])) {
		return 0
	}
	return token(s[i:])
}

// token returns the length of the control token that s begins with, or 0.
func token(s string) int {
	switch s[0] {
	case '_':
		return wordToken(s)
	case '<', '[', '&', ']':
	default:
		return 0
	}
	first, n := char(s)
	second, m := char(s[n:])
	bar := second == '|' || second == fullBar
	switch {
	case first == '<' && bar:
		return barToken(s, n+m, '>')
	case first == '<' && second == '<':
		return namedToken(s, n+m, doubleNames, ">>")
	case first == '<':
		return max(namedToken(s, n, angleNames, ">"), halfToken(s, n))
	case first == '[' && bar:
		return barToken(s, n+m, ']')
	case first == '[' && second != 'e' && second != '~':
		return namedToken(s, n, squareNames, "]")
	}
	for _, wave := range waveNames {
		if strings.HasPrefix(s, wave) {
			return len(wave)
		}
	}
	return 0
}

// turnTag reports whether s begins with a start or end tag of turnNames, or with one of
// turnWords.
func turnTag(s string) bool {
	if s[0] == '[' && len(s) > 1 && bracketStart[s[1]] {
		return namedToken(s, 1, turnWords, "]") > 0
	}
	if s[0] != '<' || len(s) < 3 || !turnStart[s[1]] && (s[1] != '/' || !turnStart[s[2]]) {
		return false
	}
	name := strings.TrimPrefix(s[1:min(len(s), maxTokenName)], "/")
	end := strings.IndexFunc(name, func(r rune) bool { return !isWord(r) && r != '-' && r != ':' })
	if end < 0 || name[end] != '>' && name[end] != '/' && !isSpace(name[end]) {
		return false
	}
	named := func(one string) bool { return strings.EqualFold(one, name[:end]) }
	return name[end] == '>' && slices.Contains(turnNames[:2], name[:end]) || slices.ContainsFunc(turnNames[2:], named) ||
		strings.HasPrefix(name, "extra_id_") && isNumber(name[len("extra_id_"):end])
}

func wordToken(s string) int {
	n := len(systemWord)
	if len(s) < n || !strings.EqualFold(s[:n], systemWord) || len(s) > n && isWord(rune(s[n])) {
		return 0
	}
	return n
}

// barToken reads a name from s[i:] up to a bar and what closes it, or without the bar.
func barToken(s string, i int, closing rune) int {
	from, spaced := i, false
	for range maxTokenName {
		r, n := char(s[i:])
		switch {
		case r == '|' || r == fullBar:
			if (spaced || closing == ']') && !knownName(s[from:i], closing) {
				return 0
			}
			if r, m := char(s[i+n:]); r == closing {
				return i + n + m
			}
			return 0
		case r == '>' && closing == '>' && !spaced && i > from:
			return i + n
		case r == ' ':
			spaced = true
		case !isWord(r) && r != '-' && r != '/' && r != '\u2581': // what some tokenizers put for a space
			return 0
		}
		i += n
	}
	return 0
}

// knownName reports whether a name is one of spacedNames, however its words are joined.
func knownName(name string, closing rune) bool {
	name = strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(name))
	return spacedNames[name] || closing == ']' && (name == "user" || name == "tool") // EXAONE
}

// halfToken reads a name from s[i:] up to a bar and an angle, where no bar is before it.
func halfToken(s string, i int) int {
	from := i
	for i < len(s) && isWord(rune(s[i])) && i < maxTokenName {
		i++
	}
	if r, n := char(s[i:]); i > from && (r == '|' || r == fullBar) {
		if r, m := char(s[i+n:]); r == '>' {
			return i + n + m
		}
	}
	return 0
}

// namedToken reads one of the names from s[i:], and what closes it.
func namedToken(s string, i int, names []string, end string) int {
	for _, name := range names {
		if i >= len(s) || s[i] != name[0] || !strings.HasPrefix(s[i:], name) {
			continue
		}
		at, closed := i+len(name), true
		for _, want := range end {
			r, n := char(s[at:])
			closed = closed && r == want
			at += n
		}
		if closed {
			return at
		}
	}
	return 0
}

// char returns the first character of s, read as a character reference if it is
// one of those that tokens can be disguised with, and its length.
func char(s string) (rune, int) {
	if s == "" || s[0] != '&' {
		return utf8.DecodeRuneInString(s)
	}
	s = s[:min(len(s), maxEntity)]
	i := 1
	for range maxNested {
		if !strings.HasPrefix(s[i:], "amp;") {
			break
		}
		i += len("amp;")
	}
	name, _, ok := strings.Cut(s[i:], ";")
	if !ok {
		return '&', 1
	}
	if r := referred(name); r != 0 {
		return r, i + len(name) + 1
	}
	return '&', 1
}

var disguises = map[string]rune{
	"lt": '<', "gt": '>', "LT": '<', "GT": '>', "vert": '|', "verbar": '|', "VerticalLine": '|',
	"lsqb": '[', "lbrack": '[', "rsqb": ']', "rbrack": ']',
}

// referred returns the character of a reference's name, if it is one of
// disguises.
func referred(name string) rune {
	if !strings.HasPrefix(name, "#") {
		return disguises[name]
	}
	digits, base := strings.TrimLeft(name[1:], "0"), 10
	if len(name) > 1 && (name[1] == 'x' || name[1] == 'X') {
		digits, base = strings.TrimLeft(name[2:], "0"), 16
	}
	var r rune
	for _, c := range strings.ToLower(digits) {
		d := strings.IndexRune("0123456789abcdef"[:base], c)
		if r = r*rune(base) + rune(d); d < 0 || r > 0xffff {
			return 0
		}
	}
	for _, known := range disguises {
		if r == known {
			return r
		}
	}
	if r == fullBar {
		return r
	}
	return 0
}
