// Package agents takes what the hooks of agents tell: which of their own tools they are
// about to use, what came of it, and what their users say.
//
//	agent -> wasmgate hook -> control socket -> Agents.Hook -> gate.Do -> Agents.Invoke
//	                                                 ^                          |
//	          the hook after the call ---------------+---- its result ----------+
//
// A call of an agent's own tool goes the way of any other: [Agents.Lookup] finds a tool for
// it, the gate decides, admits and records, and what carries it out is the agent: the hook
// before it is answered once the gate has let the call pass, and [Agents.Invoke] waits for
// the hook after it, whose result the session learns. An agent that has carried out the
// call changes nothing about the result any more: the gate looks at it, and what the agent
// has read stays as it was.
//
// An agent's own session and the MCP session in which it calls this gateway are one where
// the agent sends the id of its call with it, see [Agents.Join]. Otherwise each has the
// labels of the other.
//
// Hooks run as the same user as the agent, which can end the gateway, or edit its own
// settings. What they tell is a source of labels and an early warning, not a boundary.
package agents
