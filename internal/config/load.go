package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config/decode"
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
// The error is a [tree.Problems] with everything that is wrong with the file, or
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

// parseAll is Parse that returns what it has understood even if there are problems.
func parseAll(path string, data []byte, o Options) (*Config, tree.Problems, error) {
	o, err := o.filled()
	if err != nil {
		return nil, nil, err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	d := &decode.File{Name: path, Dir: filepath.Dir(file), Lookup: o.Getenv, Words: words}
	var c *Config
	if tree.IsJSON(path, data) {
		c = hostConfig(d, file, data, o.Dirs)
	} else {
		c = defaults(d.Dir)
		if root, ok := d.Parse(data, false); ok {
			c.read(root)
		}
	}
	c.place(file, o.Dirs)
	c.File, c.Warnings = file, d.Warnings
	return c, d.Problems, nil
}

// read reads the top level of a wasmgate.yaml into c, which holds the defaults.
func (c *Config) read(root decode.Value) {
	readers := words.Fields(c)
	maps.Copy(readers, map[string]decode.Reader{
		"version": version,
		"servers": servers(&c.Servers, nil),
		"tools":   modules(&c.Tools),
		"secrets": boundSecrets(&c.Secrets),
		"mcpServers": func(v decode.Value) {
			v.Fail("is the key of an mcp.json: name the file so, or turn it into servers with `wasmgate add --from FILE`")
		},
	})
	for _, k := range []string{"node", "secret", "tenants"} {
		readers[k] = func(v decode.Value) { v.Fail("this version of wasmgate does not have it") }
	}
	root.Table(readers)
	c.fit(root)
}

func version(v decode.Value) {
	if v.Kind != tree.Number || v.Text != "1" {
		v.Fail("must be 1, the only version there is")
	}
}
