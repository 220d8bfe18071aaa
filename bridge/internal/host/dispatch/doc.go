// Package dispatch answers the requests of MCP clients, whatever transport they came by. What is
// no well-formed request is refused before ([Dispatcher.Screen]); [Dispatcher.Respond] answers all
// others, and finds the method:
//
//	call       tools/call
//	features   prompts, resources, completions
//	methods    methods that MCP does not have
//	list       lists; offering says which there are, instructions what servers say of their use
//	listen     what servers say outside of calls; tasks_listen for tasks
//	tasks      calls that outlive their request; tasks_ext in MCP 2026-07-28
//
// Each use of a server goes through carry and Config.Do; failure words what comes of it otherwise. A
// call whose server asks its client something meanwhile waits for the answer: on the stream of the
// request if the client has a session; otherwise the call is parked, and the question is the
// answer to the request (park). Calls that need a person's approval are in ask, those that need
// a login in connect.
package dispatch
