package config

import (
	"regexp"
	"time"
)

// localPattern is a pattern of names of tools as their server has them, which may hold
// any character.
var localPattern = regexp.MustCompile(`^(?:[^*]+\*?|\*)$`)

// A ToolTimeout is the timeout of calls of the tools that Pattern matches, in the
// server's own names: a literal, or a literal with * at its end.
type ToolTimeout struct {
	Pattern string
	Timeout time.Duration
}

// HealthOff is the Health of a server that is not pinged.
const HealthOff time.Duration = -1

// Bounds of times of a server.
const (
	maxCallTime   = 24 * time.Hour
	minHealthTime = time.Second
	maxRetryWait  = 30 * time.Second
	maxRetries    = 10
)

// timeouts reads the timeouts of tools, in their order.
func (d *decoder) timeouts(to *[]ToolTimeout, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		t := ToolTimeout{Pattern: f.key}
		if err := matches(localPattern, "the name of a tool as its server has it, or its beginning and *")(f.key); err != nil {
			d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
		}
		d.duration(&t.Timeout, time.Millisecond, maxCallTime)(f.value, path)
		*to = append(*to, t)
	})
}

// health reads how long a server may be silent, or off.
func (d *decoder) health(to *time.Duration) reader {
	return func(n *node, path string) {
		if n.kind == text && n.text == "off" {
			*to = HealthOff
			return
		}
		d.duration(to, minHealthTime, maxCallTime)(n, path)
	}
}
