// Package actions names what a call does, in the words of MCP's methods and of the gateway's own.
// The actions of clients are names of package gate. These are the actions of servers, sandboxed
// tools and agents, and of methods that MCP does not have.
package actions
