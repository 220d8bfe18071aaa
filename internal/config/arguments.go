package config

import (
	"cmp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Arguments says of which tools what calls were made with, and returned, is kept beside the
// audit log. The zero Arguments keeps nothing.
type Arguments struct {
	Tools []string      `key:"tools tool"` // names, or their beginnings and *
	Keep  time.Duration `key:"keep age"`   // how long; 14 days unless the file says otherwise
}

func (a *Arguments) check(d *decoder, n *tree.Node, path string) {
	a.Keep = cmp.Or(a.Keep, 14*24*time.Hour)
	if n.Get("tools") == nil {
		d.fail(n, path, "names no tools")
	}
}
