package sanitize

import (
	"strings"
)

// ruleOf returns the rule by which the tag that s begins with, of an element, is off the
// list, or "".
func (p *tagPass) ruleOf(t tag, e *element, s string) (rule string) {
	if t.close {
		if len(t.attrs) > 0 && ownWords(s[:t.size]) > maxOwnWords { // a page shows nothing of them
			return ruleComment
		}
		p.ends(t.name)
		return ""
	}
	if e != nil && e.attrs == nil {
		rule = ruleElement
		if t.is("script") || t.is("iframe") {
			rule = ruleScript
		}
	}
	for i := range t.attrs {
		if r := p.ruleOfAttr(&t.attrs[i], e); r == ruleHandler || r == ruleURL {
			return r
		} else if rule == "" {
			rule = r
		}
	}
	if rule == "" && e != nil && p.tooDeep(e) {
		rule = ruleHidden
	}
	return rule
}

// ruleOfAttr returns the rule by which an attribute is off the list, or "": of an element on
// it, or of one that HTML does not have.
func (p *tagPass) ruleOfAttr(a *attr, e *element) string {
	switch {
	case a.value != "" && handler(a.name):
		return ruleHandler
	case a.value == "" && e == nil && !alone(a.name):
		return ""
	}
	if g := a.grammar(e); g != nil {
		if a.value == "" {
			return ""
		}
		return g.off(p.allowed, a.decoded())
	}
	what := attributes.get(a.name)
	if what == ofAll || what == valued && a.value != "" {
		return ruleHidden
	}
	if a.value == "" {
		if e != nil && len(a.name) > 1 && !notAttributes.get(a.name) && plainWord(a.name) {
			return ruleElement
		}
		return ""
	}
	if value := a.decoded(); strings.ContainsAny(value, ":(") || what == address {
		switch {
		case runs(value):
			return ruleURL
		case what == address:
			if r := p.allowed.anyOff(value); r != "" {
				return r
			}
		case len(readCSS(value)) > 0:
			return ruleImage
		}
	}
	if e != nil {
		return ruleElement
	}
	return ""
}

const maxDeep = 24

// tooDeep reports whether an element is too deep in others that are growing; if not, it
// begins.
func (p *tagPass) tooDeep(e *element) bool {
	if e.void {
		return false
	}
	if e.weight > 0 && p.deep+e.weight > maxDeep {
		return true
	}
	if len(p.begun) < maxOpen {
		p.begun = append(p.begun, e)
		p.deep += e.weight
	}
	return false
}

// ends has the element end that an end tag is of. One that a browser may hold to be of
// another element ends none, so that what is deep stays so.
func (p *tagPass) ends(name string) {
	n := len(p.begun) - 1
	if n < 0 {
		return
	}
	if name != p.begun[n].name {
		e := elements.get(name)
		if e == nil {
			return
		}
		for block := e.weight < 4 || name[0]|0x20 == 'h'; block && n >= 0 && p.begun[n] != e && p.begun[n].unclosed; {
			n--
		}
		if n < 0 || p.begun[n] != e {
			return
		}
	}
	for _, one := range p.begun[n:] {
		p.deep -= one.weight
	}
	p.begun = p.begun[:n]
}

// tagPass looks at every angle of a text, wherever it is: one reader takes for a tag what another
// takes for a comment, an attribute or code.
type tagPass struct {
	s       string
	allowed Links
	edits   []edit
	room    []attr
	budget  int        // how many bytes of tags may still be read
	begun   []*element // the elements that have begun and not ended
	deep    int        // how deep they are, see growing
	raw     bool       // an element of HTML has begun, behind which a renderer may write text as it is
	// acting and paragraph are what actsLater found when it looked last.
	acting    [2]int
	paragraph int
}

func newTagPass(s string, l Links) *tagPass {
	return &tagPass{s: s, allowed: l, budget: maxReads*len(s) + maxTag, acting: [2]int{-1, -1}, paragraph: -1}
}

