// Package edit writes parts of a configuration: servers into a wasmgate.yaml, whose other lines
// stay as they were, and servers and confinements as text. It writes by the tags of the fields
// by which package decode reads them.
//
// servers.go adds servers to a file, render.go writes what a struct holds, lines.go single keys.
package edit
