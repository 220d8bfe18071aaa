package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmgate/wasmgate/internal/config/tree"
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
	data, err := tree.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, o)
}

// Parse is [Load] of bytes that the caller has read from path.
func Parse(path string, data []byte, o Options) (*Config, error) {
	c, problems, err := parseAll(path, data, o)
	if err = cmp.Or(err, problems.Err()); err != nil {
		return nil, err
	}
	return c, nil
}

// parseAll is Parse that returns what it has understood, beside the problems.
func parseAll(path string, data []byte, o Options) (*Config, tree.Problems, error) {
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
	if tree.IsJSON(path, data) {
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
func (d *decoder) parse(data []byte, json bool) *tree.Node { return d.parsed(tree.Parse(data, json)) }

// parsed reports what is wrong with a file that was parsed, and returns its tree.
func (d *decoder) parsed(root *tree.Node, ps []tree.Problem) *tree.Node {
	for _, p := range ps {
		p.File = d.file
		d.problems = append(d.problems, p)
	}
	return root
}

// config decodes the top level of a wasmgate.yaml into c, which holds the
// defaults.
func (d *decoder) config(root *tree.Node, c *Config) {
	readers := d.fields(c)
	maps.Copy(readers, map[string]reader{
		"version": d.version,
		"servers": func(n *tree.Node, path string) { d.servers(&c.Servers, nil, n, path) },
		"tools":   func(n *tree.Node, path string) { d.modules(&c.Tools, n, path) },
		"secrets": func(n *tree.Node, path string) { d.boundSecrets(&c.Secrets, n, path) },
		"mcpServers": func(n *tree.Node, path string) {
			d.fail(n, path, "is the key of an mcp.json: name the file so, or turn it into servers with `wasmgate add --from FILE`")
		},
	})
	for _, k := range []string{"node", "secret", "tenants"} {
		readers[k] = d.later
	}
	d.table(root, "", readers)
	c.mustSign()
	d.clashes(root.Get("tools"), c)
	d.checkAgents(root, c)
	d.checkGroups(root.Get("principals"), c)
	d.checkSecrets(root.Get("tools"), c)
	d.checkAuth(root, c)
	d.checkStore(root, c)
}

// clashes reports modules that claim the name of a server.
func (d *decoder) clashes(tools *tree.Node, c *Config) {
	for i, m := range c.Tools { // one for each field of tools
		if slices.ContainsFunc(c.Servers, func(s Server) bool { return s.ID == m.Server }) {
			f := tools.Fields[i]
			d.fail(&tree.Node{Line: f.Line}, tree.Join(tree.Join("tools", f.Key), "server"), "%q is one of the servers: choose another name", m.Server)
		}
	}
}

func (d *decoder) version(n *tree.Node, path string) {
	if n.Kind != tree.Number || n.Text != "1" {
		d.fail(n, path, "must be 1, the only version there is")
	}
}
