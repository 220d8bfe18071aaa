package gate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A pieceSanitizer is a [Sanitizer] that knows what texts make that a client shows side
// by side, or in which it shows quotes and braces between them.
type pieceSanitizer interface {
	Sanitizer
	// Open reports whether a sanitized text may become more than text next to others.
	Open(t Text) bool
	// Inert neutralizes what acts in a text whose parts are sanitized. JSON stays JSON of the same
	// shape.
	Inert(t Text) (clean string, found []Finding)
	// Together neutralizes what sanitized texts make one after the other. It returns as many, and
	// texts itself if nothing changes.
	Together(t Text, texts []string) (clean []string, found []Finding)
}

// whole sanitizes what a client shows of a string that is JSON, whose own strings are sanitized
// already: the text that these make with what is between them.
func (s *scrub) whole(t Text) (string, []Finding) {
	text, found := s.gaps(t)
	if s.pieces == nil || !s.open && strings.IndexByte(text, '\\') < 0 { // an escape is shown, too
		return text, found
	}
	t.Text = text
	clean, more := s.pieces.Inert(t)
	s.joined = s.joined || clean != text
	return clean, append(found, more...)
}

// minGap is how long white space between the tokens of JSON has to be, in bytes, before
// it is looked at.
const minGap = 30

// gaps shortens the white space between the tokens of a JSON text where that would be
// changed between words.
func (s *scrub) gaps(t Text) (clean string, found []Finding) {
	text, last := t.Text, 0
	var out strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i += stringEnd(text[i:])
		case strings.IndexByte(" \t\r\n", c) < 0:
			i++
		default:
			run := text[i : i+len(text[i:])-len(strings.TrimLeft(text[i:], " \t\r\n"))]
			if len(run) > minGap || strings.Contains(run, "\r") {
				t.Text = "x" + run + "x"
				if clean, here := s.sanitizer.Sanitize(t); clean != t.Text {
					out.WriteString(text[last:i])
					out.WriteString(shortGap(run))
					last, found = i+len(run), append(found, here...)
				}
			}
			i += len(run)
		}
	}
	if last == 0 {
		return text, nil
	}
	return out.String() + text[last:], merged(found)
}

