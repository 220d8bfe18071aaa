package config

import (
	"maps"
	"regexp"
	"slices"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A Group is a name for tools, prompts and resources. Patterns are literals, or
// literals with * at their end: qualified names of tools and prompts; SERVER__* means
// all that the server has.
type Group struct {
	Name     string   `key:"*"`
	Patterns []string `key:"= tool"`
}

// Catalog says whether clients can search for tools instead of listing them all.
type Catalog struct {
	// Mode is off, beside (the tools of the server catalog are listed with the others)
	// or only (they are listed in the place of the others).
	Mode string `key:"mode off|beside|only" default:"off"`
}

var groupPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// offered reads what somebody is offered, which is not nothing.
func (d *decoder) offered(to *[]string) reader {
	return func(n *tree.Node, path string) {
		d.texts(to, checks["group"])(n, path)
		if n.Kind == tree.List && len(n.Items) == 0 {
			d.fail(n, path, "offers nothing: name a group, or leave it out to offer all")
		}
	}
}

func (g *Group) named(d *decoder, f tree.Field, path string) {
	if !groupPattern.MatchString(f.Key) {
		d.fail(&tree.Node{Line: f.Line}, path, "a group is named with lower-case letters, digits and -")
	}
}

// AllGroups returns the patterns of all groups, by name. Those that only servers and
// modules name have none.
func (c *Config) AllGroups() map[string][]string {
	all := make(map[string][]string)
	for _, g := range c.Groups {
		all[g.Name] = append(all[g.Name], g.Patterns...)
	}
	var named []string
	for _, s := range c.Servers {
		named = append(named, s.Groups...)
	}
	for _, m := range c.Tools {
		named = append(named, m.Groups...)
	}
	for _, name := range named {
		if all[name] == nil {
			all[name] = []string{}
		}
	}
	return all
}

// checkGroups reports groups that a principal is offered and nothing is in.
func (d *decoder) checkGroups(principals *tree.Node, c *Config) {
	known := slices.Sorted(maps.Keys(c.AllGroups()))
	for i, p := range c.Principals { // one for each field of principals
		f := principals.Fields[i]
		for _, name := range p.Groups {
			if !slices.Contains(known, name) {
				d.fail(f.Value.Get("groups"), tree.Join(tree.Join("principals", f.Key), "groups"), "no group is named %q%s", name, hint(name, known))
			}
		}
	}
}

// noGroups refuses groups in a project's file: grants are given to them.
func (d *decoder) noGroups(n *tree.Node, path string) {
	d.each(n, path, func(f tree.Field, path string) {
		if at := f.Value.Get("groups"); at != nil {
			d.fail(at, tree.Join(path, "groups"), "is not allowed in a project's file, because grants can be given to groups: put it into your own file")
		}
		if at := f.Value.Get("env_file"); at != nil {
			d.fail(at, tree.Join(path, "env_file"), "is not allowed in a project's file, because it could name any of your files: put the server into your own file")
		}
	})
}
