// Package manifest reads the file next to a WASM module that says what the module offers. It judges
// the form of the file and leaves what its values mean to the programs that run the module.
package manifest
