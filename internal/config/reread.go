package config

import (
	"fmt"
	"os"
	"slices"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Reread reads the files that c was made of again. The error is as that of [Load] and
// [Open]; of a project's file it is one, too, that it is not trusted as it is now.
func (c *Config) Reread(o Options) (*Config, error) {
	next, err := c.reread(o)
	if err == nil {
		next.Dev = c.Dev
		next.develop()
	}
	return next, err
}

func (c *Config) reread(o Options) (*Config, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	next := Default(o.Dirs)
	if c.File != "" {
		// Some editors empty a file before they write it, and a gateway would stop all servers meanwhile.
		if info, err := os.Stat(c.File); err == nil && info.Size() == 0 {
			return nil, tree.Problems{{File: c.File, Message: "is empty: if that is meant, write `version: 1` into it"}}
		}
		if next, err = Load(c.File, o); err != nil {
			return nil, err
		}
	}
	if c.Project == "" {
		return next, nil
	}
	data, err := tree.Read(c.Project)
	if err != nil {
		return nil, fmt.Errorf("the project's configuration cannot be read: %w", err)
	}
	trust, err := trustOf(o.Dirs.State, c.Project, data)
	if err != nil {
		return nil, err
	}
	if trust != trusted {
		return nil, tree.Problems{{File: c.Project, Message: string(trust)}}
	}
	return next, next.addProject(c.Project, data, o)
}

// Files are those that c was made of; none for the defaults.
func (c *Config) Files() []string {
	var files []string
	for _, f := range []string{c.File, c.Project} {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

// NeedRestart returns the keys whose values differ from those of c, with which a gateway
// runs, and which it does not take over while it runs. All that is not named here it takes over.
func (c *Config) NeedRestart(next *Config) []string {
	names := decode.Restarts(*c, *next)
	if (c.TLS.Cert != "") != (next.TLS.Cert != "") {
		names = append(names, "tls")
	}
	return names
}

// Running returns as much of the configuration that [Open] would read as it takes to
// find the gateway that runs on it, when something is wrong with its file now. False
// means that not even that can be told.
func Running(explicit, cwd string, o Options) (*Config, bool) {
	o, err := o.filled()
	if err != nil {
		return nil, false
	}
	f := Lookup(explicit, cwd, o.Dirs)
	if f.Base == "" || f.Project != "" {
		return nil, false
	}
	data, err := tree.Read(f.Base)
	if err != nil {
		return nil, false
	}
	c, _, err := parseAll(f.Base, data, o)
	return c, err == nil
}

// EmbeddedTools reports whether the tools that come with wasmgate are offered: without any file,
// or if an entry names them.
func (c *Config) EmbeddedTools() bool {
	return len(c.Files()) == 0 || slices.ContainsFunc(c.Tools, func(m Module) bool { return m.Ref == EmbeddedTools })
}
