// Package rounds has the answers of servers that ask for more (MCP 2026-07-28,
// basic/patterns/mrtr): they are read and bounded, the client of the call is asked, or shown
// the questions, and its answers are what the next request brings. A task asks in the same
// words, for as long as it goes on ([Inputs]).
//
// It sends nothing to a server: who does, and how often, is package upstream's.
package rounds
