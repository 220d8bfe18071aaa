package sanitize

import (
	"strings"

	"golang.org/x/net/html"
)

// maxTag bounds a tag, in bytes. What looks like a longer one loses its first
// character, which makes it text.
const maxTag = 4 << 10

// A tag is a start or end tag as a browser reads it (HTML Living Standard,
// 13.2.5.6 to 13.2.5.40).
type tag struct {
	name  string // lower case
	close bool
	loads bool   // it has an attribute, which elements that only act by what they name need to act
	harm  string // the rule by which its attributes are active, or ""
	hides bool   // what it holds is not shown
	off   string // the rule by which a target of it is off the list, or ""
	size  int    // in bytes, with its angles
	whole bool   // false: it has no end within maxTag
}

// An attr is an attribute as it is written, its value without quotes.
type attr struct{ name, value string }

// parseTag reads the tag at the start of s, which begins with an angle and a
// letter, or an angle, a slash and a letter.
func parseTag(s string, l Links) tag {
	s = s[:min(len(s), maxTag)]
	i := 1
	t := tag{size: len(s)}
	if s[i] == '/' {
		t.close = true
		i++
	}
	start := i
	for i < len(s) && !isSpace(s[i]) && s[i] != '/' && s[i] != '>' {
		i++
	}
	t.name = lower(s[start:i])
	for {
		for i < len(s) && (isSpace(s[i]) || s[i] == '/') {
			i++
		}
		if i == len(s) {
			return t
		}
		if s[i] == '>' {
			t.size, t.whole = i+1, true
			return t
		}
		a, n := parseAttr(s[i:])
		if n == 0 {
			return t
		}
		t.loads = true
		if t.harm == "" {
			t.harm = a.harm()
		}
		t.points(a, l)
		i += n
	}
}

// points notes whether an attribute names a place off the list, and whether it
// hides.
func (t *tag) points(a attr, l Links) {
	switch lower(a.name) {
	case "src", "background", "poster", "lowsrc", "dynsrc":
		t.target(a.value, true, l)
	case "srcset", "imagesrcset":
		for one := range strings.SplitSeq(a.value, ",") {
			one, _, _ = strings.Cut(strings.TrimSpace(one), " ")
			t.target(one, true, l)
		}
	case "href", "xlink:href", "action", "formaction", "ping", "longdesc", "cite", "data", "manifest":
		t.target(a.value, false, l)
	case "style":
		t.style(squeezed(a.value), l)
	case "hidden":
		t.hides = true
	}
}

func (t *tag) target(target string, fetched bool, l Links) {
	if t.off == "" && remote(target) && !l.keeps(target, fetched) {
		t.off = linkRule(fetched)
	}
}

// style notes what a style fetches, and whether it hides. It has no white space
// and no quotes.
func (t *tag) style(s string, l Links) {
	for _, f := range []string{"url(", "image-set(", "image("} {
		for rest, ok := s, true; ok; {
			if _, rest, ok = strings.Cut(rest, f); ok {
				target, _, _ := strings.Cut(rest, ")")
				t.target(target, true, l)
			}
		}
	}
	for _, way := range hiding {
		if i := strings.Index(s, way); i >= 0 && !strings.HasPrefix(s[i+len(way):], ".") {
			t.hides = true
		}
	}
}

// hiding are the styles under which text is not seen.
var hiding = []string{"display:none", "visibility:hidden", "opacity:0", "font-size:0", "font-size:1px", "text-indent:-9", "left:-9", "top:-9", "clip:rect(0", "color:transparent"}

// parseAttr reads an attribute and returns its length, 0 if it has no end.
func parseAttr(s string) (a attr, n int) {
	i := 1 // even an equals sign can begin a name
	for i < len(s) && !isSpace(s[i]) && s[i] != '/' && s[i] != '>' && s[i] != '=' {
		i++
	}
	a.name = s[:i]
	j := i
	for j < len(s) && isSpace(s[j]) {
		j++
	}
	if j == len(s) || s[j] != '=' {
		return a, i
	}
	for j++; j < len(s) && isSpace(s[j]); {
		j++
	}
	if j == len(s) {
		return a, j
	}
	if q := s[j]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[j+1:], q)
		if end < 0 {
			a.value = s[j+1:]
			return a, 0
		}
		a.value = s[j+1 : j+1+end]
		return a, j + end + 2
	}
	start := j
	for j < len(s) && !isSpace(s[j]) && s[j] != '>' {
		j++
	}
	a.value = s[start:j]
	return a, j
}

// lower returns s with its ASCII letters in lower case, as HTML compares names.
// It has the length of s; if it is lower case, it is s.
func lower(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// harm returns the rule by which the attribute is active, or "".
func (a attr) harm() string {
	switch {
	case handler(a.name) && a.value != "":
		return RuleHandler
	case strings.EqualFold(a.name, "srcdoc"):
		return RuleURL
	case harmlessURL(a.value):
		return ""
	case runs(a.value), strings.EqualFold(a.name, "style") && strings.Contains(squeezed(a.value), "expression("):
		return RuleURL
	}
	return ""
}

// harmlessURL is the quick answer for nearly all values: no scheme and nothing
// that could stand for one, or a scheme that only fetches.
func harmlessURL(value string) bool {
	if !strings.ContainsAny(value, ":&(") {
		return true
	}
	for _, scheme := range []string{"https://", "http://", "mailto:"} {
		if strings.HasPrefix(value, scheme) {
			return !strings.ContainsAny(value, "(;") // a style or a list can hold another URL
		}
	}
	return false
}

// handler reports whether an attribute of that name holds a script.
func handler(name string) bool {
	// A slash or quote before the name, which some old parsers skipped.
	name = strings.TrimLeft(name, "\"'`/<")
	if len(name) < 4 || name[0]|0x20 != 'o' || name[1]|0x20 != 'n' {
		return false
	}
	for i := 2; i < len(name); i++ {
		if !isLetter(name[i]) {
			return false
		}
	}
	return true
}

// runs reports whether a URL runs a script where it is opened, however it is
// spelled; also one that stands within a style or a list.
func runs(value string) bool {
	v := squeezed(value)
	for _, scheme := range []string{"javascript:", "vbscript:", "livescript:", "data:text/html", "data:text/xml", "data:application/", "data:image/svg", "data:;", "data:,"} {
		if strings.HasPrefix(v, scheme) || strings.Contains(v, "("+scheme) || strings.Contains(v, "url="+scheme) {
			return true
		}
	}
	return false
}

// squeezed returns a value as a browser compares it: character references read,
// white space and control characters gone, in lower case.
func squeezed(value string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r <= ' ' || r == '\'' || r == '"' || r == '\\' || isControl(r) || unshaped(r):
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, html.UnescapeString(value))
}
