// Package console serves those who run a gateway: an API for programs and, on top of the same
// handlers' data, pages for people. It has a listener of its own; the listener of MCP never
// serves it.
//
//	browser, program ──▶ who is it? ──▶ decide (admin/read, admin/approve, ...: Rego) ──▶ record ──▶ do
//	                     access.go       serve.go, access.go                              serve.go    a part
//
// routes.go has the one table of routes. Each names its action and op, and nothing is reached but through [serve],
// which decides. What changes anything is recorded before it is done, and names the version that was
// seen: if it is another by then, nothing happens.
//
// A part is a type with the handlers of one subject, in a file of its name, such as [pinHandlers]. It holds the parts
// of the gateway that it needs, its own state if it has any, and what all share: the frame of pages (frame.go), access
// (access.go), the audit log (log.go) and the policy as its files are (current.go). No part knows another.
//
// Package pages writes the pages, package signin knows the browsers that have signed in.
package console
