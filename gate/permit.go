package gate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/step"
)

// A Permit is the proof that a call was authorized, and what its upstream may do
// on its behalf. Only [Gate.Do] makes one, so an upstream cannot be reached
// around the gate. The zero Permit permits nothing. Copies are the same permit,
// and may be used from several goroutines.
type Permit struct{ of *permitted }

// permitted is a call that the upstream has.
type permitted struct {
	call    *Call
	tool    *Tool
	parts   *Parts  // those that the call began with
	session Session // in which it was admitted
	duty    duty
	adds    Labels    // to the session
	slot    Slot      // nil if nothing is limited
	relay   *relaying // nil unless the tool makes calls
	asking  *asking   // nil unless the client can be asked

	hostCalls atomic.Uint64
	ledger    ledger        // of host calls
	told      atomic.Uint64 // notifications
	over      atomic.Bool
	used      atomic.Pointer[Credential] // by which the server was called
}

// end ends what the permit permits. The error is that of the recorder, which could not
// be told of all host calls.
func (p *permitted) end(ctx context.Context) error {
	if !p.over.Swap(true) && p.asking != nil {
		close(p.asking.ended)
	}
	return p.ledger.end(ctx)
}

// Open returns what is permitted, and false for the zero Permit.
func (p Permit) Open() (*Call, *Tool, bool) {
	if p.of == nil {
		return nil, nil, false
	}
	return p.of.call, p.of.tool, true
}

// Narrowing returns what the decision leaves a sandboxed tool of its grants, all
// its narrowings taken together. The zero Permit leaves nothing.
func (p Permit) Narrowing() obligation.Narrowing {
	if p.of == nil {
		return obligation.Nothing
	}
	return p.of.duty.narrowing
}

// Used says by which credential the server is called. That of the last request is recorded.
// By the zero Permit it does nothing.
func (p Permit) Used(c Credential) {
	if p.of != nil {
		p.of.used.Store(&c)
	}
}

// Approved returns nil as long as the definition of the tool is approved that the permit
// is for: since the call was let pass, its server can have turned out to be another. The
// error is a [*Refusal].
func (p Permit) Approved() error {
	o := p.of
	if o == nil || o.parts.check(o.tool) == nil {
		return nil
	}
	return &Refusal{Step: step.Pin, Call: o.call.ID, Name: o.call.Name, Reason: "the server differs from the one whose tools were approved"}
}

// relaying is what the permit of a [Tool] with Relay has more than others.
type relaying struct {
	gate  *Gate
	mu    sync.Mutex
	calls []string // IDs of those that were made
	// passed is the result that came through the gate last, and needs no second
	// look; nil if none did.
	passed atomic.Pointer[Doc]
}

// made writes down that a call is made.
func (r *relaying) made(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, id)
}

// relayed returns the IDs of the calls that were made by [Permit.Relay] so far.
func (p *permitted) relayed() []string {
	if p.relay == nil {
		return nil
	}
	p.relay.mu.Lock()
	defer p.relay.mu.Unlock()
	return slices.Clip(p.relay.calls)
}

// passedOn reports whether a result came through the gate as that of another call.
func (p *permitted) passedOn(res Result) bool {
	if p.relay == nil {
		return false
	}
	passed := p.relay.passed.Load()
	return passed != nil && *passed == res.Doc
}

// asking is what the permit of a call whose client can be asked has more than others.
type asking struct {
	times atomic.Uint64 // that the server has asked
	ended chan struct{} // closed with the call

	mu       sync.Mutex
	screened map[string]bool // what went through Screen, see [screenedKey]
}

// asking returns what a call needs whose client can be asked; nil if it cannot.
func (c *Call) asking() *asking {
	if c.Reach().Capabilities.IsZero() {
		return nil
	}
	return &asking{ended: make(chan struct{}), screened: make(map[string]bool)}
}

// during returns a context that ends with ctx, or with the call.
func (a *asking) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with ctx, which the caller cancels
		select {
		case <-a.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
