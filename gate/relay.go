package gate

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// A relay is a tool of the gateway's own that carries out another call for its
// client: it is how a call is searched for, or started and fetched later. Both calls are
// decided and recorded, the other as if the client had made it: the records of each name
// the other one. What such a tool says itself is held against its output schema and
// sanitized like any result; what the other call has returned went that way already.

// Relay carries out another call for the client of the permitted one, of a [Tool]
// with Relay, and returns its outcome; an error is that of the call, whose ID [gate.RecordID] finds in it. It is made by the
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
	c.ClientName, c.ClientVersion, c.Trace = by.ClientName, by.ClientVersion, relayedTrace(by.Trace)
	p.of.relay.made(c.ID)
	if p.of.slot != nil { // the other call has a slot of its own, or waits for a person
		p.of.slot.Release(0)
	}
	res, err := p.of.relay.gate.do(ctx, c, true)
	if err != nil {
		return Result{}, &RelayedError{Call: c.ID, Err: err}
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
	if err := p.of.parts.recall(ctx, c, kept); err != nil {
		return Result{}, err
	}
	p.of.relay.passed.Store(&kept.Doc)
	return kept, nil
}

// relays reports whether calls can be made for the client of the permitted one now.
func (p Permit) relays() bool { return p.of != nil && p.of.relay != nil && !p.of.over.Load() }

func noRelay(name string) *Refusal {
	return &Refusal{Step: step.Authorize, Name: name, Reason: noCall}
}

// relayedTrace returns the place in a trace of a call that is made for the client of one in t.
func relayedTrace(t tracing.Context) tracing.Context {
	if !t.Sampled {
		return t
	}
	t.Parent = t.Client
	tracing.Mint(&t)
	return t
}
