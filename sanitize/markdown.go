package sanitize

import (
	"slices"
	"strings"
)

// linkPass makes links and images inert whose targets are off the list: those of
// Markdown, LaTeX and Mermaid. Those of HTML are tags, see tagPass.
type linkPass struct {
	s       string
	allowed Links
	edits   []edit

	open    []int32 // where the brackets are that nothing has closed yet
	lost    bool    // more of them than maxOpen
	tricky  int     // where the last character is that may keep a bracket from counting; -1: none
	image   int     // where the last image begins whose paragraph may go on; -1: none
	goesOn  int     // up to where it does
	defined map[string]bool
	unsure  bool // a target was defined under a label that readers may read in several ways
}

const (
	// maxOpen bounds the brackets that are kept in mind.
	maxOpen = 1 << 16
	// maxLabel bounds the label of a reference (CommonMark 0.31, 6.3, bounds it to
	// 999 characters).
	maxLabel = 1000
)

func newLinkPass(s string, l Links) *linkPass {
	return &linkPass{s: s, allowed: l, tricky: -1, image: -1}
}

// linkBytes marks what the pass stops at.
var linkBytes = func() (t [256]bool) {
	for _, c := range "[]\\`~<>" {
		t[c] = true
	}
	return t
}()

func (p *linkPass) run() []edit {
	s := p.s
	for i := 0; i < len(s); i++ {
		if !linkBytes[s[i]] {
			continue
		}
		switch s[i] {
		case '[':
			p.push(i)
		case ']':
			p.close(i)
		case '\\':
			p.tricky = i
			if n := latex(s[i:]); n > 0 {
				p.command(i, n)
			}
		case '`', '<', '>':
			p.tricky = i
		}
	}
	if len(p.defined) > 0 || p.unsure {
		p.references()
	}
	if strings.Contains(s, "mermaid") {
		p.diagrams()
	}
	return p.edits
}

func (p *linkPass) defuse(at int, text string, fetched bool) {
	p.edits = append(p.edits, edit{at, text, linkRule(fetched)})
}

func linkRule(fetched bool) string {
	if fetched {
		return ruleImage
	}
	return ruleLink
}

func (p *linkPass) push(i int) {
	if i > 0 && p.s[i-1] == '!' {
		p.image, p.goesOn = i, i
	}
	if p.lost = p.lost || len(p.open) == maxOpen; !p.lost {
		p.open = append(p.open, int32(i))
	}
}

// close looks at the link or definition whose text ends at s[i].
func (p *linkPass) close(i int) {
	open := -1
	if n := len(p.open); n > 0 {
		open = int(p.open[n-1])
		p.open = p.open[:n-1]
	}
	if i+2 >= len(p.s) || p.s[i+1] != '(' && p.s[i+1] != ':' {
		return
	}
	// Whoever reads escapes, code or tags may have this bracket close another one, or
	// none.
	sure := open >= 0 && !p.lost && p.tricky < open && (open == 0 || p.s[open-1] != '\\')
	if p.s[i+1] == ':' && hidesTitle(p.s[i+2:]) && (!sure || startsLine(p.s, open)) {
		p.edits = append(p.edits, edit{i + 1, " ", ruleComment})
		return
	}
	target := destination(p.s[i+2:])
	if !remote(target, true) {
		return
	}
	if p.s[i+1] == '(' {
		fetched := p.inImage(i)
		if sure {
			fetched = open > 0 && p.s[open-1] == '!'
		}
		if !p.allowed.keeps(target, fetched) || !sure && !p.allowed.keeps(target, false) { // unsure, it may be a link as well
			p.defuse(i+1, " ", fetched)
		}
		return
	}
	if sure && !startsLine(p.s, open) {
		return
	}
	switch {
	case !p.allowed.keeps(target, false):
		p.defuse(i+1, " ", false)
	case p.allowed.keeps(target, true):
	case sure:
		if p.defined == nil {
			p.defined = make(map[string]bool)
		}
		p.defined[label(p.s[open+1:i])] = true
	default:
		p.unsure = true
	}
}

// inImage reports whether an image begins before s[i] in its paragraph, which the
// bracket there may close.
func (p *linkPass) inImage(i int) bool {
	for p.image >= 0 && p.goesOn < i {
		next := strings.IndexByte(p.s[p.goesOn:i], '\n')
		if next < 0 {
			p.goesOn = i
			break
		}
		p.goesOn += next + 1
		if strings.Trim(p.s[p.goesOn:lineEnd(p.s, p.goesOn)], " \t\r") == "" {
			p.image = -1
		}
	}
	return p.image >= 0
}

// hidesTitle reports whether s, which follows a label, defines a target that leads
// nowhere with a title that nobody sees.
func hidesTitle(s string) bool {
	s = strings.TrimLeft(s[:min(len(s), maxTarget)], " \t\r\n")
	title, ok := strings.CutPrefix(s, "#")
	if !ok {
		title, ok = strings.CutPrefix(s, "<>")
	}
	title = strings.TrimLeft(title, " \t\r\n")
	return ok && title != "" && strings.IndexByte("(\"'", title[0]) >= 0 && ownWords(title[:lineEnd(title, 0)]) > 0
}

