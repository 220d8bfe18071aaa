package gate

import (
	"encoding/json"
	"strconv"
)

// A ContentChecker judges content that is no text: images, sounds, files and
// links to resources.
type ContentChecker interface {
	// Check says in a few words why a content must not be passed on, or "".
	Check(c Content) string
}

// Content is one content of a result that is no text (MCP, ContentBlock).
type Content struct {
	Server string
	Tool   string // qualified
	// Profile was asked for by a decision; "" leaves the choice to the checker.
	Profile string
	MIME    string // "" if unknown
	Data    string // base64, of an image, a sound or a file
	URI     string // of a link to a resource
}

// RuleContent is the rule of a finding: a content was replaced by a text that
// says why.
const RuleContent = "content/refused"

// checkContent replaces what the checker refuses among the contents of a result.
func (w *way) checkContent(res Doc) (Doc, error) {
	list := res.Get("content")
	if w.ContentChecker == nil || list.Kind() != Array {
		return res, nil
	}
	why := make(map[int]string)
	at := 0
	for block := range list.Elements() {
		if reason := w.refuses(block); reason != "" {
			why[at] = reason
		}
		at++
	}
	if len(why) == 0 {
		return res, nil
	}
	out := []byte{'['}
	at = 0
	for block := range list.Elements() {
		raw := block.Raw()
		if reason := why[at]; reason != "" {
			text, err := json.Marshal(map[string]string{"type": "text", "text": "[removed: " + reason + "]"})
			if err != nil {
				return Doc{}, err
			}
			raw = text
			w.found(Finding{Rule: RuleContent, At: "/content/" + strconv.Itoa(at), Count: 1, Removed: true})
		}
		if at > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		at++
	}
	return res.With("content", append(out, ']')), nil
}

// refuses asks about one content; text has nothing to ask about.
func (w *way) refuses(block Doc) string {
	from := block
	if block.Get("resource").Kind() == Object {
		from = block.Get("resource")
	}
	c := Content{
		Server: w.rec.Tool.Name.Server, Tool: w.rec.Tool.Name.String(), Profile: w.profile,
		MIME: from.Get("mimeType").Text(), Data: from.Get("data").Text(), URI: from.Get("uri").Text(),
	}
	if c.Data == "" {
		c.Data = from.Get("blob").Text()
	}
	if c.Data == "" && c.URI == "" {
		return ""
	}
	return w.ContentChecker.Check(c)
}

func (w *way) found(f Finding) {
	if len(w.rec.Findings) < maxFindings {
		w.rec.Findings = append(w.rec.Findings, f)
	}
}
