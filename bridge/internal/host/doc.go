// Package host is the gateway as an MCP server: a [Host] serves clients over HTTP and in
// lines, and takes their every call to a [gate.Gate].
//
//	client
//	  |    HTTP (front, headers; stream, package respond) or lines (stdio)
//	  |    screen     strict JSON, shapes
//	  |    session    of the revisions that have sessions
//	Host.respond      one switch over what the host itself answers (dispatch)
//	Host.dispatch     and one over what is used of servers (call, list, features, methods, ...)
//	  |
//	Config.Do         the gate
//
// Who sends a request is found out before it is read (caller). An answer over HTTP is JSON,
// or a stream of events from the first message before it on, or after half a second; what
// was sent on a stream is kept for who comes back (respond.Kept). What a server asks within
// a call comes back by the call's [gate.Peer]: a client with a session is asked on the
// stream of its call (peer); for one without, the call is parked, and the question is the
// answer to its request (park, packages parking, questions and sealed). Calls that outlive
// their request are tasks (tasks, tasks_ask, tasks_ext). What servers say outside of calls
// goes to who listens (listen, tasks_listen).
//
// A host knows no servers: what is behind the gate is told to it by functions of its
// [Config].
package host
