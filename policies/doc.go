// Package policies holds the Rego that wasmgate ships, and its tests.
//
// decision.rego is the gate's own module: it makes one decision of the sets
// allow, ask, deny, obligations and labels. Every other file that is no test is
// a pack: NAME.rego is the pack NAME, and it only adds to those sets, or is a
// package of functions below wasmgate (paths, urls). Each has its tests beside it,
// in NAME_test.rego. The pack flow-ask has no file: it is flow, which asks.
//
// The package holds text and decides nothing; package policy reads it.
package policies

import (
	"bytes"
	"embed"
	"io/fs"
	"slices"
	"strings"
)

// Files holds all .rego files of the package, tests included.
//
//go:embed *.rego
var Files embed.FS

// asking are the packs that ask for what another pack denies.
var asking = map[string]string{"flow-ask": "flow"}

// Pack returns the rules of a pack, or of decision, and their tests. The error is
// [fs.ErrNotExist] if there is none of that name.
//
// What a pack denies, its asking one asks: the text is the same but for the set to
// which the rules add.
func Pack(name string) (rules, tests []byte, err error) {
	of, asks := asking[name]
	if !asks {
		of = name
	}
	if rules, err = Files.ReadFile(of + ".rego"); err != nil {
		return nil, nil, err
	}
	if tests, err = Files.ReadFile(of + "_test.rego"); err != nil {
		return nil, nil, err
	}
	if asks {
		rules = bytes.ReplaceAll(rules, []byte("\ndeny contains "), []byte("\nask contains "))
		tests = bytes.ReplaceAll(tests, []byte("wasmgate.deny"), []byte("wasmgate.ask"))
	}
	return rules, tests, nil
}

// Packs returns the names of the packs, sorted.
func Packs() []string {
	files, err := fs.Glob(Files, "*.rego")
	if err != nil {
		panic(err) // the pattern is a good one
	}
	var names []string
	for _, f := range files {
		if name := strings.TrimSuffix(f, ".rego"); name != "decision" && !strings.HasSuffix(name, "_test") {
			names = append(names, name)
		}
	}
	for name := range asking {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
