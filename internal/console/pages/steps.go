package pages

import "github.com/wasmgate/wasmgate/gate/audit"

// A Step is what one part of a call's way took.
type Step struct {
	Name  string
	Took  string
	Share int // of the whole, in percent
}

// Steps returns what the parts of a call took, in their order.
func Steps(e audit.Entry) (all []Step) {
	for _, s := range e.Steps {
		us := s.Took.Microseconds()
		share := 0
		if e.TookUS > 0 {
			share = int(min(100, us*100/e.TookUS))
		}
		all = append(all, Step{string(s.Step), took(us), share})
	}
	return all
}
