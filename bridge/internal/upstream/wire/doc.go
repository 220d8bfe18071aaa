// Package wire carries JSON-RPC between the gateway and one server. A [Peer] numbers
// requests, finds their answers, cancels, and passes on what the server asks (asked). It
// speaks over a [Conn]: a child process (stdio), streamable HTTP (http, events, resume,
// tls; plain carries most requests), or a transport of the MCP SDK (sdk, dial).
//
// Messages of a server that are no acceptable JSON end its connection, and nothing else. An
// [*Unseen] error says that the server cannot have seen a message. For a server that asks
// in the middle of a call, a call is a [Call]: this package knows no more of it.
package wire