func (p *tagPass) run() []edit {
	for i := 0; ; i++ {
		next := strings.IndexByte(p.s[i:], '<')
		if next < 0 || i+next+1 >= len(p.s) {
			return p.edits
		}
		i += next
		if rule := p.angle(i); rule != "" {
			p.edits = append(p.edits, edit{i + 1, " ", rule})
		}
	}
}

// angle returns the rule by which what begins at s[i] acts, or "".
func (p *tagPass) angle(i int) string {
	s := p.s[i:]
	switch c := s[1]; {
	case p.plainTag(s):
	case isLetter(c), c == '/' && len(s) > 2 && isLetter(s[2]):
		return p.tag(i)
	case c == '!', c == '?', c == '/' && len(s) > 2 && s[2] != '>':
		if p.budget < 0 {
			return ruleComment
		}
		hides, read := hidesWords(s)
		p.budget -= read
		if !hides && strings.HasPrefix(s, "<!--") && cutComment(p.s, i, i+read) {
			after := s[min(len(s), read+len("<!---->")):]
			after = after[:min(len(after), maxComment)]
			p.budget -= len(after)
			hides = ownWords(after) > maxOwnWords
		}
		if hides {
			return ruleComment
		}
	}
	return ""
}

// plainTag reports whether s begins with a tag that is a name and nothing else, as
// most are, and which does nothing.
func (p *tagPass) plainTag(s string) bool {
	start := 1
	if s[1] == '/' {
		start = 2
	}
	i := start
	for i < len(s) && isWord(rune(s[i])) {
		i++
	}
	if i == start || !isLetter(s[start]) || i == len(s) || s[i] != '>' {
		return false
	}
	name := s[start:i]
	if start == 2 {
		p.ends(name)
		return true
	}
	e := elements.get(name)
	p.raw = p.raw || e != nil
	return e == nil || e.attrs != nil && !p.tooDeep(e)
}

// tag returns the rule by which the tag at s[i] acts, or "".
func (p *tagPass) tag(i int) string {
	if p.budget < 0 {
		return ruleElement
	}
	s := p.s[i:min(len(p.s), i+maxTag)]
	t := parseTag(s, p.room)
	p.room = t.attrs
	p.budget -= t.size
	if strings.IndexByte(t.name, ':') > 0 && !p.keepsAddress(s) {
		return ruleLink
	}
	e := elements.get(t.name)
	if rule := p.ruleOf(t, e, s); rule != "" {
		return rule
	}
	if !t.whole && (t.size == maxTag || len(t.name) > 1 && e != nil) {
		return ruleElement
	}
	if p.raw && t.whole && !inMarkdown(s[:t.size]) && p.actsLater(i+t.size, e != nil && e.bare) {
		return ruleElement // Markdown takes it for text, and a browser for a tag that goes on
	}
	p.raw = p.raw || e != nil
	if t.to > 0 && (t.to == len(s) || cutByMarkdown(p.s, i, i+t.from, i+t.to)) {
		return ruleElement
	}
	return ""
}

// actsLater reports whether there is something in the paragraph, from s[i] on, that acts if a
// browser takes it for attributes of an element; loads says that it is one of those that load.
func (p *tagPass) actsLater(i int, loads bool) bool {
	acting := &p.acting[0]
	if loads {
		acting = &p.acting[1]
	}
	if i > *acting {
		*acting = p.nextActing(i, loads)
	}
	if i > p.paragraph {
		p.paragraph = paragraphEnd(p.s, i)
	}
	return *acting < p.paragraph
}

// nextActing returns where the first word from s[i] on begins that acts as an attribute. The
// angles and quotes between are references once a renderer has written them, and end nothing.
func (p *tagPass) nextActing(i int, loads bool) int {
	s := p.s
	for end := i; i < len(s); i = end {
		for end = i; end < len(s) && !endsWord[s[end]]; end++ {
		}
		if end == i {
			end++
			continue
		}
		a := attr{name: s[i:end]}
		next := end
		for next < len(s) && isSpace(s[next]) {
			next++
		}
		if next < len(s) && s[next] == '=' {
			a.value = until(strings.TrimLeft(s[next+1:], " \t\r\n\f\"'"), " \t\r\n\f>")
		}
		if a.value == "" && !alone(a.name) {
			continue
		}
		if p.ruleOfAttr(&a, nil) != "" || loads && loading.get(a.name) {
			return i
		}
	}
	return len(s)
}

