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
	target  int     // where the last target of a link begins; 0: none
	image   int     // where the last image begins whose paragraph may go on; -1: none
	goesOn  int     // up to where it does
	note    int     // where the last label of a footnote begins; -1: none
	budget  int     // how many bytes of diagrams may still be read again
	defined map[string]bool
	loose   map[string]int // where definitions are whose target some readers take to the end of its line, by label
	unsure  bool           // a target was defined under a label that readers may read in several ways
}

const (
	// maxOpen bounds the brackets that are kept in mind.
	maxOpen = 1 << 16
	// maxLabel bounds the label of a reference (CommonMark 0.31, 6.3, bounds it to
	// 999 characters).
	maxLabel = 1000
	// maxInfo bounds what is read behind a fence.
	maxInfo = 256
)

func newLinkPass(s string, l Links) *linkPass {
	return &linkPass{s: s, allowed: l, tricky: -1, image: -1, note: -1}
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
			if strings.HasPrefix(s[i+1:], "(") {
				p.target = i + 2
			}
		case '\\':
			p.tricky = i
			if n, style := latex(s[i:]); n > 0 {
				p.command(i, n, style)
			}
		case '`', '<', '>':
			p.tricky = i
		}
	}
	if len(p.defined) > 0 || p.unsure {
		p.references()
	}
	if len(p.loose) > 0 {
		p.looseEnds()
	}
	if strings.Contains(s, "mermaid") {
		p.diagrams()
	}
	return p.edits
}

func (p *linkPass) defuse(at int, text string, fetched bool) {
	p.edits = append(p.edits, edit{at, text, linkRule(fetched)})
}

func (p *linkPass) push(i int) {
	if i > 0 && p.s[i-1] == '!' {
		p.image, p.goesOn = i, i
	}
	if strings.HasPrefix(p.s[i+1:], "^") {
		p.note = i
	}
	if p.withinTarget(i) {
		p.tricky = i
	}
	if p.lost = p.lost || len(p.open) == maxOpen; !p.lost {
		p.open = append(p.open, int32(i))
	}
}

