package config

import (
	"regexp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
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
func health(to *time.Duration) decode.Reader {
	return func(v decode.Value) {
		if v.Kind == tree.Text && v.Text == "off" {
			*to = HealthOff
			return
		}
		decode.Duration(to, time.Second, 24*time.Hour)(v)
	}
}
