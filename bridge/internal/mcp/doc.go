// Package mcp has the words that the gateway speaks on both of its sides: the methods of
// MCP, members of _meta, headers, error codes, states of tasks and levels of logging, and
// the small things that are the same wherever they are read or written. It decides
// nothing, and knows neither clients nor servers.
//
// Where a word is of one revision alone, its comment names the revision.
package mcp
