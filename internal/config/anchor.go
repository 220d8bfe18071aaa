package config

import "time"

// An Anchor says where the head of the audit log is kept beside it. The zero Anchor keeps
// it nowhere.
type Anchor struct {
	File    string   // path to which lines are appended; empty for none
	Command []string // a program and its arguments, which gets each head on standard input
	Every   time.Duration
}

// DefaultAnchor is how often a head that is new is kept elsewhere.
const DefaultAnchor = time.Minute

func (d *decoder) anchor(to *Anchor, n *node, path string) {
	to.Every = DefaultAnchor
	d.table(n, path, map[string]reader{
		"file": d.path(&to.File), "command": d.program(&to.Command), "every": d.duration(&to.Every, time.Second, 24*time.Hour),
	})
	if n.get("file") == nil && n.get("command") == nil {
		d.fail(n, path, "names neither a file nor a command")
	}
}

// program reads a program and its arguments: no shell reads them.
func (d *decoder) program(to *[]string) reader {
	return func(n *node, path string) {
		if n.kind == text {
			d.fail(n, path, "must be a list of the program and its arguments: no shell reads it")
			return
		}
		var all []string
		d.items(n, path, func(item *node, at string) {
			if s, ok := d.written(item, at); ok {
				all = append(all, s)
			}
		})
		if n.kind == list && len(n.items) == 0 {
			d.fail(n, path, "is empty")
		}
		*to = all
	}
}
