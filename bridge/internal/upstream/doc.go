// Package upstream keeps the connection to one server. An [Endpoint] connects on request, lists,
// carries out calls, and connects again by itself. Each layer uses those below it:
//
//	Endpoint    one server: its parts, and the connections that belong to single clients (audience,
//	  |         own, pool); status
//	caller      sends calls, and repeats them (call)
//	connector   connects, and again (connector; connect has the ways to a server)
//	listed      what the server lists, as it is offered (listing, freshness, recall), hearing what
//	  |         clients want to hear (hear), and the reader, which reads listings
//	life        the phase, and the connection that there is
//	  |
//	ownership   what differs between a connection that clients share and one that is a single
//	  |         client's: shared, owned
//	link.Link   one connection, in one of two protocol revisions: package link
//	wire.Peer   JSON-RPC: package wire
//
// The configuration and phases (phase) know none of these layers. Package fault names what goes
// wrong with a server, underway keeps calls in progress, wants what clients want to hear, pace
// deadlines and the circuit, and rounds the questions in answers.
//
// An endpoint is in one of six phases. Its listing is kept fresh, and what clients want to
// hear of is subscribed to once. A server can ask the clients of calls in progress: with a
// session by a request (wire), else by an answer that asks for more (link).
//
// A call is repeated only if the server cannot have seen it, or if its configuration says
// that a tool may be. On a connection that clients share a server can ask nothing. If something
// goes wrong with a server, the error is a [*fault.Fault], and other servers are not affected.
package upstream
