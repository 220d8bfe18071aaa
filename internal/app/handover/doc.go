// Package handover serves one MCP client through one gateway after another, so that
// a process can take the place of another without the client's noticing more than it must.
//
//	client, in lines -> Client -> gateway in this process or another -> Client -> client
//
// A gateway after the first gets the client's own handshake again; the client sees the answer to
// it once. Requests for lists that were under way at the end of the one before are sent again. Others
// are answered with an error: they may or may not have been carried out. internal/app says which
// gateway is next.
package handover
