package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
)

// Develop has the configuration run the module in a file for its author: whatever the
// file holds. The entries that have it say how it is offered, and what it is granted; if
// none does, it is offered as a tool that is granted nothing, named after the file. A
// sha256 is not held against it.
func (c *Config) Develop(module string) error {
	path, err := filepath.Abs(module)
	if err == nil {
		err = check.Exists(path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", module, err)
	}
	c.Dev = path
	c.develop()
	return nil
}

// develop marks what is in development.
func (c *Config) develop() {
	if c.Dev == "" {
		return
	}
	found := false
	mark := func(m *Module) {
		if m.Path == c.Dev {
			m.Dev, m.SHA256, m.Verify, found = true, "", nil, true
		}
	}
	for i := range c.Tools {
		mark(&c.Tools[i])
	}
	for i := range c.Servers {
		mark(&c.Servers[i].Module)
	}
	if found {
		return
	}
	base := filepath.Base(c.Dev)
	id := serverID(strings.TrimSuffix(base, filepath.Ext(base)))
	for slices.ContainsFunc(c.Tools, func(m Module) bool { return m.ID == id }) {
		id += "-dev"
	}
	c.Tools = append(c.Tools, Module{ID: id, Path: c.Dev, Server: "local", Dev: true})
	c.mustSign()
}
