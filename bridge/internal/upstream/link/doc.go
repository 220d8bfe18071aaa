// Package link speaks MCP with a server over one connection: a [Link] finds out which protocol
// revision the server speaks (agree), sends requests (outgoing), receives (receive), reads listings
// (list), and knows when they are to be read again (watch, announcements).
//
// A [Dialect] is what differs between the revisions: sessions (sessions_tasks, health) for those
// that begin with a handshake, stateless (stateless_*) for the one without. The file revisions
// declares both. Both follow tasks of servers (tasks).
//
// A link ends with its connection. What outlives it asks for the next one, by the interface
// [Endpoint]; package upstream implements it.
package link
