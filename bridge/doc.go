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
//
// # Parts
//
// The names of files begin with the part that they belong to. A call goes down, its
// result up again:
//
//	client
//	  |    HTTP (host_http, host_quick) or lines (host_stdio); the MCP SDK has the
//	  |    handshake, sessions and streams, and decodes what is left (host_sdk)
//	Host.dispatch      one switch over all methods (host, then host_call, host_list, ...)
//	  |  gate.Call
//	gate.Gate.Do       decides, and gives a permit
//	  |  gate.Permit
//	Fleet.Invoke       which server it is (fleet_call; fleet_catalog makes the list)
//	  |                a Local runs a function (local), and is the end
//	Endpoint.Invoke    time, circuit, repeating (endpoint_call), parameters (endpoint_request)
//	  |
//	link               one connection, and the revision that it speaks (link_request; modern_*
//	  |                are what only the stateless one has)
//	peer               JSON-RPC: numbers, answers, cancelling (peer)
//	conn               messages: streamable HTTP, a child, a transport of the SDK (conn_*)
//	  |
//	server
//
// What a server asks while it works on a call goes the other way: from the peer
// (peer_asked), or the answer that asks for more (modern_rounds), by the call's permit
// through the gate to the client. One with a session is asked on the stream of its call
// (host_peer); for one without, the call is parked, and the question is the answer to its
// request (host_park, host_questions).
//
// What a server lists is made safe by server_*, held against pins and joined with the
// lists of others by fleet_*.
package bridge
