// Package hook implements the side of agents' hooks that an agent starts: it hands what the agent
// tells on standard input to the gateway that runs on a state folder, prints the answer, and
// exits as the agent understands it. Any failure before a call denies the call, because agents
// let a call pass whose hook fails in any other way.
//
// It needs little of the standard library and nothing else, so that it starts within
// milliseconds. Package internal/agents interprets the events.
package hook
