// Package dispatch answers the requests of MCP clients, whatever transport they came by. What is
// no well-formed request is refused before ([Dispatcher.Screen]); [Dispatcher.Respond] answers all
// others. The table in methods.go has each method with the function that answers it. The
// functions belong to these types:
//
//	tools     tools/call (call)
//	features  prompts, resources and completions; methods that MCP does not have
//	skillSet  skills, and which one a name means
//	lists     lists
//	tasks     calls that outlive their requests (task, tasks; tasks_ext in MCP 2026-07-28)
//	hearing   what servers say outside of calls: log levels, subscriptions, changes of lists (listen)
//
// Below them are the appPages, which know what clients that show pages of apps see; the carrier,
// which carries out calls; and the backend, which knows what clients are offered (offering,
// instructions).
//
// Each use of a server goes through carry and Config.Do; failure words what comes of it otherwise. A
// call whose server asks its client something meanwhile waits for the answer: on the stream of the
// request if the client has a session; otherwise the call is parked, and the question is the
// answer to the request (park). Calls that need a person's approval are in ask, those that need
// a login in connect.
package dispatch
