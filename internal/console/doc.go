// Package console serves those who run a gateway: an API for programs and, on top of the same
// handlers' data, pages for people. It has a listener of its own; the listener of MCP never
// serves it.
//
//	browser, program ──▶ who is it? ──▶ decide (admin/read, admin/approve, ...: Rego) ──▶ record ──▶ do
//	                     signin.go       route.go                                       route.go     api.go, pages.go
//
// Each route names its action and op, and nothing is reached but through [route.serve], which
// decides. What changes anything is recorded before it is done, and names the version that was
// seen: if it is another by then, nothing happens.
//
// Texts of servers and callers are shown by package escaped and escaped by html/template; no page
// runs a script but one of ours, and all of them work without it.
package console
