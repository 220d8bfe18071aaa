package sanitize

import (
	"slices"
	"strings"
)

// How an element acts.
type activity uint8

const (
	acts     activity = 1 + iota // whatever its attributes
	holds                        // it hides what it holds, if an end tag comes
	needs                        // by one of loading
	fetches                      // what its href names is fetched without a click
	animates                     // by attributename
	special                      // as actsBy says
)

// elements are those that run, load, send, or hide what they hold, or change how
// what follows is read (HTML Living Standard, 4; SVG 2).
var elements = namesOf(map[string]activity{
	"script": acts, "style": acts, "iframe": acts, "frameset": acts, "noscript": acts, "noembed": acts, "noframes": acts,
	"template": holds, "datalist": holds, "canvas": holds, "progress": holds, "meter": holds, "audio": holds, "video": holds,
	"object": needs, "embed": needs, "applet": needs, "frame": needs, "portal": needs, "fencedframe": needs, "layer": needs, "ilayer": needs,
	"use": fetches, "image": fetches, "feimage": fetches, "textpath": fetches, "mpath": fetches, "tref": fetches, "cursor": fetches, "font-face-uri": fetches,
	"pattern": fetches, "lineargradient": fetches, "radialgradient": fetches, "filter": fetches,
	"animate": animates, "animatetransform": animates, "animatemotion": animates, "set": animates,
	"base": special, "link": special, "meta": special, "form": special, "input": special, "dialog": special, "isindex": special,
})

// knownNames are elements that a text without an end may have begun.
var knownNames = namesOf(words(`img div span table form input button iframe script style object embed video audio body html head meta link base svg math
	details section article header footer main nav aside pre code textarea select option label template marquee picture source font center
	br hr td tr th ul ol li dl dt dd h1 h2 h3 h4 h5 h6 blockquote`))

// htmlNames are the elements of HTML, those without a meaning of their own included.
var htmlNames = namesOf(words(`a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br button
	canvas caption center cite code col colgroup command content data datalist dd del details dfn dialog dir div dl dt element em embed fencedframe
	fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins isindex kbd
	keygen label layer legend li link listing main map mark marquee math menu menuitem meta meter multicol nav nextid nobr noembed noframes noscript
	object ol optgroup option output p param picture plaintext portal pre progress q rb rp rt rtc ruby s samp script search section select
	selectedcontent shadow slot small source spacer span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead
	time title tr track tt u ul var video wbr xmp`))

// loading are the attributes by which elements load a page or a program.
var loading = namesOf(words("src srcdoc data code codebase classid archive object type"))

// redirecting are the attributes by which elements leave the page or change others.
var redirecting = namesOf(words("http-equiv content attributename"))

// What an attribute's value is.
type meaning uint8

const (
	fetched meaning = 1 + iota // a URL that is fetched without a click
	list                       // several of them
	followed
	declarations
	hides
)

var attributes = namesOf(map[string]meaning{
	"src": fetched, "background": fetched, "poster": fetched, "lowsrc": fetched, "dynsrc": fetched, "icon": fetched, "ping": fetched, "attributionsrc": fetched,
	"srcset": list, "imagesrcset": list,
	"href": followed, "xlink:href": followed, "action": followed, "formaction": followed, "longdesc": followed, "cite": followed, "manifest": followed,
	"style": declarations, "hidden": hides,
})

// ruleOf returns the rule by which the tag that s begins with acts, or "".
func (p *tagPass) ruleOf(t tag, s string) string {
	if t.close {
		if len(t.attrs) > 0 && ownWords(s[:t.size]) > maxOwnWords { // a page shows nothing of them
			return ruleComment
		}
		return ""
	}
	rule, kind := "", elements.get(t.name)
	switch kind {
	case acts:
		if t.is("script") || t.is("iframe") {
			return ruleScript
		}
		return ruleElement
	case holds:
		if p.endsLater(t) {
			rule = ruleHidden
		}
	case needs:
		if slices.ContainsFunc(t.attrs, func(a attr) bool { return loading.get(a.name) }) {
			return ruleScript
		}
	case animates:
		if t.attr("attributename") != nil {
			return ruleElement
		}
	case special:
		if r := p.actsBy(t); r != "" {
			return r
		}
	}
	for _, a := range t.attrs {
		followed := !t.is("link") || !strings.EqualFold(a.name, "href")
		if r := p.ruleOfAttr(a, kind == fetches); r == ruleHandler || r == ruleURL {
			return r
		} else if rule == "" && followed {
			rule = r
		}
	}
	return rule
}

// is reports whether the tag is one of an element.
func (t tag) is(name string) bool { return strings.EqualFold(t.name, name) }

