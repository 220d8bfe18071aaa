package message

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Message is a message of a client that was screened.
type Message struct {
	Doc    gate.Doc
	ID     gate.Doc // absent of a notification
	Method string   // "" of an answer to a question of the host
	Params gate.Doc
}

func New(doc gate.Doc) Message {
	return Message{doc, doc.Get("id"), doc.Get("method").Text(), doc.Get("params")}
}

func (m Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

var Revisions = []string{mcp.Stateless, mcp.Revision, "2025-06-18", "2025-03-26", "2024-11-05"}

// revisions are those that clients may speak, the newest first, and older those of them
// that have sessions.
var (
	Older = Revisions[1:]
)

// Negotiated returns the revision that a session speaks whose client has asked for one.
func Negotiated(asked string) string {
	if slices.Contains(Older, asked) {
		return asked
	}
	return mcp.Revision
}

// SaysStateless reports whether the parameters of a request say that its client has no
// session.
func SaysStateless(params gate.Doc) bool {
	return params.Get("_meta").Get(mcp.MetaProtocol).Text() >= mcp.Stateless
}

// needParams are the methods that mean nothing without parameters.
var needParams = []string{
	"initialize", string(gate.CallTool), string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete), string(gate.GetSkill), string(gate.ReadDirectory),
	mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe, mcp.MethodListen, mcp.MethodProgress,
}

// Misshapen returns what is wrong with a message that the host serves; "" if nothing is.
func (m Message) Misshapen() string {
	told := strings.HasPrefix(m.Method, "notifications/")
	switch {
	case m.Method == "":
		return ""
	case told && !m.ID.IsZero():
		return fmt.Sprintf("invalid request: unexpected id for %q", m.Method)
	case !told && m.ID.IsZero():
		return fmt.Sprintf("invalid request: missing id for %q", m.Method)
	case m.Params.IsZero() && slices.Contains(needParams, m.Method):
		return `invalid request: missing required "params"`
	}
	return ""
}

// Notification writes a notification; absent params are none.
func Notification(method string, params gate.Doc) []byte {
	raw := params.Raw()
	b := make([]byte, 0, len(raw)+len(method)+64)
	b = append(append(append(b, `{"jsonrpc":"2.0","method":`...), mcp.MustJSON(method)...), `,"params":`...)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	return append(append(b, raw...), '}')
}

func idText(id gate.Doc) string {
	if id.Kind() == doc.String {
		return id.Text()
	}
	return id.String()
}
