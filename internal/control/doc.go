// Package control is the socket by which commands and further processes reach
// the gateway that runs on a configuration.
//
// The first process takes the lock of a state folder and listens on its
// control.sock. Others find the socket and use it: for one request, or to relay
// a client that speaks MCP on their standard input and output.
//
// The socket speaks HTTP, so that any tool can look at it. Whoever may open it
// is the operator: it is created for its owner alone, in a folder of its
// owner alone.
package control
