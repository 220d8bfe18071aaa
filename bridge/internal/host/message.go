package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// A message is what a client has sent, once it was screened.
type message struct {
	doc    gate.Doc
	id     gate.Doc // absent of a notification
	method string   // "" of an answer to a question of the host
	params gate.Doc
}

func messageOf(doc gate.Doc) message {
	return message{doc, doc.Get("id"), doc.Get("method").Text(), doc.Get("params")}
}

func (m message) isRequest() bool { return m.method != "" && !m.id.IsZero() }

var revisions = []string{mcp.Stateless, mcp.Revision, "2025-06-18", "2025-03-26", "2024-11-05"}

// revisions are those that clients may speak, the newest first, and older those of them
// that have sessions.
var (
	older = revisions[1:]
)

// negotiated returns the revision that a session speaks whose client has asked for one.
func negotiated(asked string) string {
	if slices.Contains(older, asked) {
		return asked
	}
	return mcp.Revision
}

// saysStateless reports whether the parameters of a request say that its client has no
// session.
func saysStateless(params gate.Doc) bool {
	return params.Get("_meta").Get(mcp.MetaProtocol).Text() >= mcp.Stateless
}

// needParams are the methods that mean nothing without parameters.
var needParams = []string{
	"initialize", string(gate.CallTool), string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete),
	mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe, mcp.MethodListen, mcp.MethodProgress,
}

// misshapen returns what is wrong with a message that the host serves; "" if nothing is.
func (m message) misshapen() string {
	told := strings.HasPrefix(m.method, "notifications/")
	switch {
	case m.method == "":
		return ""
	case told && !m.id.IsZero():
		return fmt.Sprintf("invalid request: unexpected id for %q", m.method)
	case !told && m.id.IsZero():
		return fmt.Sprintf("invalid request: missing id for %q", m.method)
	case m.params.IsZero() && slices.Contains(needParams, m.method):
		return `invalid request: missing required "params"`
	}
	return ""
}

// notification writes a notification; absent params are none.
func notification(method string, params gate.Doc) []byte {
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
