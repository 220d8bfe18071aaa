// Package fleet joins many servers into one [gate.Upstream]. A [Fleet] has endpoints (package
// upstream) and local servers (package local). A fault of one does not affect the others.
//
//	Fleet.Invoke   finds the server of a call (call)
//	catalog        all tools at one time, rebuilt with each change: candidates, names (names,
//	               conflicts, mentions), features other than tools (features, opaque), groups, pins
//	translate      the URIs of what servers say, as clients know them
//	roster         the servers, in order
//	replace        servers that come, go and change while calls are under way
//	sessions       what a session has at all servers
//
// Listings are already sanitized (package listing). This package compares them with the pins, and
// resolves conflicts between servers that want the same name.
package fleet
