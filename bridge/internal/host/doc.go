// Package host is the gateway as an MCP server: a [Host] serves clients over HTTP and in
// lines, and takes their every call to a [gate.Gate].
//
//	client
//	  |    HTTP (http, quick) or lines (stdio); the MCP SDK has the handshake, sessions
//	  |    and streams, and decodes what is left (sdk)
//	Host.dispatch   one switch over all methods (host, then call, list, features, ...)
//	  |
//	Config.Do       the gate
//
// A message is looked at before anything else reads it (screen, headers). What a server
// asks within a call comes back by the call's [gate.Peer]: a client with a session is asked
// on the stream of its call (peer); for one without, the call is parked, and the question
// is the answer to its request (park, parking, questions, package sealed). Calls that outlive their
// request are tasks (tasks, tasks_ext), or go on for who comes back (posts, events). What
// servers say outside of calls goes to who listens (listen, tasks_listen).
//
// What the SDK cannot carry is put away before it reads a message, and taken out behind it
// (stow, methods).
//
// A host knows no servers: what is behind the gate is told to it by functions of its
// [Config].
package host
