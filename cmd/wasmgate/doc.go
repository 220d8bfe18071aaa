// Command wasmgate is a gateway between agents and tools: one MCP endpoint in
// front of many servers and sandboxed tools, whose every call is authorized by
// policy, validated both ways, sanitized and recorded.
package main
