package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Confine says what the command of a server may do. Paths are absolute; zero
// limits mean those that package confine documents.
type Confine struct {
	Read, Write, Execute []string
	Connect              []uint16 // TCP ports, on any host
	DNS                  bool
	Memory               int64 // bytes
	Processes, Files     int
	CPU                  time.Duration // whole seconds; 0: without end
	BestEffort           bool          // start it also where not all of this can be enforced
}

// Bounds of what a server may be given; what it needs is less.
const (
	minConfined = 16 << 20 // bytes of memory
	maxConfined = 1 << 40
	maxCPU      = 365 * 24 * time.Hour
	maxCount    = 1 << 20 // processes, files
)

func (d *decoder) confine(n *node, path string) *Confine {
	c := new(Confine)
	d.table(n, path, map[string]reader{
		"read":        d.places(&c.Read),
		"write":       d.places(&c.Write),
		"execute":     d.places(&c.Execute),
		"connect":     d.ports(&c.Connect),
		"dns":         d.flag(&c.DNS),
		"memory":      d.size(&c.Memory, minConfined, maxConfined),
		"processes":   d.count(&c.Processes, 1, maxCount),
		"files":       d.count(&c.Files, 8, maxCount),
		"cpu":         d.seconds(&c.CPU),
		"best_effort": d.flag(&c.BestEffort),
	})
	return c
}

// places reads paths that need not be there yet: a server that lacks one does
// not start, and the others do.
func (d *decoder) places(to *[]string) reader {
	return func(n *node, path string) {
		d.items(n, path, func(item *node, at string) {
			var s string
			if d.path(&s)(item, at); s != "" {
				*to = append(*to, s)
			}
		})
	}
}

func (d *decoder) ports(to *[]uint16) reader {
	return func(n *node, path string) {
		d.items(n, path, func(item *node, at string) {
			var port int
			if d.count(&port, 1, 65_535)(item, at); port != 0 {
				*to = append(*to, uint16(port))
			}
		})
	}
}

// seconds reads a duration of whole seconds.
func (d *decoder) seconds(to *time.Duration) reader {
	return measure(d, to, "s", func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil || v < time.Second || v > maxCPU || v%time.Second != 0 {
			return 0, errors.New("is no duration of whole seconds, such as 60s")
		}
		return v, nil
	})
}

// RenderConfine returns c as the part of a wasmgate.yaml that belongs to a server.
// [Load] reads it back as it is.
func RenderConfine(server string, c Confine) []byte {
	for _, list := range []*[]string{&c.Read, &c.Write, &c.Execute} {
		*list = slices.Clone(*list)
		for i, p := range *list {
			(*list)[i] = strings.ReplaceAll(p, "$", "$$") // a dollar that stands for itself
		}
	}
	b := bytes.NewBufferString(fmt.Sprintf("servers:\n  %s:\n", scalar(server)))
	lines{b, "    "}.under("confine", func(l lines) { renderConfine(l, c) })
	return b.Bytes()
}

func renderConfine(l lines, c Confine) {
	l.column("read", c.Read)
	l.column("write", c.Write)
	l.column("execute", c.Execute)
	if len(c.Connect) > 0 {
		l.line("connect", "["+strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Connect), " ", ", "), "[]")+"]")
	}
	l.flag("dns", c.DNS, false)
	l.size("memory", c.Memory)
	l.number("processes", c.Processes)
	l.number("files", c.Files)
	l.time("cpu", c.CPU)
	l.flag("best_effort", c.BestEffort, false)
}
