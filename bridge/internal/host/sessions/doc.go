// Package sessions keeps the MCP clients of a host: the sender of each request ([Client]), its
// session if it has one ([Session]), and the messages to it:
//
//   - the answer to a request over HTTP ([Answer]), as JSON or as a stream of events: JSON if it is
//     ready within half a second, and nothing was to be sent before it. A client can come back for
//     what it has missed of a stream.
//   - questions from its servers in the middle of a call (pending), by the [Channel] of the request
//   - notifications outside of its requests ([Outbox], [Listener])
//
// [Clients] are all clients that have sessions, with the bounds on sessions and streams. The
// package does not know what requests are about.
package sessions
