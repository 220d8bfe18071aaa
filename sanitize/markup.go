package sanitize

import (
	"slices"
	"strings"
)

// How an element is active.
type activity uint8

const (
	inert  activity = iota
	holder          // goes with all it holds
	loader          // goes with all it holds, if it has an attribute; without one it does nothing
	single          // goes alone, if it has an attribute
)

// active are the elements that run, load, redirect, or change how what follows
// is read.
var active = map[string]activity{
	"script": holder, "style": holder, "noscript": holder, "template": holder, "noembed": holder, "noframes": holder,
	"svg": holder, "math": holder, "xmp": holder, "plaintext": holder, "listing": holder,
	"iframe": loader, "object": loader, "applet": loader, "frameset": loader, "portal": loader, "fencedframe": loader,
	"audio": single, "video": single,
	"embed": single, "base": single, "link": single, "meta": single, "frame": single, "form": single,
	"isindex": single, "bgsound": single, "layer": single, "ilayer": single, "animate": single, "animatetransform": single,
	"set": single, "image": single, "foreignobject": single, "use": single, "handler": single, "listener": single,
	"selectedcontent": single,
}

// typeNames are the names of active elements that types have in programs.
var typeNames = []string{"Script", "Style", "Template", "Listing"}

// inertAngle reports whether the angle at the start of s begins nothing that is
// to be found. It is quick, and in doubt says no.
func (g *glance) inertAngle(s string) bool {
	if len(s) == 1 {
		return true
	}
	switch c := s[1]; {
	case turnTag(s):
		return false
	case c == '|' || c == '!':
		return len(s) > 2 && (s[2] == ' ' || s[2] == '=') || strings.HasPrefix(s, "<!DOCTYPE")
	case c == '<':
		return !strings.HasPrefix(s, "<<SYS") && !strings.HasPrefix(s, "<</SYS")
	case c == '/':
		return true // an end tag alone does nothing
	case !isLetter(c):
		return c < 0x80 && c != '&'
	}
	if g.closes(s) {
		t := parseTag(s, g.allowed)
		return t.whole && active[t.name] == inert && t.harm == "" && !t.hides && t.off == "" && !slices.Contains(angleNames, s[1:1+len(t.name)])
	}
	name := s[1:min(len(s), 1+maxName)]
	if i := strings.IndexFunc(name, func(r rune) bool { return !isWord(r) }); i >= 0 {
		name = name[:i]
	}
	return active[lower(name)] == inert && !g.armed(s)
}

// maxName is longer than the name of any active element.
const maxName = 24

// glance keeps what has been found out of a text, by the length of its rest, so
// that a text made of angles takes no longer than another.
type glance struct {
	allowed Links

	next   int // rest at the next '>' when it was last looked for
	looked bool
	last   int // rest at the last attribute that could run something; 0: not looked, or none
	hasArm bool
}

// closes reports whether a '>' comes within maxTag.
func (g *glance) closes(s string) bool {
	if !g.looked || g.next > len(s) {
		i := strings.IndexByte(s, '>')
		g.looked, g.next = true, len(s)-i
		if i < 0 {
			g.next = 0
		}
	}
	return g.next > 0 && len(s)-g.next < maxTag
}

// armed reports whether any attribute that could run something comes in s.
func (g *glance) armed(s string) bool {
	if !g.hasArm {
		g.hasArm = true
		for i := len(s) - 1; i > 0; i-- {
			if (s[i] == '=' || s[i] == ':') && arms(s[:i]) {
				g.last = len(s) - i
				break
			}
		}
	}
	return g.last > 0 && g.last <= len(s)
}