// endsWord marks what ends a word that may be an attribute.
var endsWord = func() (t [256]bool) {
	for _, c := range " \t\r\n\f/>\"'<=" {
		t[c] = true
	}
	return t
}()

// keepsAddress reports whether what s begins with may stay where Markdown takes it
// for an address between angles (CommonMark 0.31, 6.5), which shows where it leads.
func (p *tagPass) keepsAddress(s string) bool {
	address, closed := s[1:], false
	if end := strings.IndexFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '<' || r == '>' }); end >= 0 { // foreign white space ends none
		address, closed = address[:end], address[end] == '>'
	}
	// Slack shows what follows a bar, and not where it leads.
	if hidden, _, bar := strings.Cut(address, "|"); bar && remote(hidden, false) && !p.allowed.keeps(hidden, false) {
		return false
	}
	if !closed {
		return true
	}
	scheme, _, _ := strings.Cut(address, ":")
	if len(scheme) < 2 || strings.IndexByte(scheme, '_') >= 0 || !isScheme(scheme) { // as <host[:port]>
		return true
	}
	shown := strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "ftp")
	shown = shown && strings.IndexFunc(address, func(r rune) bool { return r == '\\' || r == '@' || r >= 0x80 }) < 0
	return shown && p.allowed.allow == nil || p.allowed.keeps(address, false)
}

// blockEnds end, within a line, what Markdown hands on as HTML (CommonMark 0.31,
// 4.6).
var blockEnds = []string{"-->", "?>", "]]>", "</pre", "</script", "</style", "</textarea", "<!"}

// cutComment reports whether a renderer may take the comment s[i:] for the end of its HTML, whose
// last line begins before s[to:], and write an end of it that is none: a browser then takes what
// follows for a part of it.
func cutComment(s string, i, to int) bool {
	last := strings.LastIndexByte(s[:min(len(s), to+len("<!--"))], '\n') + 1
	if last <= i {
		return false // it is of one line
	}
	before, lines := s[strings.LastIndexByte(s[:i], '\n')+1:i], s[i+len("<!--"):last]
	text := strings.TrimLeft(before, " \t")
	switch {
	case strings.Contains(lines, ">"), strings.Contains(lines, "</"), strings.ContainsAny(text, "*+->.)"), strings.Contains(text, "</"):
		return true
	}
	for line := range strings.SplitSeq(s[lineEnd(s, i)+1:lineEnd(s, last)], "\n") {
		text := strings.TrimLeft(line, " \t\r")
		if text == "" || len(line)-len(text) < len(before)-len(strings.TrimLeft(before, " \t")) {
			return true
		}
	}
	return false
}

// cutByMarkdown reports whether a renderer may take the quoted value s[from:to] of
// the tag at s[i] for the end of its HTML, and read on as Markdown within it: the
// quotes that it writes then end the value.
func cutByMarkdown(s string, i, from, to int) bool {
	start := strings.LastIndexByte(s[:i], '\n') + 1
	before := s[start:i]
	if strings.TrimLeft(before, " \t") != "" && strings.ContainsAny(before, "*+->.)") {
		return true // perhaps a list or a quotation, which ends with the line
	}
	lines := s[start:lineEnd(s, to)]
	for _, end := range blockEnds {
		if strings.Contains(lines, end) {
			return true
		}
	}
	for line := range strings.SplitSeq(s[lineEnd(s, from)+1:to], "\n") {
		text := strings.TrimLeft(line, " \t\r")
		if text == "" || len(line)-len(text) < len(before)-len(strings.TrimLeft(before, " \t")) {
			return true
		}
	}
	return false
}
