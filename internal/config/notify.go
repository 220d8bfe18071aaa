package config

import (
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// A Notify says where notices for people are sent. One of Target.URL, Command and Desktop says how.
type Notify struct {
	Name      string   `key:"*"`
	About     []string `key:"about approval|quarantine|server|audit"` // nil is all
	Arguments bool     `key:"arguments"`                              // of calls that wait for approval, too
	Target
	Command []string `key:"command program"` // which gets each notice on standard input
	Desktop bool     `key:"desktop"`
}

// Named implements [decode.Named].
func (o *Notify) Named(f decode.Field) {
	o.Timeout = 10 * time.Second
	if !bundlePattern.MatchString(f.Key) {
		f.At.Fail("the name of a receiver has lower-case letters, digits and . _ -")
	}
}

// Check implements [decode.Checker].
func (o *Notify) Check(v decode.Value) {
	ways := 0
	for _, way := range []string{"url", "command", "desktop"} {
		if v.Has(way) {
			ways++
		}
	}
	if ways != 1 {
		v.Fail("has %d of url, command and desktop: write one", ways)
	}
	if v.Has("url") && check.Insecure(o.URL) {
		v.Get("url").Warn("plain http to another machine: notices, and headers, can be read on the way")
	}
}
