// Package upstream is the connection to one server: an [Endpoint] connects when it is told
// to, lists, carries out calls, and connects again by itself. Each layer uses those below it:
//
//	Endpoint    its life (life, connect, start, retry), calls (call, request), listing
//	  |         (listing, freshness), what clients want to hear (hear), status
//	ownership   what differs between a connection that clients share and one that is a single
//	  |         client's: shared, owned; who has which is kept by audience (own, pool)
//	link        one connection (link); which revision it speaks is found out (agree), its
//	  |         listings are read (list, announcements)
//	dialect     what differs between the revisions: sessions (sessions_tasks, health) for
//	  |         those that begin with a handshake, stateless (stateless_*) for the one without
//	wire.Peer   JSON-RPC
//
// A link knows its endpoint by what it asks of it ([endpoint]). What is in no layer knows none
// of them: the configuration, phases (phase), requests (outgoing), tasks of servers (tasks) and
// faults; calls under way are package underway, what clients want to hear is package wants,
// deadlines and the circuit are package pace, questions in answers package rounds.
//
// An endpoint is in one of six phases. Its listing is kept fresh, and what clients want to
// hear of is subscribed to once. Calls under way are who a server can ask for: with a session
// by a request (wire), else by an answer that asks for more (stateless_rounds).
//
// A call is repeated only if the server cannot have seen it, or if its configuration says
// that a tool may be. On a connection that clients share a server can ask nothing. What
// goes wrong with a server is a [*Fault], and stays with that server.
package upstream
