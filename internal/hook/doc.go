// Package hook is the side of agents' hooks that an agent starts: it hands what the agent
// tells on standard input to the gateway that runs on a state folder, prints the answer, and
// exits as the agent understands it. Whatever goes wrong before a call denies it, for agents
// let a call pass whose hook fails in any other way.
//
// It needs little of the standard library and nothing else, so that it starts within
// milliseconds. What the events mean, package bridge/internal/agents knows.
package hook
