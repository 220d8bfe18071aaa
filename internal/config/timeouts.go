package config

import (
	"regexp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// localPattern is a pattern of names of tools as their server has them, which may hold
// any character.
var localPattern = regexp.MustCompile(`^(?:[^*]+\*?|\*)$`)

// A ToolTimeout is the timeout of calls of the tools that Pattern matches, in the
// server's own names: a literal, or a literal with * at its end.
type ToolTimeout struct {
	Pattern string        `key:"*"`
	Timeout time.Duration `key:"= 1ms..24h"`
}

// HealthOff is the Health of a server that is not pinged.
const HealthOff time.Duration = -1

// health reads how long a server may be silent, or off.
func (d *decoder) health(to *time.Duration) reader {
	return func(n *tree.Node, path string) {
		if n.Kind == tree.Text && n.Text == "off" {
			*to = HealthOff
			return
		}
		d.duration(to, time.Second, 24*time.Hour)(n, path)
	}
}
