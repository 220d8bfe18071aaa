package gate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

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

// result sanitizes a result, or a request with contents: its strings, and what they make together
// with the text next to them.
func (s *scrub) result(a Action, d Doc) (Doc, error) {
	for _, step := range []func(Doc) (Doc, error){s.doc, s.structured, func(d Doc) (Doc, error) { return s.together(a, d) }} {
		var err error
		if d, err = step(d); err != nil {
			return Doc{}, err
		}
	}
	return d, nil
}
