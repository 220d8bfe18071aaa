package policy

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// InFull decides without what the engine keeps.
func InFull(e *Engine, ctx context.Context, q gate.Query) (gate.Decision, error) {
	return e.engine.Full(ctx, q)
}

// Hurry has decisions be overdue after a time.
func Hurry(e *Engine, wall time.Duration) { e.engine.Wall = wall }

// Fixed returns how many decisions the engine keeps that nothing can change.
func (e *Engine) Fixed() int {
	fixed, _ := e.engine.Kept()
	return fixed
}

// Guarded returns how many decisions it keeps that only rules of deny can change.
func (e *Engine) Guarded() int {
	_, guarded := e.engine.Kept()
	return guarded
}

// ListTogether reports whether two principals have one list.
func ListTogether(e *Engine, a, b *gate.Principal) bool { return e.engine.ListTogether(a, b) }
