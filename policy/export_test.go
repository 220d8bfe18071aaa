package policy

import (
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// InFull decides without what the engine keeps.
var InFull = (*Engine).full

// Hurry has decisions be overdue after a time.
func Hurry(e *Engine, wall time.Duration) { e.wall = wall }

// Fixed returns how many decisions the engine keeps that nothing can change.
func (e *Engine) Fixed() int { return e.count(fixed) }

// Guarded returns how many decisions it keeps that only rules of deny can change.
func (e *Engine) Guarded() int { return e.count(guarded) }

func (e *Engine) count(s state) int {
	n := 0
	for _, x := range e.decisions.All() {
		if x.state == s && x.taken {
			n++
		}
	}
	return n
}

// ListTogether reports whether two principals have one list.
func ListTogether(e *Engine, a, b *gate.Principal) bool { return e.lister(a).key == e.lister(b).key }
