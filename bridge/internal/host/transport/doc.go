// Package transport takes what MCP clients send over HTTP (http) and in lines, such as on standard
// input (stdio), has it answered by a dispatcher, and writes the answers.
//
// Over HTTP the sender is found out before the request is read, and anew for each request
// (caller). Headers have to say what the message says (headers). A client may be served at the
// address of one group (groups).
package transport
