package config

import (
	"cmp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// An Anchor says where the head of the audit log is kept, other than in the log. The zero Anchor keeps
// it nowhere.
type Anchor struct {
	File    string        `key:"file path"`       // to which lines are appended; empty for none
	Command []string      `key:"command program"` // which gets each head on standard input
	Every   time.Duration `key:"every 1s..24h"`   // how often a head that is new is kept; each minute unless the file says otherwise
}

// Check implements [decode.Checker].
func (a *Anchor) Check(v decode.Value) {
	a.Every = cmp.Or(a.Every, time.Minute)
	if !v.Has("file") && !v.Has("command") {
		v.Fail("names neither a file nor a command")
	}
}

// program reads a program and its arguments: no shell reads them.
func program(to *[]string) decode.Reader {
	return func(v decode.Value) {
		if v.Kind == tree.Text {
			v.Fail("must be a list of the program and its arguments: no shell reads it")
			return
		}
		var all []string
		for item := range v.List() {
			if s, ok := item.Written(); ok {
				all = append(all, s)
			}
		}
		if v.Kind == tree.List && len(v.Items) == 0 {
			v.Fail("is empty")
		}
		*to = all
	}
}
