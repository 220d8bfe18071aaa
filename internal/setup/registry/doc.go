// Package registry reads entries of MCP registries (API v0.1) and makes servers of them.
//
// An entry is written by a stranger. It never decides what runs besides the package that it names: [Entry.Plan]
// refuses options of the runner, variables that change what runs, versions that are not exact, and hosts that are not
// the publisher's.
package registry
