package sanitize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// A Profile says what becomes of a text. The zero Profile is Text.
type Profile string

// The profiles, from the laxest to the strictest.
const (
	// Off changes nothing at all.
	Off Profile = "off"
	// Code is for source and markup that programs and agents read and write back:
	// hidden characters, terminal sequences and control tokens of models are taken
	// out, and every other byte stays.
	Code Profile = "code"
	// Text is for prose: what a browser or a renderer of Markdown would run, load,
	// go to, send or hide becomes text, and every other byte stays.
	Text Profile = "text"
	// HTML keeps the harmless part of HTML, rewritten: for documents that are
	// HTML and nothing else.
	HTML Profile = "html"
	// Strict escapes all markup: for text that is put into a page as it is.
	Strict Profile = "strict"
)

// Profiles returns all profiles, from the laxest to the strictest.
func Profiles() []Profile { return []Profile{Off, Code, Text, HTML, Strict} }

// Stricter returns the stricter of two profiles. One that is not known counts as
// the strictest; "" is Text.
func Stricter(a, b Profile) Profile {
	if rank(a) < rank(b) {
		return b
	}
	return a
}

func rank(p Profile) int {
	if p == "" {
		p = Text
	}
	if i := slices.Index(Profiles(), p); i >= 0 {
		return i
	}
	return len(Profiles())
}

// Options configure a [Sanitizer]. The zero value is the profile Text.
type Options struct {
	Profile Profile
	Links   Links
	// Max bounds what a text may grow to, in bytes: one that would be longer, and longer than
	// it was, is replaced as a whole. Zero sets no bound.
	Max int
}

// A Sanitizer sanitizes text. It is immutable, and may be used from several goroutines.
type Sanitizer struct {
	profile Profile
	links   Links
	max     int
	html    *bluemonday.Policy // of profile HTML
}

// New returns a sanitizer. An unknown profile is an error.
func New(o Options) (*Sanitizer, error) {
	if o.Profile == "" {
		o.Profile = Text
	}
	if !slices.Contains(Profiles(), o.Profile) {
		return nil, fmt.Errorf("unknown sanitizer profile %q; known are %v", o.Profile, Profiles())
	}
	s := &Sanitizer{profile: o.Profile, links: o.Links, max: o.Max}
	if o.Profile == HTML {
		s.html = policy(o.Links)
	}
	return s, nil
}

// maxPasses bounds how often a text is gone through. Markers keep apart what
// removals would join, so that the second pass finds nothing but in texts that
// were made to.
const maxPasses = 8

// unstable replaces a text that still changes after maxPasses.
const unstable = "[removed: text that could not be made safe]"

// Sanitize returns the text without what could hurt, and what it found, by rule.
// It is idempotent; if it changes nothing it returns text itself.
func (s *Sanitizer) Sanitize(text string) (clean string, found []Finding) {
	if s.profile == Off {
		return text, nil
	}
	f := findings{max: s.max}
	clean = text
	for range maxPasses {
		before := clean
		clean = s.pass(&f, clean)
		same := clean == before
		if same && s.profile == Strict {
			clean = f.escape(clean)
		}
		if f.max > 0 && len(clean) > max(f.max, len(text)) {
			clean = tooLong
		}
		if clean == tooLong && text != tooLong {
			f.remove(ruleSize)
			return clean, f.list()
		}
		if same {
			return clean, f.list()
		}
	}
	f.remove(ruleUnstable)
	return unstable, f.list()
}

// pass goes through a text once. Nearly all texts end with the survey.
func (s *Sanitizer) pass(f *findings, text string) string {
	seen := survey(text)
	if seen&seesControl != 0 {
		text = f.controls(text)
	}
	if seen&seesUnshaped != 0 {
		text = f.hidden(text)
	}
	if s.profile != Code {
		if seen&seesFolded != 0 {
			text = f.folded(text)
		}
		text = f.padding(text, seen&seesForeign != 0)
	}
	if seen&seesToken != 0 {
		text = f.tokens(text, s.profile != Code)
	}
	switch {
	case s.profile == HTML:
		return s.rewrite(f, text)
	case seen&s.markup() == 0:
		return text
	}
	return f.inert(text, s.links, seen&(s.markup()|seesForeign))
}

// markup returns what the profile neutralizes. Strict escapes tags once all else is done.
func (s *Sanitizer) markup() sight {
	switch s.profile {
	case Code:
		return 0
	case Strict, passive:
		return seesLink
	}
	return seesLink | seesAngle
}

// rewrite keeps the part of HTML that is on the list. The remaining text is looked at as other text
// is.
func (s *Sanitizer) rewrite(f *findings, text string) string {
	if strings.ContainsAny(text, markupBytes) {
		if out := s.html.Sanitize(text); out != text {
			f.remove(rulePolicy)
			text = out
		}
	}
	return f.inert(text, s.links, s.markup()|seesForeign)
}

// markupBytes are what a sanitizer of HTML rewrites.
const markupBytes = "<>&\"'\r"

// escape escapes markup, and leaves character references that are there, so
// that escaping again changes nothing.
func (f *findings) escape(text string) string {
	if !strings.ContainsAny(text, "<>&\"'") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		to := escapes[c]
		if c == '&' && reference(text[i:]) {
			to = ""
		}
		if to == "" {
			b.WriteByte(c)
			continue
		}
		b.WriteString(to)
		f.report(ruleEscaped)
	}
	return b.String()
}

var escapes = [256]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&#34;", '\'': "&#39;"}

// maxReference bounds the length of a character reference; the longest name
// that HTML knows has 31 letters.
const maxReference = 33

// reference reports whether s begins with a character reference.
func reference(s string) bool {
	s = s[1:min(len(s), maxReference+1)]
	end := strings.IndexByte(s, ';')
	if end < 1 {
		return false
	}
	name := strings.TrimPrefix(s[:end], "#")
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return !isWord(r) || r == '_' }) < 0
}

// passive is the profile of drawings in which nothing acts: as Text, but for tags.
const passive Profile = "passive"
