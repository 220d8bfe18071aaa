package gate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// duty is what the obligations of a decision come to.
type duty struct {
	timeout   time.Duration // math.MaxInt64: none
	maxResult int64
	profile   string
	narrowing Narrowing
	narrowed  bool
	redact    *Redact
	rates     []Rate
	full      bool // recorded in full
	approve   bool
}

// onResult reports whether something is owed about the result.
func (d duty) onResult() bool {
	return d.maxResult < math.MaxInt64 || d.profile != "" || d.redact != nil
}

var noDuty = duty{timeout: math.MaxInt64, maxResult: math.MaxInt64}

// with returns the duty of whoever is under d and the obligations.
func (d duty) with(obligations []Obligation) (duty, error) {
	for _, o := range obligations {
		switch o := o.(type) {
		case Timeout:
			d.timeout = min(d.timeout, o.After)
		case MaxResult:
			d.maxResult = min(d.maxResult, o.Bytes)
		case Profile:
			if d.profile != "" && d.profile != o.Name {
				return duty{}, fmt.Errorf("profiles %q and %q at once", d.profile, o.Name)
			}
			d.profile = o.Name
		case Narrowing:
			d.narrowing, d.narrowed = d.narrowing.Intersect(o), true
		case Redact:
			d.redact = d.redact.join(o)
		case Rate:
			if d.rates = joinRates(d.rates, o); len(d.rates) > maxRates {
				return duty{}, fmt.Errorf("more than %d rates", maxRates)
			}
		case RecordFull:
			d.full = true
		case Approve:
			d.approve = true
		default:
			return duty{}, fmt.Errorf("unknown obligation %T", o)
		}
	}
	return d, nil
}

// join returns what both take out; nil takes out nothing.
func (r *Redact) join(o Redact) *Redact {
	if r == nil {
		r = new(Redact)
	}
	return &Redact{joined(r.Arguments, o.Arguments), joined(r.Result, o.Result)}
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
