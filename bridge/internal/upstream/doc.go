// Package upstream is the connection to one server: an [Endpoint] connects when it is told
// to, lists, carries out calls, and connects again by itself.
//
//	Endpoint.Invoke   time and circuit (package pace), repeating (call, retry), whose
//	  |               connection (audience), parameters (request)
//	link              one connection, and the revision that it speaks: link_request writes a
//	  |               request in its words; modern_* are what only the stateless one has
//	wire.Peer         JSON-RPC
//
// An endpoint is in one of six phases (phase, life, connect). Its listing is kept fresh
// (listing, news, freshness), and what clients want to hear of is subscribed to once
// (subscriptions, levels; modern_listening knows to what a server has agreed). Calls under
// way (underway) are who a server can ask for: in the older revisions by a request (wire),
// in the stateless one by an answer that asks for more (modern_rounds, package rounds). A
// call that a server carries out as a task is followed to its end (tasks, modern_tasks).
//
// A call is repeated only if the server cannot have seen it, or if its configuration says
// that a tool may be. On a connection that clients share a server can ask nothing. What
// goes wrong with a server is a [*Fault], and stays with that server.
//
// What differs between the eras is asked where it differs: there is no type for either yet.
package upstream
