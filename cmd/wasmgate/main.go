// Command wasmgate is a gateway between agents and tools: one MCP endpoint in
// front of many servers and sandboxed tools, whose every call is authorized by
// policy, validated both ways, sanitized and recorded.
package main

import (
	"context"
	"os"

	"github.com/wasmgate/wasmgate/bridge/gateway"
)

func main() {
	gateway.ChildMain()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
