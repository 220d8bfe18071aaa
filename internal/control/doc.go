// Package control connects commands and further processes to the gateway that runs on a configuration,
// by a socket.
//
// The first process takes the lock of a state folder and listens on its control.sock. Others find the
// socket and use it: for one request, or to relay a client that speaks MCP on their standard input and
// output.
//
// The socket speaks HTTP, so that any tool can look at it. Anyone who may open it is the operator: it
// is created for its owner only, in a folder that only its owner may open.
package control
