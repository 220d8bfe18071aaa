// Package fleet makes one [gate.Upstream] of many servers: a [Fleet] has endpoints
// (package upstream) and local servers (package local), each with its own faults.
//
//	Fleet.Invoke   which server it is (call)
//	catalog        all tools at one time, made anew with each change: names (names,
//	               conflicts), what is beside tools (features, opaque), groups, pins
//	replace        servers that come, go and change while calls are under way
//	sessions       what a session has at all of them
//
// What is listed is safe already (package listing). Here it is held against pins, and
// two servers that want one name are told apart.
package fleet