// withinTarget reports whether the bracket at s[i] may be part of the target or the title of a
// link, where it opens nothing.
func (p *linkPass) withinTarget(i int) bool {
	if p.target == 0 || i-p.target > 2*maxTarget {
		return false
	}
	target, after, closed := strings.Cut(p.s[p.target:i], ")")
	return !closed || strings.ContainsAny(target, "(\"'") && after != ""
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
	// A reader that treats escapes, code or tags may have this bracket close another one, or none.
	sure := open >= 0 && !p.lost && p.tricky < open && (open == 0 || p.s[open-1] != '\\')
	if p.s[i+1] == ':' && sure && !p.startsLine(open) {
		return
	}
	if p.s[i+1] == ':' && hidesTitle(p.s[i+2:]) {
		p.edits = append(p.edits, edit{i + 1, " ", ruleComment})
		return
	}
	target := destination(p.s[i+2:])
	if p.s[i+1] == '(' {
		if whole := overLines(p.s[i+2:]); whole != "" && remote(whole, true) && !p.allowed.keeps(whole, p.inImage(i)) {
			target = whole
		}
	}
	if target == "" && p.s[i+1] == ':' && sure {
		if whole := strings.TrimSpace(p.s[i+2 : lineEnd(p.s, i)]); len(p.loose) < maxLabel && remote(whole, true) && !p.allowed.keeps(whole, false) {
			if p.loose == nil {
				p.loose = make(map[string]int)
			}
			p.loose[strings.ToLower(p.s[open+1:i])] = i
		}
	}
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

// looseEnds neutralizes the loose definitions that the text refers to.
func (p *linkPass) looseEnds() {
	open := 0
	for i := 0; i < len(p.s); i++ {
		switch {
		case p.s[i] == '[':
			open = i + 1
		case p.s[i] == ']' && !strings.HasPrefix(p.s[i+1:], ":"):
			name := strings.ToLower(p.s[open:min(i, open+maxLabel)])
			if at, ok := p.loose[name]; ok {
				p.defuse(at+1, " ", false)
				delete(p.loose, name)
			}
		}
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

// hidesTitle reports whether s, which follows a label, defines a target that leads nowhere with a
// title that is not shown.
func hidesTitle(s string) bool {
	s = trimWhite(s[:min(len(s), maxTarget)])
	title, ok := strings.CutPrefix(s, "#")
	if !ok {
		title, ok = strings.CutPrefix(s, "<>")
	}
	title = trimWhite(title)
	return ok && title != "" && strings.IndexByte("(\"'", title[0]) >= 0 && ownWords(title[:lineEnd(title, 0)]) > 0
}

// startsLine reports whether s[i] has nothing before it in its line but the marks of quotations,
// lists, tasks and footnotes.
func (p *linkPass) startsLine(i int) bool {
	task := false
	for i--; i >= 0 && p.s[i] != '\n'; i-- {
		switch {
		case strings.IndexByte(" \t\r\f>*+-.):~0123456789", p.s[i]) >= 0:
		case !task && i > 1 && p.s[i-2] == '[' && strings.IndexByte(" xX", p.s[i-1]) >= 0 && p.s[i] == ']':
			task = true
			i -= 2
		default:
			return p.s[i] == ']' && p.inNote(i)
		}
	}
	return true
}

// inNote reports whether the label of a footnote may end at s[i]. If the last one began so far away
// that no reader takes it for one, it does not matter what is between.
func (p *linkPass) inNote(i int) bool {
	if p.note < 0 || p.note >= i || i-p.note > 2*maxTarget {
		return p.note >= 0 && p.note < i
	}
	return !strings.ContainsAny(strings.ReplaceAll(p.s[p.note:i], `\]`, ""), "]\n")
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
	for s = trimWhite(s); strings.HasPrefix(s, ">"); {
		s = trimWhite(s[1:])
	}
	if strings.HasPrefix(s, "](") {
		return "" // of another link, which is looked at by itself
	}
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
		case i > maxScheme && c == ']' && i+1 < len(s) && (s[i+1] == '(' || s[i+1] == ':'):
			if leavesHost(s) {
				return "//?"
			}
			return s[:i] + "?" // unlikely, and cut so that a text made of openings takes no longer than another
		}
	}
	if scheme, rest, named := strings.Cut(s[:end], ":"); named && rest == "" && isScheme(scheme) && !slices.Contains(takenSchemes, strings.ToLower(scheme)) || strings.Trim(s[:end], "/") == "" {
		return ""
	}
	return s[:end]
}

// overLines returns the target that s begins with for a reader that has it go on over white space
// (browsers drop all of it but spaces); "" if there is none within it.
func overLines(s string) string {
	target := until(s[:min(len(s), maxTarget)], ")<>\"'(")
	if !runs(target) {
		target = until(target, " ")
	}
	if !strings.ContainsAny(target, " \t\r\n") {
		return ""
	}
	return target
}

// references neutralizes the images whose targets are elsewhere in the text. The definition, which
// links may use as well, gives the meaning of such a reference.
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

// latexCommands are the commands of LaTeX, and of what renders formulas like it, whose first
// argument is a style, latexStyles of them, or a target.
var latexCommands = []string{`\style`, `\htmlStyle`, `\href`, `\url`, `\includegraphics`}

const latexStyles = 2

// latex returns how long the command is that s begins with, up to its argument and with the
// brace before that, and whether the argument is a style; 0 for no such command, maxTarget for one
// whose argument is out of sight.
func latex(s string) (n int, style bool) {
	s = s[:min(len(s), maxTarget)]
	if len(s) < 2 || strings.IndexByte("huis", s[1]) < 0 {
		return 0, false
	}
	for i, name := range latexCommands {
		rest, ok := strings.CutPrefix(s, name)
		if !ok {
			continue
		}
		for ok && rest != "" {
			switch c := rest[0]; {
			case c == '{':
				return len(s) - len(rest) + 1, i < latexStyles
			case c == '[':
				_, rest, ok = strings.Cut(rest, "]")
			case c == '%':
				_, rest, ok = strings.Cut(rest, "\n")
			case isSpace(c):
				rest = rest[1:]
			default:
				return 0, false
			}
		}
		if len(s) == maxTarget {
			return maxTarget, false
		}
	}
	return 0, false
}

// command looks at the LaTeX command at s[i], whose argument begins n bytes later.
func (p *linkPass) command(i, n int, style bool) {
	argument := p.s[i+n : min(len(p.s), i+n+maxTarget)]
	target, _, _ := strings.Cut(argument, "}")
	fetched := style || p.s[i+1] == 'i'
	switch {
	case n == maxTarget, style && p.fetchesByStyle(argument), !style && remote(target, true) && !p.allowed.keeps(target, fetched):
		p.defuse(i+1, " ", fetched)
	}
}

// fetchesByStyle reports whether a style has targets that are off the list.
func (p *linkPass) fetchesByStyle(style string) bool {
	return slices.ContainsFunc(readCSS(style), func(target string) bool {
		return remote(target, false) && !p.allowed.keeps(target, true)
	})
}

// diagram reports whether s begins with the fence of a diagram in Mermaid, which says so soon.
func diagram(s string) bool {
	if !strings.HasPrefix(s[1:], s[:1]+s[:1]) {
		return false
	}
	s = strings.TrimLeft(s, s[:1])
	s = s[:min(len(s), maxInfo)]
	return strings.Contains(s[:lineEnd(s, 0)], "mermaid")
}

// diagrams makes comments of what links the nodes of Mermaid's diagrams, and texts of the images
// and styles in them. It does not look for the end of a diagram.
func (p *linkPass) diagrams() {
	p.budget = maxReads*len(p.s) + maxTag
	for at := 0; at < len(p.s); {
		end := lineEnd(p.s, at)
		for at < end {
			statement, _, _ := strings.Cut(p.s[at:end], ";")
			p.statement(statement, at, end)
			at += len(statement) + 1
		}
		at = max(at, end+1)
	}
}

// linking are the words of Mermaid that begin a statement with targets.
var linking = []string{"click", "link", "links"}

// statement looks at a statement of a diagram, at s[at], in a line that ends before s[end]; a
// target in quotes may hold the mark that ends it.
func (p *linkPass) statement(s string, at, end int) {
	start := len(s) - len(strings.TrimLeft(s, " \t"))
	word := s[start : start+strings.IndexAny(s[start:]+" ", " \t")]
	if slices.Contains(linking, strings.ToLower(word)) && p.off(p.s[at:end], false) {
		p.defuse(at+start, "%% ", false)
	}
	if i := strings.Index(s, "$link"); i >= 0 && p.off(p.s[at+i:end], false) { // of C4
		p.defuse(at+i+1, " ", false)
	}
	if i := strings.Index(s, "@{"); i >= 0 && p.off(p.upTo(at+i, "}"), true) {
		p.defuse(at+i+1, " ", true)
	}
	if i := strings.Index(s, "%%{"); i >= 0 {
		settings := p.upTo(at+i, "}%%")
		if p.budget -= len(settings); p.budget < 0 || strings.Contains(settings, `\`) || p.fetchesByStyle(settings) {
			p.defuse(at+i+2, " ", true)
		}
	}
	if p.fetchesByStyle(s) {
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '(':
				p.defuse(at+i, " ", true)
			case '@':
				p.defuse(at+i+1, " ", true)
			}
		}
	}
}

// upTo returns the text from s[at] to the next mark, or to its end.
func (p *linkPass) upTo(at int, mark string) string {
	if p.budget < 0 {
		return ""
	}
	s, _, _ := strings.Cut(p.s[at:], mark)
	return s
}

// off reports whether there may be a target in a text that is off the list.
func (p *linkPass) off(s string, fetched bool) bool {
	p.budget -= len(s)
	return p.budget < 0 || !p.keepsAll(s, fetched)
}

// keepsAll reports whether every target in a part of a diagram stays.
func (p *linkPass) keepsAll(line string, fetched bool) bool {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return isDropped(r) || strings.ContainsRune("\"',{}@=", r) }) {
		scheme, rest, named := strings.Cut(word, ":")
		if key := rest == "" && !slices.Contains(takenSchemes, strings.ToLower(scheme)); named && !key && remote(word, false) && !p.allowed.keeps(word, fetched) {
			return false
		}
	}
	return true
}