// startsLine reports whether nothing but the marks of quotations and lists stands
// before s[i] in its line.
func startsLine(s string, i int) bool {
	for i--; i >= 0 && s[i] != '\n'; i-- {
		if strings.IndexByte(" \t>*+-.):~0123456789", s[i]) < 0 {
			return false
		}
	}
	return true
}

// label returns the label of a reference as renderers compare them; "" for one that
// they may compare in several ways.
func label(s string) string {
	if len(s) >= maxLabel || strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("[]\\`<>&", r) }) >= 0 {
		return ""
	}
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}

// destination returns the target that s begins with (CommonMark 0.31, 6.3), or ""
// for one that leads nowhere: it ends with its scheme, which nothing acts on, or names no host.
func destination(s string) string {
	s = s[:min(len(s), maxTarget)]
	start := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(" \t\r\n>", r) })
	if start < 0 {
		return ""
	}
	s = s[start:]
	if rest, angled := strings.CutPrefix(s, "<"); angled {
		target, _, _ := strings.Cut(rest, ">")
		return target
	}
	depth, end := 0, len(s)
	for i := 0; i < end; i++ {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')', c <= ' ':
			end = i
		case i > maxScheme && strings.HasPrefix(s[i:], "]("):
			return s[:i] + "?" // unlikely, and cut so that a text made of openings takes no longer than another
		}
	}
	if scheme, rest, named := strings.Cut(s[:end], ":"); named && rest == "" && isScheme(scheme) && !slices.Contains(takenSchemes, strings.ToLower(scheme)) || strings.Trim(s[:end], "/") == "" {
		return ""
	}
	return s[:end]
}

// isScheme reports whether a text can be no more than a scheme.
func isScheme(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !isWord(r) && r != '+' && r != '-' && r != '.' }) < 0
}

// references makes inert the images whose targets stand elsewhere in the text: what
// such a reference means, its definition says, which links may use as well.
func (p *linkPass) references() {
	for i := 0; ; i++ {
		next := strings.Index(p.s[i:], "![")
		if next < 0 {
			return
		}
		i += next
		if p.pointsElsewhere(i) {
			p.defuse(i+1, " ", true)
		}
	}
}

// pointsElsewhere reports whether the image at s[i] may have a target that the text
// defines.
func (p *linkPass) pointsElsewhere(i int) bool {
	s := p.s[i+2 : min(len(p.s), i+2+maxTarget)]
	end := strings.IndexAny(s, "[]\\`<>\n")
	if end < 0 || s[end] != ']' {
		return true
	}
	if inline(s[end+1:]) {
		return false
	}
	name := label(s[:end])
	if rest, ok := strings.CutPrefix(s[end+1:], "["); ok {
		reference, _, _ := strings.Cut(rest, "]")
		if l := label(reference); l != "" || strings.TrimSpace(reference) != "" {
			return p.unsure || l == "" || p.defined[l] || p.defined[name] || p.defined[""]
		}
	}
	return p.unsure || name == "" || p.defined[name] || p.defined[""]
}

// inline reports whether s begins with a target in brackets that every reader takes
// for one.
func inline(s string) bool {
	rest, ok := strings.CutPrefix(s, "(")
	end := strings.IndexAny(rest, " \t\r\n()<>\\\"'")
	return ok && end >= 0 && rest[end] == ')'
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

// command looks at the LaTeX command at s[i], of n bytes with its brace.
func (p *linkPass) command(i, n int) {
	target, _, _ := strings.Cut(p.s[i+n:min(len(p.s), i+n+maxTarget)], "}")
	fetched := p.s[i+1] == 'i'
	if remote(target, true) && !p.allowed.keeps(target, fetched) {
		p.defuse(i+1, " ", fetched)
	}
}

// diagram reports whether s begins with the fence of a diagram in Mermaid.
func diagram(s string) bool {
	return strings.HasPrefix(s[1:], s[:1]+s[:1]) && strings.Contains(s[:lineEnd(s, 0)], "mermaid")
}

// diagrams makes comments of the lines that link the nodes of Mermaid's diagrams,
// and texts of the images in them. Where a diagram ends, nobody asks.
func (p *linkPass) diagrams() {
	for at := 0; at < len(p.s); {
		end := lineEnd(p.s, at)
		start := at + len(p.s[at:end]) - len(strings.TrimLeft(p.s[at:end], " \t"))
		word, rest, _ := strings.Cut(p.s[start:end], " ")
		if slices.Contains([]string{"click", "link", "links"}, word) && !p.keepsAll(rest, false) {
			p.defuse(start, "%% ", false)
		}
		if i := strings.Index(p.s[start:end], "@{"); i >= 0 && !p.keepsAll(p.s[start+i:end], true) {
			p.defuse(start+i+1, " ", true)
		}
		at = end + 1
	}
}

// keepsAll reports whether every target in a line stays.
func (p *linkPass) keepsAll(line string, fetched bool) bool {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \"',{}@", r) }) {
		if strings.Contains(word, ":") && remote(word, false) && !p.allowed.keeps(word, fetched) {
			return false
		}
	}
	return true
}
