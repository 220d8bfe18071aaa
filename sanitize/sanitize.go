package sanitize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// A Profile says what becomes of markup. The zero Profile is Text.
type Profile string

// The profiles.
const (
	// Text removes active markup and leaves every other byte alone.
	Text Profile = "text"
	// Strict escapes all markup: for text that is put into a page as it is.
	Strict Profile = "strict"
	// HTML keeps the harmless part of HTML, rewritten: for documents that are
	// HTML and nothing else.
	HTML Profile = "html"
	// Off changes nothing at all: for tools whose text is written back as it
	// was read.
	Off Profile = "off"
)

// Profiles returns all profiles.
func Profiles() []Profile { return []Profile{Text, Strict, HTML, Off} }

// The rules of findings. Those of markup begin with "html/".
const (
	RuleControl   = "control/c0"         // control characters, C1 included
	RuleTerminal  = "control/ansi"       // terminal sequences (ECMA-48)
	RuleTag       = "unicode/tag"        // tag characters
	RuleVariation = "unicode/variation"  // variation selectors that vary nothing
	RuleZeroWidth = "unicode/zero-width" // zero-width characters out of place
	RuleBidi      = "unicode/bidi"       // bidirectional controls
	RuleInvisible = "unicode/invisible"  // other characters without a shape
	RuleToken     = "token/chat"         // control tokens of chat templates
	RuleScript    = "html/script"        // elements that run or load something, with what they hold
	RuleElement   = "html/element"       // other elements that act on the page
	RuleComment   = "html/comment"
	RuleHandler   = "html/handler" // event handler attributes
	RuleURL       = "html/url"     // URLs that run
	RuleHidden    = "html/hidden"  // elements whose style or attribute hides what they hold
	RuleImage     = "link/image"   // what is fetched without a click, from places off the list
	RuleLink      = "link/target"  // links to places off the list
	RulePadding   = "text/padding" // white space that pushes text out of view
	RuleReturn    = "control/return"
	RuleOverlay   = "unicode/overlay"   // marks that strike letters out, or pile up on them
	RuleFullwidth = "unicode/fullwidth" // full-width Latin outside of East Asian text
	RuleEscaped   = "html/escaped"      // escaped by profile strict
	RulePolicy    = "html/policy"       // rewritten by profile html
	RuleUnstable  = "text/unstable"
)

// A Finding is something that was found in a text.
type Finding struct {
	Rule    string
	Count   int
	Removed bool // false: reported, and left in place
}

// Options configure a [Sanitizer]. The zero value is the profile Text.
type Options struct {
	Profile Profile
	Links   Links
}

// A Sanitizer makes text safe. It is immutable, and may be used from several
// goroutines.
type Sanitizer struct {
	profile Profile
	links   Links
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
	s := &Sanitizer{profile: o.Profile, links: o.Links}
	if o.Profile == HTML {
		s.html = bluemonday.UGCPolicy()
	}
	return s, nil
}

// markupBytes are what profiles rewrite that know no plain text.
const markupBytes = "<>&\"'\r"

// maxPasses bounds how often a text is gone through. Markers keep apart what
// removals would join, so that the second pass finds nothing but in texts that
// were made to.
const maxPasses = 8

// unstable stands for a text that still changes after maxPasses.
const unstable = "[removed: text that could not be made safe]"

// Sanitize returns the text without what could hurt, and what it found, by rule.
// It is idempotent; if it changes nothing it returns text itself.
func (s *Sanitizer) Sanitize(text string) (clean string, found []Finding) {
	if s.profile == Off || plain(text, s.links) && (s.profile == Text || !strings.ContainsAny(text, markupBytes)) {
		return text, nil
	}
	var f findings
	clean = text
	for range maxPasses {
		before := clean
		f.reported = nil // by the last pass alone: each would report it again
		clean = f.controls(clean)
		clean = f.hidden(clean)
		clean = f.folded(clean)
		clean = f.padding(clean)
		clean = f.tokens(clean)
		clean = s.markup(&f, clean)
		if clean == before {
			if s.profile == Strict {
				clean = f.escape(clean)
			}
			return clean, f.list()
		}
	}
	f.remove(RuleUnstable)
	return unstable, f.list()
}

func (s *Sanitizer) markup(f *findings, text string) string {
	switch s.profile {
	case Strict:
		return f.links(text, s.links) // escaped once all else is done
	case HTML:
		text = f.active(text, s.links, false)
		out := s.html.Sanitize(text)
		if out != text {
			f.remove(RulePolicy)
		}
		return f.links(out, s.links)
	default:
		return f.links(f.active(text, s.links, true), s.links)
	}
}

// findings counts, by rule and in the order in which rules were first met.
type findings struct {
	removed  []Finding
	reported []Finding
}

func (f *findings) remove(rule string) { f.removed = count(f.removed, Finding{rule, 1, true}) }
func (f *findings) report(rule string) { f.reported = count(f.reported, Finding{rule, 1, false}) }

func count(list []Finding, f Finding) []Finding {
	for i := range list {
		if list[i].Rule == f.Rule {
			list[i].Count++
			return list
		}
	}
	return append(list, f)
}

func (f *findings) list() []Finding { return append(f.removed, f.reported...) }

// escape escapes markup, and leaves character references that are there, so
// that escaping again changes nothing.
func (f *findings) escape(text string) string {
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
		f.report(RuleEscaped)
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

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}
