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

// contents judges the contents of what the server of a call says. A nil checker passes
// all.
type contents struct {
	checker ContentChecker
	call    *Call
	tool    *Tool
	profile string
}

// check replaces what the checker refuses among the contents of a result.
func (c contents) check(res Doc) (Doc, []Finding, error) {
	member := contentMember[c.call.Action]
	list := res.Get(member)
	if c.checker == nil || list.Kind() != Array {
		return res, nil, nil
	}
	var found []Finding
	why := make(map[int]string)
	at := 0
	for one := range list.Elements() {
		if reason := c.refuses(one); reason != "" {
			why[at] = reason
		}
		at++
	}
	if len(why) == 0 {
		return res, nil, nil
	}
	out := []byte{'['}
	at = 0
	for one := range list.Elements() {
		raw := one.Raw()
		if reason := why[at]; reason != "" {
			text, err := c.instead(one, "[removed: "+reason+"]")
			if err != nil {
				return Doc{}, nil, err
			}
			raw = text
			found = append(found, Finding{Rule: ruleContent, At: "/" + member + "/" + strconv.Itoa(at), Count: 1, Removed: true})
		}
		if at > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		at++
	}
	return res.With(member, append(out, ']')), found, nil
}

// contentMember is where results have their contents: blocks of a tool's, messages
// with blocks of a prompt, and contents of resources; and where requests have them
// that clients' models answer.
var contentMember = map[Action]string{CallTool: "content", GetPrompt: "messages", ReadResource: "contents", Sample: "messages"}

// instead returns what stands in the place of a refused content, or of a message
// that has one.
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

// refuses asks about one content, or about those of a message.
func (c contents) refuses(one Doc) string {
	if a := c.call.Action; a != GetPrompt && a != Sample {
		return c.refusesBlock(one)
	}
	content := one.Get("content")
	for block := range content.Elements() {
		if reason := c.refusesBlock(block); reason != "" {
			return reason
		}
	}
	return c.refusesBlock(content)
}

// refusesBlock asks about one content; text has nothing to ask about. The URI by
// which a resource was read is no link that leads on.
func (c contents) refusesBlock(block Doc) string {
	from := block
	if block.Get("resource").Kind() == Object {
		from = block.Get("resource")
	}
	one := Content{
		Server: c.tool.Name.Server, Tool: c.tool.qualified(), Profile: c.profile,
		MIME: from.Get("mimeType").Text(), Data: from.Get("data").Text(), URI: from.Get("uri").Text(),
	}
	if c.call.Action == ReadResource && one.URI == c.call.Name {
		one.URI = ""
	}
	if one.Data == "" {
		one.Data = from.Get("blob").Text()
	}
	if one.Data == "" && one.URI == "" {
		return ""
	}
	return c.checker.Check(one)
}
