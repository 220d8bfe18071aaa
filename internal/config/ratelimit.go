package config

import (
	"fmt"
	"os"
	"time"
)

// A RateLimit is one entry of a rate limits file: how much of what somebody may use
// in a time. A pattern is a literal, or a literal with * at its end.
type RateLimit struct {
	To      []string      // ids of principals, role:NAME, or *
	Tools   []string      // patterns of tools' names; without these and Servers, all
	Servers []string      // all of whose tools are limited
	Except  []string      // patterns of names that this entry does not limit
	Key     []string      // for what calls are counted apart; nil is principal
	Calls   int           // in Per; 0 sets no limit
	Bytes   int64         // of arguments and results, in Per; 0 sets no limit
	Burst   int           // calls at once after a rest; 0 is Calls
	Per     time.Duration // at least one second
}

// rateKeys are the words for what calls are counted apart.
var rateKeys = []string{"principal", "session", "server", "tool"}

// Bounds of a rate limit.
const (
	maxRateCalls = 1 << 30
	maxRateBytes = 1 << 40
	maxRateTime  = 1000 * time.Hour
)

// ReadRateLimits reads a rate limits file, in its order; "" stands for none. The
// error is a [Problems] with everything that is wrong with it.
func ReadRateLimits(path string) ([]RateLimit, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readEntries(path)
	if err != nil {
		return nil, fmt.Errorf("read rate limits: %w", err)
	}
	d := &decoder{file: path, lookup: os.LookupEnv, keep: true}
	root := d.parseEntries(data)
	if root == nil {
		return nil, d.problems.err()
	}
	var limits []RateLimit
	d.items(root, "", func(n *node, at string) { limits = append(limits, d.rateLimit(n, at)) })
	return limits, d.problems.err()
}

func (d *decoder) rateLimit(n *node, at string) RateLimit {
	var l RateLimit
	d.table(n, at, map[string]reader{
		"to": d.texts(&l.To), "tools": d.texts(&l.Tools), "servers": d.texts(&l.Servers), "except": d.texts(&l.Except),
		"key": d.texts(&l.Key, among(rateKeys)), "calls": d.count(&l.Calls, 1, maxRateCalls), "burst": d.count(&l.Burst, 1, maxRateCalls),
		"bytes": d.size(&l.Bytes, 1, maxRateBytes), "per": d.duration(&l.Per, time.Second, maxRateTime),
	})
	if n.kind != table {
		return l
	}
	if len(l.To) == 0 {
		d.fail(n, at+".to", "is missing: say whose calls are limited, such as [local], [\"role:dev\"] or [\"*\"]")
	}
	if n.get("calls") == nil && n.get("bytes") == nil {
		d.fail(n, at, "limits nothing: add calls, bytes or both")
	}
	if n.get("burst") != nil && n.get("calls") == nil {
		d.fail(n, at+".burst", "is of calls: add those")
	}
	if n.get("per") == nil {
		d.fail(n, at+".per", "is missing: say in what time, such as 1m")
	}
	return l
}
