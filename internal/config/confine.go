package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Confine says what the command of a server may do. Paths are absolute; zero
// limits mean those that package confine documents.
type Confine struct {
	Read       []string      `key:"read places"`
	Write      []string      `key:"write places"`
	Execute    []string      `key:"execute places"`
	Connect    []uint16      `key:"connect ports"` // TCP, on any host
	DNS        bool          `key:"dns"`
	Memory     int64         `key:"memory 16MiB..1024GiB"`
	Processes  int           `key:"processes 1..1048576"`
	Files      int           `key:"files 8..1048576"`
	CPU        time.Duration `key:"cpu seconds"` // 0: without end
	BestEffort bool          `key:"best_effort"` // start it also where not all of this can be enforced
}

const maxCPU = 365 * 24 * time.Hour

// places reads paths. Those of confine need not be there yet: a server that lacks one does
// not start, and the others do.
func (d *decoder) places(to *[]string, checks ...check) reader {
	return func(n *tree.Node, path string) {
		d.items(n, path, func(item *tree.Node, at string) {
			var s string
			if d.path(&s, checks...)(item, at); s != "" {
				*to = append(*to, s)
			}
		})
	}
}

func (d *decoder) ports(to *[]uint16) reader {
	return func(n *tree.Node, path string) {
		d.items(n, path, func(item *tree.Node, at string) {
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
			return 0, errors.New("is not a duration of whole seconds, such as 60s")
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
	lines{b, "    "}.under("confine", func(l lines) { l.values(c) })
	return b.Bytes()
}
