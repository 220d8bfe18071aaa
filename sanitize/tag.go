package sanitize

import (
	"strings"

	"golang.org/x/net/html"
)

const (
	// maxTag bounds a tag, in bytes: one that is longer counts as one without an end.
	maxTag = 64 << 10
	// maxReads is how often each byte may be read as part of a tag, on average, so that a text made
	// of openings takes no longer than another. Beyond it, all tags are neutralized.
	maxReads = 8
)

// A tag is a start or end tag as a browser reads it (HTML Living Standard,
// 13.2.5.6 to 13.2.5.40).
type tag struct {
	name  string // as it is written
	close bool
	attrs []attr
	size  int  // in bytes, with its angles
	whole bool // false: no angle ends it
	// from and to are the bounds of the first quoted value that goes over the end of a line, or has
	// no end; 0: there is none.
	from, to int
}

// is reports whether the tag is one of an element.
func (t tag) is(name string) bool { return strings.EqualFold(t.name, name) }

// An attr is an attribute as it is written, its value without quotes.
type attr struct{ name, value string }

// parseTag reads the tag at the start of s, which begins with an angle and a
// letter, or an angle, a slash and a letter. Its attributes are put into room.
func parseTag(s string, room []attr) tag {
	i := 1
	t := tag{size: len(s), attrs: room[:0]}
	if s[i] == '/' {
		t.close = true
		i++
	}
	start := i
	for i < len(s) && !isSpace(s[i]) && s[i] != '/' && s[i] != '>' {
		i++
	}
	t.name = s[start:i]
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
		a, end, quoted := parseAttr(s, i)
		t.attrs = append(t.attrs, a)
		if closed := end <= len(s); quoted && t.to == 0 && (!closed || strings.IndexByte(a.value, '\n') >= 0) {
			t.to = min(len(s), end-1)
			t.from = t.to - len(a.value)
		}
		i = min(len(s), end)
	}
}

// parseAttr reads the attribute at s[i] and returns where it ends: beyond s for a
// quoted value that has no end.
func parseAttr(s string, start int) (a attr, end int, quoted bool) {
	i := start + 1 // even an equals sign can begin a name
	for i < len(s) && !isSpace(s[i]) && s[i] != '/' && s[i] != '>' && s[i] != '=' {
		i++
	}
	a.name = s[start:i]
	j := i
	for j < len(s) && isSpace(s[j]) {
		j++
	}
	if j == len(s) || s[j] != '=' {
		return a, i, false
	}
	for j++; j < len(s) && isSpace(s[j]); {
		j++
	}
	if j == len(s) {
		return a, j, false
	}
	if q := s[j]; q == '"' || q == '\'' {
		end := len(s)
		if n := strings.IndexByte(s[j+1:], q); n >= 0 {
			end = j + 1 + n
		}
		a.value = s[j+1 : end]
		return a, end + 1, true
	}
	from := j
	for j < len(s) && !isSpace(s[j]) && s[j] != '>' {
		j++
	}
	a.value = s[from:j]
	return a, j, false
}

// inMarkdown reports whether CommonMark (0.31, 6.6) takes s, a whole tag to HTML, for a tag as
// well. If it does not, s is text to a renderer, which may write the angle at its end as a
// reference and the one at its beginning as it is.
func inMarkdown(s string) bool {
	i, closing := 1, s[1] == '/'
	if closing {
		i++
	}
	for i < len(s) && (isLetter(s[i]) || s[i] >= '0' && s[i] <= '9' || s[i] == '-') {
		i++
	}
	for {
		at := i
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		switch {
		case i == len(s):
			return false
		case s[i] == '>':
			return true
		case s[i] == '/':
			return !closing && i+1 < len(s) && s[i+1] == '>'
		case closing || i == at || !isLetter(s[i]) && s[i] != '_' && s[i] != ':':
			return false
		}
		for i < len(s) && (isWord(rune(s[i])) || strings.IndexByte(".:-", s[i]) >= 0) {
			i++
		}
		a, end, _ := parseAttr(s, i-1)
		if end == i { // no value
			continue
		}
		if a.name != s[i-1:i] || end > len(s) {
			return false
		}
		if q := s[end-1]; q != '"' && q != '\'' && (a.value == "" || strings.ContainsAny(a.value, "\"'=<`")) {
			return false
		}
		i = end
	}
}

// decoded returns the value of an attribute with its character references read.
func (a attr) decoded() string {
	if strings.IndexByte(a.value, '&') < 0 {
		return a.value
	}
	return html.UnescapeString(a.value)
}

// handler reports whether an attribute of that name holds a script.
func handler(name string) bool {
	if isLetter(name[0]) && name[0]|0x20 != 'o' {
		return false
	}
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
	return !notEvents.get(name)
}

// notEvents are words that begin like the names of handlers.
var notEvents = namesOf(words("once only online onto ones"))

// runningSchemes are those of URLs that run a script, or show a page of their own,
// where they are opened.
var runningSchemes = []string{"javascript:", "vbscript:", "livescript:", "data:text/html", "data:text/xml", "data:application/", "data:image/svg", "data:;", "data:,"}

// runs reports whether a value is a URL that runs a script where it is opened, however it is
// spelled; also one within a style or a list.
func runs(value string) bool {
	if strings.IndexByte(value, ':') < 0 {
		return false
	}
	v := squeezed(value)
	for _, scheme := range runningSchemes {
		for at := 0; ; {
			i := strings.Index(v[at:], scheme)
			if i < 0 {
				break
			}
			at += i
			if at == 0 || strings.IndexByte("(=;,", v[at-1]) >= 0 {
				return true
			}
			at += len(scheme)
		}
	}
	return false
}

// squeezed returns a value as a browser compares it: white space, quotes and
// control characters gone, in lower case.
func squeezed(value string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\'' || r == '"' || r == '\\' || isDropped(r):
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, value)
}
