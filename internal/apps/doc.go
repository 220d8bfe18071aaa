// Package apps reads what servers say of MCP Apps (the extension io.modelcontextprotocol/ui,
// 2026-01-26): which page a tool has, and what a page asks of the host that shows it.
//
// A page is code of its server's author. A host shows it in a frame, under a content security
// policy that it makes of [Settings]. So a source of that policy is passed on only if it is a
// plain origin, and an operator can narrow the sources with [options.AppSources].
package apps
