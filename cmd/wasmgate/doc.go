// Command wasmgate is a gateway between agents and tools: one MCP endpoint in
// front of many servers and sandboxed tools, whose every call is authorized by
// policy, validated both ways, sanitized and recorded.
//
// main.go and root.go begin; complete.go and groups.go have what commands share. A file has the
// command that it is named after, and its subcommands. cmd/internal/shell has what all commands
// use. These have packages below cmd/internal:
//
//	approvalcommands    approvals
//	auditcommands       audit, findings, sessions
//	clientconfig        connect, disconnect
//	definitioncommands  pin, scan, trust
//	hookcommands        hook
//	identitycommands    key, auth, whoami, login, logout, logins
//	policycommands      policy, grant, revoke
//	sandboxcommands     sandbox
//	serverconfig        add, remove, outdated, upgrade
//	skillcommands       skills
package main
