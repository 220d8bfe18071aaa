// Package policies holds the Rego that wasmgate ships, and its tests.
//
// decision.rego is the gate's own module: it makes one decision of the sets
// allow, ask, deny, obligations and labels. Every other file that is no test is
// a pack: NAME.rego is the pack NAME, and it only adds to those sets. Each file
// has its tests beside it, in NAME_test.rego.
//
// The package holds text and decides nothing; package policy reads it.
package policies

import "embed"

// Files holds all .rego files of the package, tests included.
//
//go:embed *.rego
var Files embed.FS
