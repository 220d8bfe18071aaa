package config

import (
	"cmp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// Arguments says for which tools the arguments and results of calls are kept, in addition to the audit
// log. The zero Arguments keeps nothing.
type Arguments struct {
	Tools []string      `key:"tools tool"` // names, or their beginnings and *
	Keep  time.Duration `key:"keep age"`   // how long; 14 days unless the file says otherwise
}

// Check implements [decode.Checker].
func (a *Arguments) Check(v decode.Value) {
	a.Keep = cmp.Or(a.Keep, 14*24*time.Hour)
	if !v.Has("tools") {
		v.Fail("names no tools")
	}
}
