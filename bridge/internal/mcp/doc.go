// Package mcp defines the protocol terms that the gateway uses on both of its sides: the methods of
// MCP, members of _meta, headers, error codes, states of tasks and levels of logging, and the small
// things that are the same wherever they are read or written. It decides nothing, and knows neither
// clients nor servers.
//
// If a term belongs to only one revision, its comment names the revision.
//
//	methods.go, meta.go, headers.go, errors.go, tasks.go, levels.go, revisions.go   terms
//	message.go, read.go, skim.go   a line or a body, within bounds
//	json.go, params.go             changed and stamped documents; arguments that are sent in headers
//	offering.go                    what a server offers, and its notices
package mcp
