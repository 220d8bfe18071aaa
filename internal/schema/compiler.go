package schema

import (
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// Limits of what a Compiler keeps. A compiled schema takes some twenty times
// the bytes of its text.
const (
	maxCached      = 4096    // schemas
	maxCachedBytes = 8 << 20 // of their text
)

// A Compiler compiles schemas, each of them once: servers declare the same
// schema for many tools, and again whenever they list them. It forgets
// everything when it holds 4,096 schemas or 8 MiB of their text. Errors are
// kept as well. The zero Compiler is ready for use, by several goroutines.
type Compiler struct {
	mu    sync.Mutex
	known map[string]func() (*Schema, error) // by digest
	bytes int
}

// NewCompiler returns a Compiler that has compiled nothing yet.
func NewCompiler() *Compiler { return new(Compiler) }

// Compile is like the function [Compile], except that schemas with the same
// [gate.Doc.Digest] give the same *Schema.
func (c *Compiler) Compile(raw gate.Doc) (*Schema, error) {
	return c.entry(raw)()
}

func (c *Compiler) entry(raw gate.Doc) func() (*Schema, error) {
	digest := raw.Digest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.known[digest]; ok {
		return f
	}
	size := len(raw.Raw())
	if c.known == nil || len(c.known) == maxCached || c.bytes+size > maxCachedBytes {
		c.known, c.bytes = make(map[string]func() (*Schema, error)), 0
	}
	f := sync.OnceValues(func() (*Schema, error) { return Compile(raw) })
	c.known[digest] = f
	c.bytes += size
	return f
}
