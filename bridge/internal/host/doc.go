// Package host is the gateway as an MCP server: a [Host] serves clients over HTTP and in
// lines, and takes their every call to a [gate.Gate]. Each layer uses those below it:
//
//	client
//	  |    HTTP (front: caller, groups, headers) or lines (stdio)
//	  |    screen    strict JSON (peek at what is none), and shapes (shape)
//	Host.respond     what the host itself answers (dispatch), and by Host.dispatch what is used
//	  |              of servers: tools (call), prompts and resources (features), methods that
//	  |              MCP does not have (methods), lists (list, instructions, offering), what
//	  |              servers say outside of calls (listen, tasks_listen)
//	Host.carry       a call, what its server asks meanwhile (ask, connect, park), and calls that
//	  |              outlive their request (tasks, tasks_ask, tasks_ext)
//	Config.Do        the gate
//
// Below that is what knows no [Host]: who sends a request (client), its session (session) and
// the streams of its answers (stream, package respond), together clients; what a client is
// asked (pending) and told (outbox, listeners); messages, refusals and errors.
//
// Who sends a request is found out before it is read (caller). An answer over HTTP is JSON,
// or a stream of events from the first message before it on, or after half a second; what
// was sent on a stream is kept for who comes back (respond.Kept). What a server asks within
// a call comes back by the call's [gate.Client]: a client with a session is asked on the
// stream of its call (client, stream); for one without, the call is parked, and the question is
// the answer to its request (park, packages parking, questions and sealed).
//
// A host knows no servers: what is behind the gate is told to it by functions of its
// [Config]. How it begins and ends is in life.
package host