// attr returns the first attribute of that name, or nil.
func (t tag) attr(want string) *attr {
	for i := range t.attrs {
		if strings.EqualFold(t.attrs[i].name, want) {
			return &t.attrs[i]
		}
	}
	return nil
}

// value returns the value of the first attribute of that name, in lower case and
// without white space around it.
func (t tag) value(name string) string {
	a := t.attr(name)
	if a == nil {
		return ""
	}
	return strings.ToLower(strings.TrimFunc(a.decoded(), isWhite))
}

// The values with which a link or a meta element does nothing to a page.
var (
	quietRels   = []string{"self", "alternate", "canonical", "author", "license", "help", "via", "edit", "related", "enclosure", "replies", "next", "prev", "up", "first", "last", "noopener", "noreferrer", "nofollow"}
	quietEquivs = []string{"content-type", "x-ua-compatible", "content-language", "imagetoolbar"}
)

// actsBy returns the rule by which an element acts that does so by some of its
// attributes alone.
func (p *tagPass) actsBy(t tag) string {
	switch strings.ToLower(t.name) {
	case "base":
		if t.attr("href") == nil && t.attr("target") == nil {
			return ""
		}
	case "link":
		loud := slices.ContainsFunc(strings.Fields(t.value("rel")), func(rel string) bool { return !slices.Contains(quietRels, rel) })
		if !loud || t.attr("href") == nil && t.attr("imagesrcset") == nil {
			return ""
		}
	case "meta":
		equiv := t.value("http-equiv")
		if (equiv == "" || slices.Contains(quietEquivs, equiv)) && t.value("name") != "referrer" {
			return ""
		}
	case "form", "isindex":
		if action := t.value("action"); action == "" || strings.HasPrefix(action, "#") {
			return ""
		}
	case "input":
		if t.value("type") != "hidden" || t.attr("value") == nil {
			return ""
		}
		return ruleHidden
	case "dialog":
		if t.attr("open") != nil || !p.endsLater(t) {
			return ""
		}
		return ruleHidden
	}
	return ruleElement
}

// ruleOfAttr returns the rule by which an attribute acts, or ""; loads says that
// its element fetches what its href names.
func (p *tagPass) ruleOfAttr(a attr, loads bool) string {
	what := attributes.get(a.name)
	if what == hides {
		return ruleHidden
	}
	if a.value == "" {
		return ""
	}
	if handler(a.name) {
		return ruleHandler
	}
	if what == 0 && strings.IndexByte(a.value, ':') < 0 && strings.IndexByte(a.value, '&') < 0 && strings.IndexByte(a.value, '(') < 0 {
		return ""
	}
	if what == followed && !loads && p.allowed.allow == nil && ordinary(a.value) {
		return ""
	}
	value := a.decoded()
	if runs(value) {
		return ruleURL
	}
	switch what {
	case fetched:
		return p.target(value, true)
	case followed:
		return p.target(value, loads)
	case list:
		for one := range strings.SplitSeq(value, ",") {
			if r := p.target(one, true); r != "" {
				return r
			}
		}
	default:
		return p.style(value, what == declarations)
	}
	return ""
}

// target returns the rule by which a target is off the list, or "".
func (p *tagPass) target(target string, fetched bool) string {
	if remote(target, false) && !p.allowed.keeps(target, fetched) {
		return linkRule(fetched)
	}
	return ""
}

// style returns the rule by which a style acts; declared says that it is one, and
// no value that may be.
func (p *tagPass) style(value string, declared bool) string {
	css := readCSS(value)
	for _, target := range css.targets {
		if p.target(target, true) != "" {
			return ruleImage
		}
	}
	switch {
	case css.runs:
		return ruleURL
	case declared && css.hides:
		return ruleHidden
	}
	return ""
}

// tagPass looks at every angle of a text, wherever it stands: what one reader takes
// for a comment, an attribute or code, another takes for a tag.
type tagPass struct {
	s       string
	allowed Links
	edits   []edit
	room    []attr
	budget  int // how many bytes of tags may still be read
	ends    map[string]int
	low     string
	// acting and paragraph are what actsLater found when it looked last.
	acting    [2]int
	paragraph int
}

