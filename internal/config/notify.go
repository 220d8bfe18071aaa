package config

import (
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A Notify is somebody who is told what a person should look at. One of Target.URL, Command
// and Desktop says how.
type Notify struct {
	Name      string   `key:"*"`
	About     []string `key:"about approval|quarantine|server|audit"` // nil is all
	Arguments bool     `key:"arguments"`                              // of calls that wait for approval, too
	Target
	Command []string `key:"command program"` // which gets each notice on standard input
	Desktop bool     `key:"desktop"`
}

func (o *Notify) named(d *decoder, f tree.Field, path string) {
	o.Timeout = 10 * time.Second
	if !bundlePattern.MatchString(f.Key) {
		d.fail(&tree.Node{Line: f.Line}, path, "the name of a receiver has lower-case letters, digits and . _ -")
	}
}

func (o *Notify) check(d *decoder, n *tree.Node, path string) {
	ways := 0
	for _, way := range []string{"url", "command", "desktop"} {
		if n.Get(way) != nil {
			ways++
		}
	}
	if ways != 1 {
		d.fail(n, path, "has %d of url, command and desktop: write one", ways)
	}
	if u := n.Get("url"); u != nil && insecure(o.URL) {
		d.warn(u.Line, tree.Join(path, "url"), "plain http to another machine: notices, and headers, can be read on the way")
	}
}
