package config

import (
	"fmt"
	"os"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A RateLimit is one entry of a rate limits file: how much of what somebody may use
// in a time. A pattern is a literal, or a literal with * at its end.
type RateLimit struct {
	To      []string      `key:"to"`                                // ids of principals, role:NAME, or *
	Tools   []string      `key:"tools"`                             // patterns of tools' names; without these and Servers, all
	Servers []string      `key:"servers"`                           // all of whose tools are limited
	Except  []string      `key:"except"`                            // patterns of names that this entry does not limit
	Key     []string      `key:"key principal|session|server|tool"` // for what calls are counted apart; nil is principal
	Calls   int           `key:"calls 1..1073741824"`               // in Per; 0 sets no limit
	Bytes   int64         `key:"bytes 1B..1024GiB"`                 // of arguments and results, in Per; 0 sets no limit
	Burst   int           `key:"burst 1..1073741824"`               // calls at once after a rest; 0 is Calls
	Per     time.Duration `key:"per 1s..1000h"`
}

// ReadRateLimits reads a rate limits file, in its order; "" stands for none. The
// error is a [Problems] with everything that is wrong with it.
func ReadRateLimits(path string) ([]RateLimit, error) {
	if path == "" {
		return nil, nil
	}
	data, err := tree.ReadEntries(path)
	if err != nil {
		return nil, fmt.Errorf("read rate limits: %w", err)
	}
	d := &decoder{file: path, lookup: os.LookupEnv, keep: true}
	root := d.parsed(tree.ParseEntries(data))
	if root == nil {
		return nil, d.problems.Err()
	}
	var limits []RateLimit
	d.items(root, "", func(n *tree.Node, at string) {
		var l RateLimit
		d.object(&l, n, at)
		limits = append(limits, l)
	})
	return limits, d.problems.Err()
}

func (l *RateLimit) check(d *decoder, n *tree.Node, at string) {
	if n.Kind != tree.Table {
		return
	}
	if len(l.To) == 0 {
		d.fail(n, at+".to", "is missing: name whose calls are limited, such as [local], [\"role:dev\"] or [\"*\"]")
	}
	if n.Get("calls") == nil && n.Get("bytes") == nil {
		d.fail(n, at, "limits nothing: add calls, bytes or both")
	}
	if n.Get("burst") != nil && n.Get("calls") == nil {
		d.fail(n, at+".burst", "works only with calls: add calls")
	}
	if n.Get("per") == nil {
		d.fail(n, at+".per", "is missing: give the period, such as 1m")
	}
}
