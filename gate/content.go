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

// ruleContent is the rule of a finding: a content was replaced by a text that
// says why.
const ruleContent = "content/refused"

// checkContent replaces what the checker refuses among the contents of a result.
func (w *way) checkContent(res Doc) (Doc, error) {
	member := contentMember[w.rec.Call.Action]
	list := res.Get(member)
	if w.ContentChecker == nil || list.Kind() != Array {
		return res, nil
	}
	why := make(map[int]string)
	at := 0
	for one := range list.Elements() {
		if reason := w.refuses(one); reason != "" {
			why[at] = reason
		}
		at++
	}
	if len(why) == 0 {
		return res, nil
	}
	out := []byte{'['}
	at = 0
	for one := range list.Elements() {
		raw := one.Raw()
		if reason := why[at]; reason != "" {
			text, err := w.instead(one, "[removed: "+reason+"]")
			if err != nil {
				return Doc{}, err
			}
			raw = text
			w.found(Finding{Rule: ruleContent, At: "/" + member + "/" + strconv.Itoa(at), Count: 1, Removed: true})
		}
		if at > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		at++
	}
	return res.With(member, append(out, ']')), nil
}

// contentMember is where results have their contents: blocks of a tool's, messages
// with blocks of a prompt, and contents of resources; and where requests have them
// that clients' models answer.
var contentMember = map[Action]string{CallTool: "content", GetPrompt: "messages", ReadResource: "contents", Sample: "messages"}

// instead returns what stands in the place of a refused content, or of a message
// that has one.
func (w *way) instead(refused Doc, text string) ([]byte, error) {
	if w.rec.Call.Action == ReadResource {
		return json.Marshal(map[string]string{"uri": refused.Get("uri").Text(), "mimeType": "text/plain", "text": text})
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil || w.rec.Call.Action == CallTool {
		return block, err
	}
	return refused.With("content", block).Raw(), nil
}

// refuses asks about one content, or about those of a message.
func (w *way) refuses(one Doc) string {
	if a := w.rec.Call.Action; a != GetPrompt && a != Sample {
		return w.refusesBlock(one)
	}
	content := one.Get("content")
	for block := range content.Elements() {
		if reason := w.refusesBlock(block); reason != "" {
			return reason
		}
	}
	return w.refusesBlock(content)
}

// refusesBlock asks about one content; text has nothing to ask about. The URI by
// which a resource was read is no link that leads on.
func (w *way) refusesBlock(block Doc) string {
	from := block
	if block.Get("resource").Kind() == Object {
		from = block.Get("resource")
	}
	c := Content{
		Server: w.rec.Tool.Name.Server, Tool: w.rec.Tool.qualified(), Profile: w.profile,
		MIME: from.Get("mimeType").Text(), Data: from.Get("data").Text(), URI: from.Get("uri").Text(),
	}
	if w.rec.Call.Action == ReadResource && c.URI == w.rec.Call.Name {
		c.URI = ""
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
