// Package arch holds the module's architecture: its test says which package may import
// which, and how large and how entangled packages may be, as [Measure] finds them.
package arch
