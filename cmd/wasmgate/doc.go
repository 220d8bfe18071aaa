// Command wasmgate is a gateway between agents and tools: one MCP endpoint in
// front of many servers and sandboxed tools, whose every call is authorized by
// policy, validated both ways, sanitized and recorded.
//
// main.go and root.go begin; cli.go has what commands share, and ask.go, approvals_ask.go,
// call_*.go, complete.go, groups.go, memory.go and print.go what they use. A
// file has the command that it is named after, and its subcommands in COMMAND_SUBCOMMAND.go or
// in the same. Elsewhere are
//
//	auth.go        whoami, auth, key
//	completion.go  completion, help
//	grants.go      grant, revoke
//	login.go       login, logout, logins
//	pause.go       pause, resume
//	root.go        version
//	status.go      status, logs
package main
