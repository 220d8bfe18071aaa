// Package rounds handles the answers of servers that ask for more (MCP 2026-07-28,
// basic/patterns/mrtr): it reads and bounds them, asks the client of the call or shows it the
// questions, and puts the client's answers into the next request. A task asks in the same words,
// for as long as it goes on ([Inputs]).
//
// It sends nothing to a server: package upstream decides what is sent, and how often.
package rounds
