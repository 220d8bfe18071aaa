package config

import (
	"regexp"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
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

var checkGroup = check.Matches(groupPattern, "a group: lower-case letters, digits and -")

// offered reads what somebody is offered, which is not nothing.
func offered(to *[]string) decode.Reader {
	return func(v decode.Value) {
		decode.Texts(to, checkGroup)(v)
		if v.Kind == tree.List && len(v.Items) == 0 {
			v.Fail("offers nothing: name a group, or leave it out to offer all")
		}
	}
}

// Named implements [decode.Named].
func (g *Group) Named(f decode.Field) {
	if !groupPattern.MatchString(f.Key) {
		f.At.Fail("a group is named with lower-case letters, digits and -")
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

// noGroups refuses groups in a project's file: grants are given to them.
func noGroups(v decode.Value) {
	for f := range v.Entries() {
		if f.Value.Has("groups") {
			f.Value.Get("groups").Fail("is not allowed in a project's file, because grants can be given to groups: put it into your own file")
		}
		if f.Value.Has("env_file") {
			f.Value.Get("env_file").Fail("is not allowed in a project's file, because it could name any of your files: put the server into your own file")
		}
	}
}
