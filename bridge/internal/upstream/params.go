package upstream

import (
	"bytes"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// completeParams gives the server its own name of what is completed.
func completeParams(t *gate.Tool, args gate.Doc) []byte {
	kind, member := "ref/prompt", "name"
	if t.Feature == gate.FeatureTemplate {
		kind, member = "ref/resource", "uri"
	}
	b := append([]byte(`{"ref":`), mcp.MustJSON(map[string]string{"type": kind, member: t.Local})...)
	if mcp.IsEmpty(args) {
		return append(b, '}')
	}
	return append(append(b, ','), bytes.TrimPrefix(args.Raw(), []byte("{"))...)
}

// methodParamsOf returns the parameters of a call of such a method as they are sent.
func methodParamsOf(args gate.Doc) []byte {
	if mcp.IsEmpty(args) {
		return []byte("{}")
	}
	return args.Raw()
}
