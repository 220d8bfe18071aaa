package config

import (
	"cmp"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// An Anchor says where the head of the audit log is kept beside it. The zero Anchor keeps
// it nowhere.
type Anchor struct {
	File    string        `key:"file path"`       // to which lines are appended; empty for none
	Command []string      `key:"command program"` // which gets each head on standard input
	Every   time.Duration `key:"every 1s..24h"`   // how often a head that is new is kept; each minute unless the file says otherwise
}

func (a *Anchor) check(d *decoder, n *tree.Node, path string) {
	a.Every = cmp.Or(a.Every, time.Minute)
	if n.Get("file") == nil && n.Get("command") == nil {
		d.fail(n, path, "names neither a file nor a command")
	}
}

// program reads a program and its arguments: no shell reads them.
func (d *decoder) program(to *[]string) reader {
	return func(n *tree.Node, path string) {
		if n.Kind == tree.Text {
			d.fail(n, path, "must be a list of the program and its arguments: no shell reads it")
			return
		}
		var all []string
		d.items(n, path, func(item *tree.Node, at string) {
			if s, ok := d.written(item, at); ok {
				all = append(all, s)
			}
		})
		if n.Kind == tree.List && len(n.Items) == 0 {
			d.fail(n, path, "is empty")
		}
		*to = all
	}
}
