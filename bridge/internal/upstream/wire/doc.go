// Package wire carries JSON-RPC between the gateway and one server. A [Peer] numbers requests,
// finds their answers, cancels, and passes on the server's questions (asked). It speaks over a
// [Conn]: a child process (stdio), streamable HTTP (http, events, place, resume, tls; origin sends
// its requests, plain carries most), or a transport of the MCP SDK (sdk, dial). All of them read
// messages alike (message).
//
// If a message of a server is not acceptable JSON, its connection ends, and nothing else. An
// [*Unseen] error says that the server cannot have seen a message. A server can ask in the
// middle of a [Call]: this package knows no more of calls.
package wire
