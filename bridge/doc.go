// Package bridge speaks MCP on both sides of the gate.
//
// Towards servers, an [Endpoint] is one connection to one of them, a [Local] is
// a server made of Go functions and WASM modules, and a [Fleet] is many of both
// as one [gate.Upstream]. Towards clients, a [Host] is an MCP server whose
// every call goes through a [gate.Gate].
//
// Both sides speak the stateless revision 2026-07-28 and those before it, each
// with each. What a server asks of a client (a question, a model's answer, its
// roots) goes through the gate within the call that it is asked for: on a
// connection of that client's own, or with the answer where there are no
// sessions. On a connection that clients share a server can ask nothing.
//
// An endpoint connects again by itself; a call is repeated only if the server
// cannot have seen it, or if its configuration says that a tool may be.
//
// Payloads stay the bytes they were: a result is read once, strictly, as a
// [gate.Doc], and what no step of the gate changed leaves as it came, unknown
// fields and types of content included. Messages of a server that are no
// acceptable JSON end its connection, and nothing else.
//
// What goes wrong with a server is a [*Fault], and stays with that server.
package bridge
