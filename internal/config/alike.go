package config

import "github.com/wasmgate/wasmgate/internal/lookalike"

// alike returns a function that reports a server which could be taken for one
// before it, for one of base, or for one of the gateway's own: a server's name
// begins the names of its tools, by which people grant them and agents choose them.
func (d *decoder) alike(base []Server) func(f field, path string) {
	var known lookalike.Index
	for _, id := range reserved {
		known.Add(id)
	}
	for _, s := range base {
		known.Add(s.ID)
	}
	return func(f field, path string) {
		if other, why, alike := known.Alike(f.key, nil); alike {
			d.fail(&node{line: f.line}, path, "the server's name, %s, looks like %s (%s): rename one of them", f.key, other, why)
		}
		known.Add(f.key)
	}
}
