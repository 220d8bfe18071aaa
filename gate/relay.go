package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A relay is a tool of the gateway's own that carries out another call for its
// client: it is how a call is searched for, or started and fetched later. The other
// call alone is decided, charged and recorded, as if the client had made it. What
// such a tool says itself is held against its output schema and sanitized like any
// result, and recorded only if the tool is refused or fails.

// relaying is what the permit of a [Tool] with Relay has more than others.
type relaying struct {
	gate *Gate
	// leave gives back the place that the call holds among relays. It does so before
	// another call is carried out, which has a place of its own or waits for a person.
	leave func()
	// passed is the result that came through the gate last, and needs no second
	// look; nil if none did.
	passed atomic.Pointer[Doc]
}

// A Relayed error is that of a call which a tool made by [Permit.Relay].
type Relayed struct {
	Call string // its ID, by which it is recorded
	Err  error
}

// Error is that of the call.
func (e *Relayed) Error() string { return e.Err.Error() }

// Unwrap returns the call's error.
func (e *Relayed) Unwrap() error { return e.Err }

// RecordID returns the ID under which the outcome of a call is recorded: that of the
// call which err is of, if it was made for another, and otherwise call.
func RecordID(call string, err error) string {
	if r, ok := errors.AsType[*Relayed](err); ok {
		return r.Call
	}
	return call
}

// Relay carries out another call for the client of the permitted one, of a [Tool]
// with Relay, and returns its outcome; an error is a [*Relayed]. It is made by the
// same principal in the same session, with the client's name, Groups, Prompt and Meta,
// and the permitted call is its Parent, whatever c says of these. A caller that begins with a
// copy of the permitted call keeps what lets the client be asked and told; one that is
// to outlive the client leaves that out. The ID is a new one unless c has one of its
// own.
//
// Relay must begin before the permitted call has ended, and may end after it. No tool
// with Relay is called by it.
func (p Permit) Relay(ctx context.Context, c Call) (Result, error) {
	if !p.relays() {
		return Result{}, noRelay(c.Name)
	}
	by := p.of.call
	if c.ID == by.ID {
		c.ID = ""
	}
	if c.ID == "" {
		c.ID = NewID()
	}
	c.Parent, c.Who, c.Session, c.Groups, c.Prompt, c.Meta = by.ID, by.Who, by.Session, by.Groups, by.Prompt, by.Meta
	c.ClientName, c.ClientVersion = by.ClientName, by.ClientVersion
	p.of.relay.leave()
	res, err := p.of.relay.gate.do(ctx, c, true)
	if err != nil {
		return Result{}, &Relayed{c.ID, err}
	}
	p.of.relay.passed.Store(&res.Doc)
	return res, nil
}

// Recall returns a result that a call by [Permit.Relay] had before, and that was kept
// since with its Labels: the session of the permitted call learns what it teaches
// before anybody reads it.
func (p Permit) Recall(ctx context.Context, kept Result) (Result, error) {
	if !p.relays() {
		return Result{}, noRelay("a kept result")
	}
	c := p.of.call
	if err := p.of.parts.recall(ctx, c.Session, c.ID, kept); err != nil {
		return Result{}, err
	}
	p.of.relay.passed.Store(&kept.Doc)
	return kept, nil
}

// relays reports whether calls can be made for the client of the permitted one now.
func (p Permit) relays() bool { return p.of != nil && p.of.relay != nil && !p.of.over.Load() }

func noRelay(name string) *Refusal {
	return &Refusal{Step: StepAuthorize, Name: name, Reason: noCall}
}

// relay carries out the call of a tool that carries out another.
func (w *way) relay(ctx context.Context, q Query) (Result, error) {
	if w.relayed {
		w.next(StepAuthorize)
		return Result{}, w.fail(ctx, "it makes calls itself, and is not called by another tool that does", nil)
	}
	if err := w.validateInput(ctx, q, q.Call, false); err != nil {
		return Result{}, err
	}
	held, err := w.take(ctx, q, nil, held{})
	if err != nil {
		return Result{}, err
	}
	leave := sync.OnceFunc(func() { held.back(0) })
	defer leave()
	p := Permit{&permitted{call: q.Call, tool: q.Tool, parts: w.Parts, duty: noDuty, relay: &relaying{gate: w.gate, leave: leave}}}
	res, err := w.invoke(ctx, p)
	if err != nil {
		return Result{}, err
	}
	if passed := p.of.relay.passed.Load(); passed != nil && *passed == res.Doc {
		return res, nil
	}
	if err := w.validateOutput(ctx, p.of, res); err != nil {
		return Result{}, err
	}
	res.Doc, err = w.clean(ctx, p.of, res)
	return res, err
}

// leaves reports whether the evidence of the call is another's: it was carried out by
// a tool that carries out others.
func (w *way) leaves(err error) bool {
	if w.rec.Tool == nil || !w.rec.Tool.Relay {
		return false
	}
	if err == nil {
		return true
	}
	_, elsewhere := errors.AsType[*Relayed](err)
	return elsewhere
}
