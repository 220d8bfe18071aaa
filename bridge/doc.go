// Package bridge holds the packages that speak MCP on both sides of the gate. Programs
// use [github.com/wasmgate/wasmgate/bridge/gateway]; what this package itself has are the
// names of an earlier version.
//
// Both sides speak the stateless revision 2026-07-28 and those before it, each
// with each. Payloads stay the bytes they were: a result is read once, strictly, as a
// [gate.Doc], and what no step of the gate changed leaves as it came, unknown
// fields and types of content included.
//
// # Rooms
//
// A call goes down, its result up again. Below gateway, which puts all together, no room
// knows the ones above it, and host and those on the side of servers do not know each
// other: what they share is in mcp.
//
//	client
//	  |
//	gateway            one configuration, one snapshot of everything that it makes
//	internal/host      towards clients: HTTP and lines, sessions, questions, tasks
//	  |  gate.Call
//	gate.Gate.Do       decides, and gives a permit
//	  |  gate.Permit
//	internal/fleet     many servers as one: which one a name is of, groups, pins, reloads
//	  |   \
//	  |  internal/local     a server of Go functions and WASM modules, and the end
//	internal/upstream  one server: its life, circuit and audiences, a call in either era
//	  |
//	internal/upstream/wire  JSON-RPC, over a child, HTTP or a transport of the SDK
//	  |
//	server
//
//	internal/mcp       the words that both sides share
//	internal/listing   what a server lists, made safe to be shown
//	internal/rig       what the tests of all these share
//
// Of the module's own internal folder, not of bridge's, are
//
//	lock               pins: what was approved of a server's definitions
//	schema             the schemas of tools
//	dial               where connections may go, and what they carry
//	confine            what a child may do
//
// What a server asks while it works on a call goes the other way: from wire, or from the
// answer that asks for more, by the call's permit through the gate to the host, which
// puts it to the client.
package bridge
