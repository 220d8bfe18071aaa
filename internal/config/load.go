package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Options say what a configuration may see of its surroundings. The zero value
// is the process's own.
type Options struct {
	Getenv func(name string) (string, bool) // nil: os.LookupEnv
	Dirs   Dirs                             // zero: UserDirs()
}

func (o Options) filled() (Options, error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	var err error
	if o.Dirs == (Dirs{}) {
		o.Dirs, err = UserDirs()
	}
	return o, err
}

// Load reads the one file at path, whether it is a wasmgate.yaml or an mcp.json.
// The error is a [Problems] with everything that is wrong with the file, or
// says why it could not be read.
//
// Unless a wasmgate.yaml says otherwise, its grants and lockfile are next to it, and its
// state and audit log in Dirs.State. An mcp.json belongs to another program and is often where
// an agent may write: its grants and lockfile are in Dirs.State, too.
func Load(path string, o Options) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, o)
}

// Parse is [Load] of bytes that the caller has read from path.
func Parse(path string, data []byte, o Options) (*Config, error) {
	c, problems, err := parseAll(path, data, o)
	if err = cmp.Or(err, problems.err()); err != nil {
		return nil, err
	}
	return c, nil
}

// parseAll is Parse that returns what it has understood, beside the problems.
func parseAll(path string, data []byte, o Options) (*Config, Problems, error) {
	o, err := o.filled()
	if err != nil {
		return nil, nil, err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	d := &decoder{file: path, dir: filepath.Dir(file), lookup: o.Getenv}
	var c *Config
	if isJSON(path, data) {
		c = d.hostFile(file, data, o.Dirs)
	} else {
		c = beside(d.dir)
		if root := d.parse(data, false); root != nil {
			d.config(root, c)
		}
	}
	c.place(file, o.Dirs)
	c.File, c.Warnings = file, d.warnings
	return c, d.problems, nil
}

// parse returns the tree of data, or nil after reporting that there is none.
func (d *decoder) parse(data []byte, json bool) *node {
	root, ps := parse(data, json)
	for _, p := range ps {
		p.File = d.file
		d.problems = append(d.problems, p)
	}
	return root
}

// config decodes the top level of a wasmgate.yaml into c, which holds the
// defaults.
func (d *decoder) config(root *node, c *Config) {
	readers := d.fields(c)
	maps.Copy(readers, map[string]reader{
		"version": d.version,
		"servers": func(n *node, path string) { d.servers(&c.Servers, nil, n, path) },
		"tools":   func(n *node, path string) { d.modules(&c.Tools, n, path) },
		"secrets": func(n *node, path string) { d.boundSecrets(&c.Secrets, n, path) },
		"mcpServers": func(n *node, path string) {
			d.fail(n, path, "is the key of an mcp.json: name the file so, or turn it into servers with `wasmgate add --from FILE`")
		},
	})
	for _, k := range []string{"node", "secret", "tenants", "cluster"} {
		readers[k] = d.later
	}
	d.table(root, "", readers)
	c.mustSign()
	d.clashes(root.get("tools"), c)
	d.checkAgents(root, c)
	d.checkGroups(root.get("principals"), c)
	d.checkSecrets(root.get("tools"), c)
	d.checkAuth(root, c)
	d.checkStore(root.get("store"), c)
}

// clashes reports modules that claim the name of a server.
func (d *decoder) clashes(tools *node, c *Config) {
	for i, m := range c.Tools { // one for each field of tools
		if slices.ContainsFunc(c.Servers, func(s Server) bool { return s.ID == m.Server }) {
			f := tools.fields[i]
			d.fail(&node{line: f.line}, join(join("tools", f.key), "server"), "%q is one of the servers: choose another name", m.Server)
		}
	}
}

func (d *decoder) version(n *node, path string) {
	if n.kind != number || n.text != "1" {
		d.fail(n, path, "must be 1, the only version there is")
	}
}
