package tools

import "github.com/wasmgate/wasmgate/sandbox/tools/tool"

// Module returns the tools as the module that cmd/guest/tools makes of them.
func Module() tool.Module {
	return tool.Module{Tools: []tool.Tool{csvQuery, hash, htmlToText, jsonQuery, textDiff}}
}
