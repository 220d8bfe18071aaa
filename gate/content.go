package gate

import (
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// A ContentChecker judges content that is no text: images, sounds, files, links to
// resources, and icons.
type ContentChecker interface {
	// Check says what becomes of a content.
	Check(c Content) ContentVerdict
}

// A ContentVerdict is what becomes of a content. The zero value passes it on as it is.
type ContentVerdict struct {
	Refused string  // why it must not be passed on, in a few words
	MIME    string  // its media type by its bytes, where that is not the declared one
	Text    *string // what its bytes say, if they are text: it is sanitized as one
}

// Content is one content of a result that is no text (MCP, ContentBlock).
type Content struct {
	Server string
	Tool   string // qualified
	// Profile was asked for by a decision; "" leaves the choice to the checker.
	Profile string
	Kind    provenance.TextKind // of the result's texts
	MIME    string              // "" if unknown
	Data    string              // base64, of an image, a sound or a file
	URI     string              // of a link to a resource, or of an icon
	Icon    bool                // URI is fetched without a click
}

// The rules of findings in contents.
const (
	ruleContent = "content/refused" // replaced by a text that says why
	ruleType    = "content/type"    // called by the media type that its bytes are of
	ruleIcon    = "content/icon"    // an icon was left out
)

// contentMember is where results have their contents: blocks of a tool's, messages
// with blocks of a prompt, and contents of resources; and where requests have them
// that clients' models answer.
var contentMember = map[Action]string{CallTool: "content", GetPrompt: "messages", ReadResource: "contents", actions.Sample: "messages"}
