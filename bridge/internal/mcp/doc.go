// Package mcp has the words that the gateway speaks on both of its sides: the methods of
// MCP, members of _meta, headers, error codes, states of tasks and levels of logging, and
// the small things that are the same wherever they are read or written. It decides
// nothing, and knows neither clients nor servers.
//
// Where a word is of one revision alone, its comment names the revision.
//
//	methods.go, meta.go, headers.go, errors.go, tasks.go, levels.go, revisions.go, version.go   words
//	message.go, read.go, skim.go   a line or a body, within bounds
//	json.go, params.go             documents changed and stamped; arguments that stand in headers
//	offering.go                    what a server offers, and what it tells of it
package mcp