// stringEnd returns where the string of JSON ends that s begins with.
func stringEnd(s string) int {
	for i := 1; i < len(s); {
		next := strings.IndexByte(s[i:], '"')
		if next < 0 {
			break
		}
		slashes := len(s[i:i+next]) - len(strings.TrimRight(s[i:i+next], `\`))
		if i += next + 1; slashes%2 == 0 {
			return i
		}
	}
	return len(s)
}

func shortGap(run string) string {
	if strings.ContainsAny(run, "\r\n") {
		return "\n"
	}
	return " "
}

// merged adds up findings of one rule.
func merged(found []Finding) (out []Finding) {
	for _, f := range found {
		i := slices.IndexFunc(out, func(o Finding) bool { return o.Rule == f.Rule && o.Removed == f.Removed })
		if i < 0 {
			out = append(out, f)
			continue
		}
		out[i].Count += f.Count
	}
	return out
}

// structured makes safe a result's structured content as a client shows it, as JSON.
func (s *scrub) structured(d Doc) (Doc, error) {
	content := d.Get(structuredContent)
	if k := content.Kind(); s.pieces == nil || k != doc.Object && k != doc.Array {
		return d, nil
	}
	t := s.text
	t.Text = doc.View(content)
	clean, found := s.whole(t)
	if clean == t.Text {
		return d, nil
	}
	inert, err := ParseDoc([]byte(clean))
	if err != nil {
		return Doc{}, err
	}
	s.keep("/"+structuredContent, found)
	return d.With(structuredContent, inert.Raw()), nil
}

// together makes safe what the texts among the contents of a result, or of a request, make
// one after the other.
func (s *scrub) together(a Action, d Doc) (Doc, error) {
	places, texts := s.texts(a, d)
	if len(texts) < 2 {
		return d, nil
	}
	clean, found := s.unsplit(texts)
	if s.pieces != nil {
		found = append(found, s.beside(clean)...)
	}
	if slices.Equal(clean, texts) {
		return d, nil
	}
	s.joined = true
	s.keep("/"+contentMember[a], merged(found))
	by := make(map[string]string, len(places))
	for i, at := range places {
		by[at] = clean[i]
	}
	return doc.MapStrings(d, func(at doc.Leaf, text string) string {
		if one, ok := by[at.Pointer()]; ok && !at.Key {
			return one
		}
		return text
	})
}

// beside neutralizes what texts make next to each other, if one of them is open. A text that a
// profile of its own, by its media type, leaves active is left as it is.
func (s *scrub) beside(texts []string) []Finding {
	isOpen := func(text string) bool {
		t := s.text
		t.Text = text
		return s.pieces.Open(t)
	}
	if !slices.ContainsFunc(texts, isOpen) { // which costs less than to look at them again
		return nil
	}
	var of []int
	var some []string
	open := false
	for i, text := range texts {
		t := s.text
		t.Text = text
		if inert, _ := s.pieces.Inert(t); inert == text {
			of, some, open = append(of, i), append(some, text), open || isOpen(text)
		}
	}
	if !open {
		return nil
	}
	clean, found := s.pieces.Together(s.text, some)
	for i, text := range clean {
		texts[of[i]] = text
	}
	return found
}

// texts returns the texts that a client shows one after the other, and their places; none
// if there are fewer than two.
func (s *scrub) texts(a Action, d Doc) (places, texts []string) {
	n := 0
	eachText(a, d, func(Doc, string, int, int) { n++ })
	if n < 2 {
		return nil, nil
	}
	eachText(a, d, func(text Doc, member string, i, j int) {
		at := "/" + contentMember[a] + "/" + strconv.Itoa(i)
		if a == GetPrompt || a == actions.Sample {
			at += "/content"
		}
		if j >= 0 {
			at += "/" + strconv.Itoa(j)
		}
		places, texts = append(places, at+member), append(texts, text.Text())
	})
	return places, texts
}

// eachText gives f the texts of contents: those of a result, by their number i, or those of
// messages. A message has one content or, by their number j, several; j is -1 otherwise.
func eachText(a Action, d Doc, f func(text Doc, member string, i, j int)) {
	take := func(block Doc, i, j int) {
		if text := block.Get("text"); text.Kind() == doc.String {
			f(text, "/text", i, j)
		}
		if text := block.Get("resource").Get("text"); text.Kind() == doc.String {
			f(text, "/resource/text", i, j)
		}
	}
	i := 0
	for one := range d.Get(contentMember[a]).Elements() {
		if a != GetPrompt && a != actions.Sample {
			take(one, i, -1)
		} else {
			content, j := one.Get("content"), 0
			take(content, i, -1)
			for block := range content.Elements() {
				take(block, i, j)
				j++
			}
		}
		i++
	}
}

// maxSplit bounds the part of a secret that is in one text, in bytes.
const maxSplit = 512

// unsplit takes out secrets that begin in one text and end in the next.
func (s *scrub) unsplit(texts []string) (clean []string, found []Finding) {
	clean = slices.Clone(texts)
	if s.secrets == nil {
		return clean, nil
	}
	for i := range len(clean) - 1 {
		tail, head := lastWord(clean[i]), firstWord(clean[i+1])
		if tail == "" || head == "" {
			continue
		}
		out, here := s.secrets.Redact("", "", tail+head)
		if secretKinds(here) == "" || out == tail+head {
			continue
		}
		clean[i], clean[i+1] = clean[i][:len(clean[i])-len(tail)]+out, clean[i+1][len(head):]
		found = append(found, here...)
	}
	return clean, found
}

func lastWord(s string) string {
	from := max(0, len(s)-maxSplit)
	return s[from+strings.LastIndexAny(s[from:], " \t\r\n")+1:]
}

func firstWord(s string) string {
	head := s[:min(len(s), maxSplit)]
	if i := strings.IndexAny(head, " \t\r\n"); i >= 0 {
		return head[:i]
	}
	return head
}

// mirrored keeps the structured content of a result equal to a text that was equal before: what was
// neutralized in the one is in the other.
func (s *scrub) mirrored(before, after Doc) Doc {
	content := before.Get(structuredContent)
	if !s.joined || content.IsZero() {
		return after
	}
	i := 0
	for block := range before.Get("content").Elements() {
		at := "/content/" + strconv.Itoa(i) + "/text"
		i++
		was, ok := doc.Embedded(block.Get("text").Text())
		if !ok || was.Digest() != content.Digest() {
			continue
		}
		if now, ok := doc.Embedded(after.At(at).Text()); ok && now.Digest() != after.Get(structuredContent).Digest() {
			return after.With(structuredContent, now.Raw())
		}
	}
	return after
}

// keep writes down what was found at a place.
func (s *scrub) keep(at string, found []Finding) {
	s.secret = s.secret || holdSecret(found)
	for _, f := range found[:min(len(found), maxFindings-len(s.found))] {
		f.At = at
		s.found = append(s.found, f)
	}
}
