package gate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate/obligation"
)

// duty is what the obligations of a decision come to.
type duty struct {
	timeout   time.Duration // math.MaxInt64: none
	maxResult int64
	profile   string
	narrowing obligation.Narrowing
	narrowed  bool
	redact    *obligation.Redact
	rates     []obligation.Rate
	full      bool // recorded in full
	approve   bool
}

// onResult reports whether something is owed about the result.
func (d duty) onResult() bool {
	return d.maxResult < math.MaxInt64 || d.profile != "" || d.redact != nil
}

var noDuty = duty{timeout: math.MaxInt64, maxResult: math.MaxInt64}

// with returns the duty of a call under d and the obligations.
func (d duty) with(obligations []obligation.Obligation) (duty, error) {
	for _, o := range obligations {
		switch o := o.(type) {
		case obligation.Timeout:
			d.timeout = min(d.timeout, o.After)
		case obligation.MaxResult:
			d.maxResult = min(d.maxResult, o.Bytes)
		case obligation.Profile:
			if d.profile != "" && d.profile != o.Name {
				return duty{}, fmt.Errorf("profiles %q and %q at once", d.profile, o.Name)
			}
			d.profile = o.Name
		case obligation.Narrowing:
			d.narrowing, d.narrowed = d.narrowing.Intersect(o), true
		case obligation.Redact:
			d.redact = bothRedact(d.redact, o)
		case obligation.Rate:
			if d.rates = joinRates(d.rates, o); len(d.rates) > maxRates {
				return duty{}, fmt.Errorf("more than %d rates", maxRates)
			}
		case obligation.RecordFull:
			d.full = true
		case obligation.Approve:
			d.approve = true
		default:
			return duty{}, fmt.Errorf("unknown obligation %T", o)
		}
	}
	return d, nil
}

// bothRedact returns what both take out; nil takes out nothing.
func bothRedact(r *obligation.Redact, o obligation.Redact) *obligation.Redact {
	if r == nil {
		r = new(obligation.Redact)
	}
	return &obligation.Redact{Arguments: joined(r.Arguments, o.Arguments), Result: joined(r.Result, o.Result)}
}

// joined returns the union of both lists, sorted.
func joined(a, b []string) []string {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}
