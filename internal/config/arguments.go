package config

import "time"

// Arguments says of which tools what calls were made with, and returned, is kept beside the
// audit log. The zero Arguments keeps nothing.
type Arguments struct {
	Tools []string      // names, or their beginnings and *
	Keep  time.Duration // how long
}

// DefaultArguments is how long arguments and results are kept.
const DefaultArguments = 14 * 24 * time.Hour

func (d *decoder) arguments(to *Arguments, n *node, path string) {
	to.Keep = DefaultArguments
	d.table(n, path, map[string]reader{"tools": d.texts(&to.Tools, checkTools), "keep": d.age(&to.Keep)})
	if n.get("tools") == nil {
		d.fail(n, path, "names no tools")
	}
}
