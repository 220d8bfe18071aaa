package sanitize

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Links says which targets of links and images stay active in a text. The zero
// value is for texts whose readers render Markdown or HTML: nothing is fetched
// without a click, and a click sends nothing but a path. What is off the list
// stays readable: it loses, by one space, what makes it more than text.
type Links struct{ allow []string }

// NewLinks returns the links to the given targets: an origin such as
// https://example.com, a host such as example.com or *.example.com, or * for
// all of http and https. No target is another thing than the zero Links: with an
// empty list every link is made inert.
func NewLinks(allow []string) (Links, error) {
	for _, a := range allow {
		host := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://"), "*.")
		if a != "*" && (host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/*?#@\\ ")) {
			return Links{}, fmt.Errorf("%q is no origin, no host and not *: write https://example.com, example.com or *.example.com", a)
		}
	}
	return Links{append([]string{}, allow...)}, nil
}

// keeps reports whether a link to a target stays; fetched says that it is
// fetched without a click, as images are.
func (l Links) keeps(target string, fetched bool) bool {
	switch {
	case l.allow == nil && !fetched && ordinary(target):
		return true
	case len(target) >= maxTarget:
		return false
	}
	t := plainTarget(target)
	if strings.HasPrefix(t, "//") {
		t = "https:" + t
	}
	scheme, rest, named := strings.Cut(t, ":")
	if !named || strings.ContainsAny(scheme, "/?#") {
		return !strings.HasPrefix(t, `\\`) && !strings.HasPrefix(t, `/\`) // beside the text, wherever that is
	}
	switch strings.ToLower(scheme) {
	case "mailto", "tel":
		return !fetched
	case "data":
		return fetched && picture(strings.ToLower(rest))
	case "http", "https":
	default:
		return false
	}
	u, err := url.Parse(t)
	if err != nil || u.Host == "" || strings.Contains(t, `\`) {
		return false
	}
	if l.allow == nil {
		return !fetched && u.RawQuery == "" && u.User == nil
	}
	host := strings.ToLower(u.Host)
	for _, a := range l.allow {
		parent, below := strings.CutPrefix(a, "*.")
		if a == "*" || a == host || a == strings.ToLower(u.Scheme)+"://"+host || below && strings.HasSuffix(host, "."+parent) {
			return u.User == nil
		}
	}
	return false
}

// ordinary is the quick answer for the targets of most links: a host and a path.
func ordinary(target string) bool {
	rest, ok := strings.CutPrefix(target, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(target, "http://")
	}
	if !ok || rest == "" || !isWord(rune(rest[0])) || len(rest) > maxTarget {
		return false
	}
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; !isWord(rune(c)) && strings.IndexByte("-./:#~+,=_", c) < 0 {
			return false
		}
	}
	return true
}

// picture reports whether the rest of a data URL is an image that holds no
// markup.
func picture(rest string) bool {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		if strings.HasPrefix(rest, kind+";") || strings.HasPrefix(rest, kind+",") {
			return true
		}
	}
	return false
}

// plainTarget returns a target as a browser reads it: without character
// references, Markdown's escapes and what URLs drop (WHATWG URL, 4.4).
func plainTarget(s string) string {
	s = html.UnescapeString(s)
	return strings.Map(func(r rune) rune {
		if r <= ' ' || isControl(r) || unshaped(r) {
			return -1
		}
		return r
	}, unescapedMarkdown(s))
}

// unescapedMarkdown drops the backslash before punctuation (CommonMark 0.31,
// 2.4).
func unescapedMarkdown(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] < 0x80 && !isWord(rune(s[i+1])) && s[i+1] > ' ' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const (
	// maxTarget bounds a target that is looked at; one that is longer is off every
	// list.
	maxTarget = 2 << 10
	// maxScheme bounds what stands before the colon of a target, with disguises.
	maxScheme = 64
	// maxLabel bounds the text of a link, in bytes (CommonMark bounds labels to
	// 999 characters).
	maxLabel = 1000
)

// remote reports whether a target, as it is written, names anything but a place
// in the same document or beside it. It is quick, and in doubt says yes.
func remote(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n<\"'")
	if len(s) > 1 && (s[0] == '/' || s[0] == '\\') && (s[1] == '/' || s[1] == '\\') {
		return true
	}
	for i := 0; i < min(len(s), maxScheme); i++ {
		switch c := s[i]; {
		case c == ':':
			return i > 0
		case c == '&': // whatever that stands for
			return true
		case isWord(rune(c)), c >= 0x80, strings.IndexByte("+-.\\\t\r\n", c) >= 0:
		default:
			return false
		}
	}
	return len(s) > maxScheme
}

// mayLink reports whether a link with a remote target may begin at s[0], the
// first byte of its mark.
func mayLink(s string) bool {
	switch s[0] {
	case ']':
		return len(s) > 2 && (s[1] == '(' || s[1] == ':') && remote(s[2:])
	case '\\':
		return latex(s) > 0
	default: // a backtick or a tilde
		return strings.HasPrefix(s[1:], s[:1]+s[:1]) && strings.HasPrefix(strings.TrimLeft(s, s[:1]+" "), "mermaid")
	}
}

// latexLinks are the commands of LaTeX, and of what renders formulas like it,
// whose first argument is a target; images come last.
var latexLinks = []string{`\href{`, `\url{`, `\includegraphics{`}

// latex returns the length of the command that s begins with, or 0.
func latex(s string) int {
	for _, name := range latexLinks {
		if strings.HasPrefix(s, name) {
			return len(name)
		}
	}
	return 0
}

// links makes links and images inert whose targets are off the list: of
// Markdown, LaTeX and Mermaid. Those of HTML are tags, see walker.
func (f *findings) links(s string, l Links) string {
	if !strings.Contains(s, "](") && !strings.Contains(s, "]:") && !strings.Contains(s, `\`) && !strings.Contains(s, "mermaid") {
		return s
	}
	p := linkPass{findings: f, s: s, o: output{from: s}, allowed: l, images: strings.Contains(s, "![")}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ']':
			if mayLink(s[i:]) {
				p.bracket(i)
			}
		case '\\':
			if n := latex(s[i:]); n > 0 {
				p.command(i, n)
			}
		case '`', '~':
			if (i == 0 || s[i-1] != s[i]) && mayLink(s[i:]) {
				i = p.diagram(i)
			}
		}
	}
	return p.o.String()
}

type linkPass struct {
	*findings
	s       string
	o       output
	allowed Links
	images  bool // the text has an image, which a definition may give a target
	code    *code
}

// defuse puts text before s[i], which then begins no link any more.
func (p *linkPass) defuse(i int, text string, fetched bool) {
	p.remove(linkRule(fetched))
	p.o.insert(i, text)
}

func linkRule(fetched bool) string {
	if fetched {
		return RuleImage
	}
	return RuleLink
}

// bracket looks at the link or definition whose text ends at s[i].
func (p *linkPass) bracket(i int) {
	open := labelStart(p.s, i)
	target, written := destination(p.s[i+2:])
	if open < 0 || !written {
		return
	}
	fetched := open > 0 && p.s[open-1] == '!'
	if p.s[i+1] == ':' {
		if !startsLine(p.s, open) {
			return
		}
		fetched = p.images
	}
	if !p.allowed.keeps(target, fetched) && !p.inCode(i) {
		p.defuse(i+1, " ", fetched)
	}
}

// startsLine reports whether nothing but the marks of quotes and lists stands
// before s[i] in its line.
func startsLine(s string, i int) bool {
	before := s[strings.LastIndexByte(s[:i], '\n')+1 : i]
	return strings.Trim(before, " \t>*+-.0123456789") == ""
}

func (p *linkPass) inCode(i int) bool {
	if p.code == nil {
		p.code = newCode(p.s)
	}
	return p.code.quotes(i)
}

// labelStart returns where the bracket is that s[end] closes, or -1.
func labelStart(s string, end int) int {
	depth := 0
	for i := end - 1; i >= max(0, end-maxLabel); i-- {
		switch s[i] {
		case ']':
			depth++
		case '[':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// destination returns the target that s begins with (CommonMark 0.31, 6.3), and
// false for one that no reader takes for a target: it ends with its scheme.
func destination(s string) (target string, ok bool) {
	s = strings.TrimLeft(s[:min(len(s), maxTarget)], " \t\r\n")
	if rest, angled := strings.CutPrefix(s, "<"); angled {
		target, _, _ := strings.Cut(rest, ">")
		return target, true
	}
	if strings.IndexByte(s, ')') < 0 && strings.IndexByte(s, ' ') < 0 && strings.IndexByte(s, '\n') < 0 {
		return s, true // so that a text made of openings takes no longer than another
	}
	depth, end := 0, len(s)
	for i := 0; i < end; i++ {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')', c == ' ', c == '\t', c == '\n', c == '\r':
			end = i
		}
	}
	return s[:end], !strings.HasSuffix(s[:end], ":")
}

// command looks at the LaTeX command at s[i], of n bytes with its brace.
func (p *linkPass) command(i, n int) {
	target, _, _ := strings.Cut(p.s[i+n:min(len(p.s), i+n+maxTarget)], "}")
	fetched := p.s[i+1] == 'i'
	if remote(target) && !p.allowed.keeps(target, fetched) && !p.inCode(i) {
		p.defuse(i+1, " ", fetched)
	}
}

// diagram makes comments of the lines of the Mermaid diagram that begins at s[i]
// which link its nodes, and returns where it ends.
func (p *linkPass) diagram(i int) int {
	mark := fenceMark(p.s[i:lineEnd(p.s, i)])
	if mark == "" {
		return i
	}
	for at := lineEnd(p.s, i) + 1; at < len(p.s); {
		end := lineEnd(p.s, at)
		line := strings.TrimSpace(p.s[at:end])
		if strings.HasPrefix(line, mark) {
			return end
		}
		if word, rest, _ := strings.Cut(line, " "); (word == "click" || word == "link" || word == "links") && !p.keepsAll(rest) {
			p.defuse(at, "%% ", false)
		}
		at = end + 1
	}
	return len(p.s)
}

// keepsAll reports whether every target in a line stays.
func (p *linkPass) keepsAll(line string) bool {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '"' || r == '\'' || r == ',' || r == '{' || r == '}' }) {
		if strings.Contains(word, ":") && remote(word) && !p.allowed.keeps(word, false) {
			return false
		}
	}
	return true
}
