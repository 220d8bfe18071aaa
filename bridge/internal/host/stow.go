package host

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// metaSent is where a message carries past the SDK what its client has written: the SDK
// reads numbers as float64, and keeps no member that it does not know.
const metaSent = mcp.MetaGateway + "sent"

// reworded are the requests that the SDK reads, and the host answers.
var reworded = []string{string(gate.CallTool), string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete)}

// answerOfAny is an answer to all that a server can ask a client, for the SDK to read.
var answerOfAny = gate.MustDoc(`{"action":"accept","role":"assistant","model":"","content":{"type":"text","text":""},"roots":[]}`)

// stow returns a message with what its client has written in [metaSent], for [unstow] or
// [unstowAnswer]. What a client has put there itself says nothing.
func stow(msg gate.Doc) gate.Doc {
	if result := msg.Get("result"); result.Kind() == gate.Object {
		return msg.With("result", answerOfAny.With("_meta", sent(gate.Doc{}, result)).Raw())
	}
	params := msg.Get("params")
	meta := params.Get("_meta")
	if params.Kind() != gate.Object || !meta.IsZero() && meta.Kind() != gate.Object {
		return msg // which the SDK refuses
	}
	switch {
	case slices.Contains(reworded, msg.Get("method").Text()) && !plain(params):
		written := mcp.Without(params, "arguments") // which the SDK keeps as it is
		params = mcp.Without(params, "inputResponses").With("_meta", sent(forSDK(meta), written))
	case !meta.Get(metaSent).IsZero():
		params = params.With("_meta", mcp.Without(meta, metaSent).Raw())
	default:
		return msg
	}
	return msg.With("params", params.Raw())
}

// plain reports whether parameters have nothing that the SDK would change.
func plain(params gate.Doc) bool {
	for name, v := range params.Members() {
		switch name {
		case "name", "uri":
		case "arguments":
			if v.Kind() != gate.Object {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// forSDK returns what the SDK reads of _meta. In the rest there may be what it cannot read.
func forSDK(meta gate.Doc) gate.Doc {
	kept := gate.MustDoc("{}")
	for name, v := range meta.Members() {
		if name == mcp.MetaProgress || strings.HasPrefix(name, "io.modelcontextprotocol/") {
			kept = kept.With(name, v.Raw())
		}
	}
	return kept
}

// sent is _meta with what was written.
func sent(meta, written gate.Doc) []byte {
	return meta.With(metaSent, mcp.MustJSON(written.String())).Raw()
}

// unstow returns the parameters of a request as its client has written them.
func unstow(params gate.Doc) gate.Doc {
	written, err := gate.ParseDoc([]byte(params.Get("_meta").Get(metaSent).Text()))
	if err != nil {
		return params
	}
	if args := params.Get("arguments"); !args.IsZero() {
		written = written.With("arguments", args.Raw())
	}
	return written
}

// unstowAnswer returns what a client has answered; absent if that is no result.
func unstowAnswer(res sdk.Result) gate.Doc {
	b, err := json.Marshal(res)
	if err != nil {
		return gate.Doc{}
	}
	read, err := gate.ParseDoc(b)
	if err != nil {
		return gate.Doc{}
	}
	written, err := gate.ParseDoc([]byte(read.Get("_meta").Get(metaSent).Text()))
	if err != nil {
		return gate.Doc{}
	}
	return written
}
