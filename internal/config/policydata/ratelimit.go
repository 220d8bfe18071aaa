package policydata

import (
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
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
// error is a [tree.Problems] with everything that is wrong with it.
func ReadRateLimits(path string) ([]RateLimit, error) {
	if path == "" {
		return nil, nil
	}
	data, err := tree.ReadEntries(path)
	if err != nil {
		return nil, fmt.Errorf("read rate limits: %w", err)
	}
	f := &decode.File{Name: path, Keep: true}
	root, ok := f.Root(tree.ParseEntries(data))
	if !ok {
		return nil, f.Problems.Err()
	}
	var limits []RateLimit
	for v := range root.List() {
		var l RateLimit
		v.Object(&l)
		limits = append(limits, l)
	}
	return limits, f.Problems.Err()
}

// Check reports what an entry lacks.
func (l *RateLimit) Check(v decode.Value) {
	if v.Kind != tree.Table {
		return
	}
	if len(l.To) == 0 {
		v.Under("to").Fail("is missing: name whose calls are limited, such as [local], [\"role:dev\"] or [\"*\"]")
	}
	if !v.Has("calls") && !v.Has("bytes") {
		v.Fail("limits nothing: add calls, bytes or both")
	}
	if v.Has("burst") && !v.Has("calls") {
		v.Under("burst").Fail("works only with calls: add calls")
	}
	if !v.Has("per") {
		v.Under("per").Fail("is missing: give the period, such as 1m")
	}
}
