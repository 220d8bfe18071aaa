// Package bridge speaks MCP on both sides of the gate.
//
// Towards servers, an [Endpoint] is one connection to one of them, a [Local] is
// a server made of Go functions and WASM modules, and a [Fleet] is many of both
// as one [gate.Upstream]. Towards clients, a [Host] is an MCP server whose
// every call goes through a [gate.Gate].
//
// Payloads stay the bytes they were: a result is read once, strictly, as a
// [gate.Doc], and what no step of the gate changed leaves as it came, unknown
// fields and types of content included. Messages of a server that are no
// acceptable JSON end its connection, and nothing else.
//
// What goes wrong with a server is a [*Fault], and stays with that server.
package bridge
