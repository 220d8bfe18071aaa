// Package actions has what a call does, in the words of MCP's methods and of the gateway's
// own. Those of clients are names of gate; these are those of servers, sandboxed tools, agents,
// and methods that MCP does not have.
package actions
