package sanitize

import (
	"slices"
	"strings"
)

// Open reports whether a text, sanitized already, may become more than text once other texts are
// before or after it: it ends within a construct, or holds an image or a target that another text
// may complete. It is quick, and in doubt says yes. A text that is not open needs no second look.
func (s *Sanitizer) Open(text string) bool {
	if s.profile == Off || s.profile == Code || text == "" {
		return false
	}
	if strings.IndexByte("<!]\\[(&|`_/", text[len(text)-1]) >= 0 || strings.IndexByte("[(:|", text[0]) >= 0 {
		return true
	}
	if end := last(text, ']'); last(text, '[') > end || end >= 0 && (strings.Contains(text, "![") || strings.Contains(text, "]:")) || strings.Contains(text, "mermaid") {
		return true
	}
	if i := last(text, '\\'); i >= 0 && strings.IndexByte(text[i:], '}') < 0 {
		return true
	}
	if last(text, '<') > last(text, '>') || withinComment(text) || withinTag(text) || withinTarget(text) {
		return true
	}
	tail := text[max(0, len(text)-maxTokenName):]
	i := strings.LastIndexByte(tail, '&')
	return i >= 0 && !strings.ContainsAny(tail[i:], "; ") || strings.Contains(tail, "__")
}

// withinTarget reports whether a text may end within the target of a link of Markdown.
func withinTarget(text string) bool {
	text = text[max(0, len(text)-2*maxTarget):]
	closed := 0 // more often than opened
	for i := len(text) - 1; i > 0; i-- {
		switch text[i] {
		case ')':
			closed++
		case '(':
			if text[i-1] == ']' && closed <= 0 {
				return true
			}
			closed--
		}
	}
	return false
}

// withinComment reports whether a text may end within a comment, which may hold angles: a comment
// that has no end, or one that a renderer writes as text.
func withinComment(text string) bool {
	if !strings.Contains(text, "<!--") { // much quicker than looking for the last
		return false
	}
	i := strings.LastIndex(text, "<!--")
	body, _, ended := strings.Cut(text[i+len("<!--"):], "-->")
	return !ended || cutComment(text, i, i+len(body))
}

// withinTag reports whether a tag of a text may go on beyond it, though an angle follows: an angle
// in quotes, which some readers end with their line.
func withinTag(text string) bool {
	if strings.IndexByte(text, '<') < 0 || strings.IndexByte(text, '"') < 0 && strings.IndexByte(text, '\'') < 0 {
		return false
	}
	var room [8]attr
	budget := maxReads * len(text)
	for i := strings.IndexByte(text, '<'); i >= 0 && i+2 < len(text); {
		if rest := text[i:]; isLetter(rest[1]) || rest[1] == '/' && isLetter(rest[2]) {
			t := parseTag(rest, room[:0])
			if budget -= t.size; !t.whole || t.to > 0 || budget < 0 {
				return true
			}
		}
		next := strings.IndexByte(text[i+1:], '<')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// last returns the last place of a byte, -1 if there is none. To see that there is none is much
// quicker from the beginning.
func last(text string, c byte) int {
	if strings.IndexByte(text, c) < 0 {
		return -1
	}
	return strings.LastIndexByte(text, c)
}

// Inert makes what acts inert, and changes nothing else: each change puts in
// spaces (or "%% ", in a line of a Mermaid diagram), never within an escape of JSON,
// so that JSON stays JSON of the same shape. It is for what consists of texts that
// were sanitized one by one, such as a document of JSON that a client shows as it
// is. Under the profiles Off and Code it changes nothing.
func (s *Sanitizer) Inert(text string) (clean string, found []Finding) {
	var f findings
	clean = text
	for range maxPasses {
		edits := s.edits(clean)
		if len(edits) == 0 {
			return clean, f.list()
		}
		for _, e := range edits {
			f.remove(e.rule)
		}
		clean = apply(clean, edits, 0)
	}
	f.remove(ruleUnstable)
	return unstable, f.list()
}

// edits returns what makes a text inert whose parts are.
func (s *Sanitizer) edits(text string) []edit {
	if s.profile == Off || s.profile == Code {
		return nil
	}
	var edits []edit
	seen := survey(text)
	if seen&s.markup() != 0 {
		edits = inertEdits(text, s.links, seen&(s.markup()|seesForeign))
	}
	if seen&seesToken != 0 {
		edits = ordered(append(edits, tokenEdits(text)...))
	}
	return edits
}

// joints are what clients put between the contents of one result.
var joints = []string{"", "\n"}

// Together neutralizes what texts that were sanitized one by one make when they are shown one after
// the other. It returns them, each with its changes, which are those of [Sanitizer.Inert]. If
// nothing changes it returns texts itself. It needs to be called only if one of them is
// [Sanitizer.Open].
func (s *Sanitizer) Together(texts []string) (clean []string, found []Finding) {
	if len(texts) < 2 {
		return texts, nil
	}
	var f findings
	clean = texts
	for range maxPasses {
		same := true
		for _, joint := range joints {
			edits := s.edits(strings.Join(clean, joint))
			for _, e := range edits {
				f.remove(e.rule)
			}
			if len(edits) > 0 {
				clean, same = distribute(clean, len(joint), edits), false
			}
		}
		if same {
			return clean, f.list()
		}
	}
	f.remove(ruleUnstable)
	return slices.Repeat([]string{unstable}, len(texts)), f.list()
}

// distribute puts edits of joined texts into the texts.
func distribute(texts []string, joint int, edits []edit) []string {
	out := make([]string, len(texts))
	start := 0
	for i, text := range texts {
		n := 0
		for n < len(edits) && (edits[n].at <= start+len(text) || i == len(texts)-1) {
			edits[n].at = max(0, edits[n].at-start)
			n++
		}
		out[i] = apply(text, edits[:n], 0)
		edits, start = edits[n:], start+len(text)+joint
	}
	return out
}