// arms reports whether s ends with the name of a handler or of a scheme that
// runs.
func arms(s string) bool {
	end := strings.TrimRight(s[max(0, len(s)-2*maxName):], " \t\r\n\f")
	start := len(end)
	for start > 0 && isLetter(end[start-1]) {
		start--
	}
	word := lower(end[start:])
	return handler(word) || strings.HasSuffix(word, "script") || word == "data" || word == "srcdoc"
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// active removes active markup and leaves every other byte alone. With code,
// what stands in source code is reported and stays.
func (f *findings) active(s string, l Links, code bool) string {
	if strings.IndexByte(s, '<') < 0 {
		return s
	}
	w := walker{findings: f, s: s, allowed: l, look: glance{allowed: l}, o: output{from: s}, ends: make(map[string]int), xml: strings.HasPrefix(strings.TrimSpace(s), "<?xml")}
	if code {
		w.code = newCode(s)
	}
	for w.i < len(s) {
		next := strings.IndexByte(s[w.i:], '<')
		if next < 0 || w.i+next+1 == len(s) {
			break
		}
		w.i += next
		w.angle()
	}
	return w.o.String()
}

// walker goes through a text from angle to angle.
type walker struct {
	*findings
	s string
	i int
	o output

	allowed Links

	code *code          // nil: nothing is source code
	ends map[string]int // where the last end tag of an element is; -1: there is none
	xml  bool
	look glance
	low  string // s in lower case, once it was needed

	commentEnd int // where the next end of a comment is; len(s): there is none
	inCode     int // up to here, an element that stands in source code
}

// angle looks at the angle at s[i], and goes past what it begins.
func (w *walker) angle() {
	s := w.s[w.i:]
	switch c := s[1]; {
	case strings.HasPrefix(s, "<!--"):
		w.comment()
	case isLetter(c) && !w.look.closes(s) && len(s) > maxTag:
		w.endless(s)
	case isLetter(c), c == '/' && len(s) > 2 && isLetter(s[2]):
		w.tag(parseTag(s, w.allowed))
	default:
		w.i++
	}
}

// comment removes a comment (HTML Living Standard, 13.2.5.43 on). One without
// an end is taken for text but for its opening.
func (w *walker) comment() {
	body := w.s[w.i+len("<!--"):]
	size := len("<!--")
	switch {
	case strings.HasPrefix(body, ">"):
		size++
	case strings.HasPrefix(body, "->"):
		size += 2
	default:
		size += w.toCommentEnd(body)
	}
	w.found(RuleComment, "comment", size, w.xml)
}

// toCommentEnd returns the length of a comment's rest, with its end; 0 if there
// is no end.
func (w *walker) toCommentEnd(body string) int {
	at := len(w.s) - len(body)
	if w.commentEnd < at {
		w.commentEnd = len(w.s)
		for _, mark := range []string{"-->", "--!>"} {
			if i := strings.Index(body, mark); i >= 0 {
				w.commentEnd = min(w.commentEnd, at+i+len(mark))
			}
		}
		if !strings.HasSuffix(w.s[:w.commentEnd], ">") {
			w.commentEnd = len(w.s) + 1 // none
		}
	}
	if w.commentEnd > len(w.s) {
		return 0
	}
	return w.commentEnd - at
}

// found removes s[i:i+size], or reports it if it stands in source code, and goes
// past it; what stays is gone into.
func (w *walker) found(rule, class string, size int, stays bool) {
	if stays || w.code.covers(w.i, w.i+size) {
		w.report(rule)
		w.i++
		return
	}
	w.remove(rule)
	w.o.replace(w.i, w.i+size, class)
	w.i += size
}

func (w *walker) tag(t tag) {
	kind, harm := active[t.name], t.harm
	switch {
	case !t.whole:
		w.unfinished(t, kind, harm)
	case t.close:
		w.i += t.size
	case kind == holder, kind == loader && t.loads:
		w.element(t)
	case kind == single && t.loads:
		w.found(RuleElement, t.name, t.size, false)
	case harm == RuleHandler:
		w.found(RuleHandler, "handler", t.size, false)
	case harm != "":
		w.found(RuleURL, "link", t.size, false)
	case t.hides:
		w.defuse(RuleHidden, t)
	case t.off != "":
		w.defuse(t.off, t)
	default:
		w.i += t.size
		if t.size > 1 && strings.IndexByte(w.s[w.i-t.size+1:w.i], '<') >= 0 {
			w.i -= t.size - 1 // another reader may see a tag within this one
		}
	}
}

// defuse makes text of the tag at s[i], which a space does after its angle.
func (w *walker) defuse(rule string, t tag) {
	if w.code.covers(w.i, w.i+t.size) {
		w.report(rule)
		w.i++
		return
	}
	w.remove(rule)
	w.o.insert(w.i+1, " ")
	w.i++
}

// unfinished makes text of what a browser would take for a tag once more text
// follows: it loses its angle.
func (w *walker) unfinished(t tag, kind activity, harm string) {
	if t.close || kind == inert && harm == "" && (t.size < maxTag || !w.look.armed(w.s[w.i:])) {
		w.i++
		return
	}
	w.found(RuleElement, "markup", 1, false)
}

// endless looks at what would be a tag if an angle came some time.
func (w *walker) endless(s string) {
	if w.look.inertAngle(s) {
		w.i++
		return
	}
	w.found(RuleElement, "markup", 1, false)
}

// element removes an element with what it holds. One that nothing ends loses its
// start tag, unless that is the argument of a type, as in List<Style>.
func (w *walker) element(t tag) {
	if w.i < w.inCode {
		w.report(RuleScript)
		w.i += t.size
		return
	}
	end := w.end(t.name)
	if end < 0 && !t.loads && w.i > 0 && isWord(rune(w.s[w.i-1])) && slices.Contains(typeNames, w.s[w.i+1:w.i+1+len(t.name)]) {
		w.i += t.size
		return
	}
	rule := RuleElement
	if t.name == "script" || t.name == "iframe" || t.name == "object" || t.name == "applet" {
		rule = RuleScript
	}
	size := t.size
	if end >= 0 {
		size = w.whole(t)
	}
	at := w.i
	if w.found(rule, t.name, size, false); w.i == at+1 {
		w.inCode = at + size
	}
}

// end returns where the last end tag of an element begins, or -1 if none comes
// after s[i].
func (w *walker) end(name string) int {
	last, known := w.ends[name]
	if !known {
		last = strings.LastIndex(w.lower(), "</"+name)
		w.ends[name] = last
	}
	if last < w.i {
		return -1
	}
	return last
}

func (w *walker) lower() string {
	if w.low == "" {
		w.low = lower(w.s)
	}
	return w.low
}

// whole returns the length of an element up to the end tag that closes it; of
// elements within each other, up to the outer one's.
func (w *walker) whole(t tag) int {
	depth, at := 1, w.i+t.size
	nests := t.name == "svg" || t.name == "math" || t.name == "object" || t.name == "template"
	for {
		next := strings.IndexByte(w.s[at:], '<')
		if next < 0 {
			return len(w.s) - w.i // the last end tags belong to others
		}
		at += next
		s := w.s[at:]
		switch {
		case isTag(s, "</", t.name):
			depth--
			inner := parseTag(s, w.allowed)
			at += inner.size
			if depth == 0 {
				return at - w.i
			}
		case nests && isTag(s, "<", t.name):
			depth++
			at++
		default:
			at++
		}
	}
}

// isTag reports whether s begins with a tag of an element.
func isTag(s, open, name string) bool {
	n := len(open) + len(name)
	return len(s) > n && s[:len(open)] == open && strings.EqualFold(s[len(open):n], name) && (isSpace(s[n]) || s[n] == '/' || s[n] == '>')
}
