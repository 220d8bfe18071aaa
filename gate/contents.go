package gate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// contents judges the contents of what the server of a call says. A nil checker passes
// all.
type contents struct {
	checker ContentChecker
	call    *Call
	profile string
	scrub   *scrub
}

// check replaces what the checker refuses among the contents of a result, and makes safe
// what in them is text in other bytes.
func (c contents) check(res Doc) (Doc, error) {
	member := contentMember[c.call.Action]
	list := res.Get(member)
	if c.checker == nil || list.Kind() != doc.Array {
		return res, nil
	}
	var raws [][]byte
	changed := false
	for one := range list.Elements() {
		path := []string{member, strconv.Itoa(len(raws))}
		now, reason, err := c.element(one, path)
		if err != nil {
			return Doc{}, err
		}
		raw := now.Raw()
		if reason != "" {
			if raw, err = c.instead(one, "[removed: "+reason+"]"); err != nil {
				return Doc{}, err
			}
			c.found(ruleContent, path)
		}
		changed = changed || reason != "" || now != one
		raws = append(raws, raw)
	}
	if !changed {
		return res, nil
	}
	return res.With(member, slices.Concat([]byte{'['}, bytes.Join(raws, []byte{','}), []byte{']'})), nil
}

func (c contents) found(rule string, path []string) {
	c.scrub.keep(doc.LeafAt(path).Pointer(), []Finding{{Rule: rule, Count: 1, Removed: true}})
}

// instead returns the replacement of a refused content, or of a message that has one.
func (c contents) instead(refused Doc, text string) ([]byte, error) {
	if c.call.Action == ReadResource {
		return json.Marshal(map[string]string{"uri": refused.Get("uri").Text(), "mimeType": "text/plain", "text": text})
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil || c.call.Action == CallTool {
		return block, err
	}
	return refused.With("content", block).Raw(), nil
}

// element judges one content, or those of a message.
func (c contents) element(one Doc, path []string) (Doc, string, error) {
	if a := c.call.Action; a != GetPrompt && a != actions.Sample {
		return c.block(one, path)
	}
	content := one.Get("content")
	path = append(path, "content")
	if content.Kind() != doc.Array {
		now, reason, err := c.block(content, path)
		if now == content || reason != "" || err != nil {
			return one, reason, err
		}
		return one.With("content", now.Raw()), "", nil
	}
	out, changed, i := []byte{'['}, false, 0
	for block := range content.Elements() {
		now, reason, err := c.block(block, append(path, strconv.Itoa(i)))
		if reason != "" || err != nil {
			return one, reason, err
		}
		if i++; i > 1 {
			out = append(out, ',')
		}
		out, changed = append(out, now.Raw()...), changed || now != block
	}
	if !changed {
		return one, "", nil
	}
	return one.With("content", append(out, ']')), "", nil
}

// block judges one content; text has nothing to judge. The URI by which a resource was
// read is no link that leads on.
func (c contents) block(block Doc, path []string) (Doc, string, error) {
	from := block
	if block.Get("resource").Kind() == doc.Object {
		from, path = block.Get("resource"), append(path, "resource")
	}
	one := Content{
		Server: c.scrub.text.Server, Tool: c.scrub.text.Tool, Profile: c.profile, Kind: c.scrub.text.Kind,
		MIME: from.Get("mimeType").Text(), Data: from.Get("data").Text(), URI: from.Get("uri").Text(),
	}
	if c.call.Action == ReadResource && one.URI == c.call.Name {
		one.URI = ""
	}
	member := "data"
	if one.Data == "" {
		member, one.Data = "blob", from.Get("blob").Text()
	}
	now := c.withIcons(from, one, path)
	list := isURIList(one.MIME)
	if list && c.listsElsewhere(one, from.Get("text").Text()) {
		return block, listed, nil
	}
	if one.Data != "" || one.URI != "" {
		v := c.checker.Check(one)
		if v.Refused != "" {
			return block, v.Refused, nil
		}
		if v.MIME != "" && v.MIME != one.MIME {
			now = now.With("mimeType", doc.AppendString(nil, v.MIME))
			c.found(ruleType, path)
		}
		if v.Text != nil {
			if list && c.listsElsewhere(one, *v.Text) {
				return block, listed, nil
			}
			clean, err := c.scrub.blob(*v.Text, cmp.Or(v.MIME, one.MIME), append(path, member))
			if err != nil {
				return block, "", err
			}
			if clean != *v.Text && isImage(one.MIME) {
				return block, "drawing that is more than a picture", nil
			}
			if clean != *v.Text {
				now = now.With(member, doc.AppendString(nil, base64.StdEncoding.EncodeToString([]byte(clean))))
			}
		}
	}
	switch {
	case now == from:
		return block, "", nil
	case from == block:
		return now, "", nil
	}
	return block.With("resource", now.Raw()), "", nil
}

// withIcons returns a content without the icons that must not be fetched.
func (c contents) withIcons(d Doc, as Content, path []string) Doc {
	icons := d.Get("icons")
	if icons.Kind() != doc.Array {
		return d
	}
	out, left := []byte{'['}, false
	for icon := range icons.Elements() {
		as.URI, as.Data, as.Icon = icon.Get("src").Text(), "", true
		if c.checker.Check(as).Refused != "" {
			left = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, icon.Raw()...)
	}
	if !left {
		return d
	}
	c.found(ruleIcon, append(path, "icons"))
	return d.With("icons", append(out, ']'))
}

func isImage(mime string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(mime)), "image/")
}

// listed says why a list of URIs is refused.
const listed = "list of pages from elsewhere"

// isURIList reports whether contents of a type are lists of URIs (RFC 2483).
func isURIList(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.EqualFold(strings.TrimSpace(mime), "text/uri-list")
}

// listsElsewhere reports whether one of a list of URIs is off the list of the operator:
// hosts of MCP-UI show what it names in a frame, so that it is fetched without a click.
func (c contents) listsElsewhere(one Content, text string) bool {
	one.Data, one.Icon = "", true
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		one.URI = strings.TrimSpace(line)
		if one.URI != "" && one.URI[0] != '#' && c.checker.Check(one).Refused != "" {
			return true
		}
	}
	return false
}

// blob sanitizes a text that was in other bytes at a place.
func (s *scrub) blob(text, mime string, path []string) (string, error) {
	profile := s.text.Profile
	if isImage(mime) && profile == "" { // a client that shows it runs what is in it
		s.text.Profile = "text"
	}
	out, err := doc.MapTextAt(path, text, func(at doc.Leaf, text string) string {
		at.MIME = cmp.Or(at.MIME, mime)
		return s.leaf(at, text)
	})
	s.text.Profile = profile
	return out, err
}
