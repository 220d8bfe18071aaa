package learn

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A Rate holds how often a principal calls a tool to twice what was seen, as an entry of the
// rate limits file.
type Rate struct {
	To    string `json:"to"`
	Tool  string `json:"tool"`
	Calls int    `json:"calls"` // in an hour
	Burst int    `json:"burst"`
	// Busiest is how many calls the busiest hour had.
	Busiest int `json:"busiest"`
	// Close is how many came so close together that they had to be allowed at once.
	Close int `json:"close"`
}

// use is of a tool, by somebody.
type use struct{ who, tool string }

// ratesOf are the rates of calls in the order of their times; of those without a time, and of
// tools that were called rarely, there is none.
func ratesOf(calls []made) []Rate {
	times := make(map[use][]time.Time)
	for _, c := range calls {
		if !c.Time.IsZero() {
			times[use{c.who, c.Tool}] = append(times[use{c.who, c.Tool}], c.Time)
		}
	}
	rates := []Rate{}
	for _, of := range slices.SortedFunc(maps.Keys(times), func(a, b use) int {
		return cmp.Or(strings.Compare(a.who, b.who), strings.Compare(a.tool, b.tool))
	}) {
		all := times[of]
		if len(all) < leastSeen {
			continue
		}
		r := Rate{To: of.who, Tool: of.tool}
		for i, first := 0, 0; i < len(all); i++ {
			for all[i].Sub(all[first]) >= time.Hour {
				first++
			}
			r.Busiest = max(r.Busiest, i-first+1)
		}
		r.Calls = 2 * r.Busiest
		var p pace
		for _, at := range all {
			r.Close = max(r.Close, p.add(at, r.Calls))
		}
		r.Burst = 2 * r.Close
		rates = append(rates, r)
	}
	return rates
}

// holds reports whether the rate allows one more call after those that are in paces.
func (r Rate) holds(at time.Time, paces map[use]*pace) bool {
	k := use{r.To, r.Tool}
	if paces[k] == nil {
		paces[k] = new(pace)
	}
	return paces[k].add(at, r.Calls) <= r.Burst
}

// A pace is how full a bucket is that leaks evenly.
type pace struct {
	full float64
	last time.Time
}

// add puts a call into the bucket, which so many leave in an hour, and returns how many it holds,
// rounded up.
func (p *pace) add(at time.Time, perHour int) int {
	p.full = max(0, p.full-at.Sub(p.last).Hours()*float64(perHour)) + 1
	p.last = at
	return int(math.Ceil(p.full))
}

// RateLimits is the proposal for the rate limits file, which the pack ratelimit reads.
func (p *Proposal) RateLimits() string {
	var b strings.Builder
	for _, r := range p.Rates {
		fmt.Fprintf(&b, "# Seen: %d calls in the busiest hour, %d close together.\n- {to: %s, tools: %s, calls: %d, burst: %d, per: 1h, key: [principal, tool]}\n",
			r.Busiest, r.Close, yamlList([]string{r.To}), yamlList([]string{r.Tool}), r.Calls, r.Burst)
	}
	return b.String()
}