const (
	// maxTag bounds a tag, in bytes: one that is longer counts as one without an end.
	maxTag = 64 << 10
	// maxReads is how often each byte may be read as part of a tag, on average, so
	// that a text made of openings takes no longer than another. Beyond it, all
	// tags are made inert.
	maxReads = 8
)

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
	case plainTag(s):
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
func plainTag(s string) bool {
	start := 1
	if s[1] == '/' {
		start = 2
	}
	i := start
	for i < len(s) && isWord(rune(s[i])) {
		i++
	}
	return i > start && isLetter(s[start]) && i < len(s) && s[i] == '>' && (start == 2 || elements.get(s[start:i]) == 0)
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
	if rule := p.ruleOf(t, s); rule != "" {
		return rule
	}
	if !t.whole && (t.size == maxTag || knownNames.get(t.name)) {
		return ruleElement
	}
	if t.whole && !inMarkdown(s[:t.size]) && p.actsLater(i+t.size, htmlNames.get(t.name)) {
		return ruleElement // Markdown takes it for text, and a browser for a tag that goes on
	}
	if t.is("meta") && t.attr("http-equiv") != nil && strings.IndexByte(s[:t.size], '\n') >= 0 { // Markdown may end it with the line, and change what it says
		return ruleElement
	}
	if t.to > 0 && (t.to == len(s) || cutByMarkdown(p.s, i, i+t.from, i+t.to)) {
		return ruleElement
	}
	return ""
}

// actsLater reports whether there is something in the paragraph, from s[i] on, that acts if a
// browser takes it for attributes of an element, of HTML or of no language.
func (p *tagPass) actsLater(i int, ofHTML bool) bool {
	acting := &p.acting[0]
	if ofHTML {
		acting = &p.acting[1]
	}
	if i > *acting {
		*acting = p.nextActing(i, ofHTML)
	}
	if i > p.paragraph {
		p.paragraph = paragraphEnd(p.s, i)
	}
	return *acting < p.paragraph
}

// nextActing returns where the first word from s[i] on begins that acts as an attribute. The
// angles and quotes between are references once a renderer has written them, and end nothing.
func (p *tagPass) nextActing(i int, ofHTML bool) int {
	const ends = " \t\r\n\f/>\"'<="
	for s := p.s; i < len(s); i++ {
		size := len(until(s[i:], ends))
		if size == 0 {
			continue
		}
		a := attr{name: s[i : i+size]}
		if rest := strings.TrimLeft(s[i+size:], " \t\r\n\f"); strings.HasPrefix(rest, "=") {
			a.value = until(strings.TrimLeft(rest[1:], " \t\r\n\f\"'"), " \t\r\n\f>")
		}
		if p.ruleOfAttr(a, true) != "" || ofHTML && a.value != "" && (loading.get(a.name) || redirecting.get(a.name)) {
			return i
		}
		i += size
	}
	return len(p.s)
}

// keepsAddress reports whether what s begins with may stay where Markdown takes it
// for an address between angles (CommonMark 0.31, 6.5), which shows where it leads.
func (p *tagPass) keepsAddress(s string) bool {
	address, closed := s[1:], false
	if end := strings.IndexFunc(address, func(r rune) bool { return isDropped(r) || r == '<' || r == '>' }); end >= 0 {
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

// endsLater reports whether an end tag of the element stands anywhere in the text.
func (p *tagPass) endsLater(t tag) bool {
	name := strings.ToLower(t.name)
	if p.ends == nil {
		p.ends = make(map[string]int)
		p.low = strings.ToLower(p.s)
	}
	last, known := p.ends[name]
	if !known {
		last = strings.LastIndex(p.low, "</"+name)
		p.ends[name] = last
	}
	return last >= 0
}

// blockEnds end, within a line, what Markdown hands on as HTML (CommonMark 0.31,
// 4.6).
var blockEnds = []string{"-->", "?>", "]]>", "</pre", "</script", "</style", "</textarea", "<!"}

// cutComment reports whether a renderer may take the comment s[i:] for the end of its HTML, of
// which the last line begins before s[to:], and write an end of it that is none: a browser
// then takes what follows for a part of it.
func cutComment(s string, i, to int) bool {
	start, last := strings.LastIndexByte(s[:i], '\n')+1, strings.LastIndexByte(s[:min(len(s), to+len("<!--"))], '\n')+1
	if last <= i {
		return false // it is of one line
	}
	before, lines := s[start:i], s[i+len("<!--"):last]
	text := strings.TrimLeft(before, " \t")
	switch {
	case strings.Contains(lines, ">"), strings.Contains(lines, "</"), strings.ContainsAny(text, "*+->.)"), strings.Contains(text, "</"):
		return true
	}
	alone := text == "" && (start == 0 || strings.TrimSpace(s[strings.LastIndexByte(s[:start-1], '\n')+1:start-1]) == "")
	for line := range strings.SplitSeq(s[lineEnd(s, i)+1:lineEnd(s, last)], "\n") {
		text := strings.TrimLeft(line, " \t\r")
		if text == "" && !alone || text != "" && len(line)-len(text) < len(before)-len(strings.TrimLeft(before, " \t")) {
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
