package gate

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxNotifications bounds the notifications that a client gets during one call; further ones of the
// server are dropped.
const maxNotifications = 10_000

// Notify sends the client what the server says of the call while it runs, such as its progress: a
// notification of MCP with its parameters, an object. Every string goes the way of the strings of
// results. A notification is dropped if it cannot be sanitized, or comes after the call or by the
// zero Permit. It returns once the client's connection has taken it, or ctx has ended.
func (p Permit) Notify(ctx context.Context, method string, params Doc) {
	defer func() { _ = recover() }() // a listener that panics is no reason for the call to end
	o := p.of
	if o == nil || !o.call.Reach().Hears || o.over.Load() || params.Kind() != doc.Object || o.told.Add(1) > maxNotifications {
		return
	}
	if clean, ok := o.parts.notice(o.tool, o.duty, params); ok {
		o.call.Client.Notify(ctx, method, clean)
	}
}

// Poll says that the server has ended the stream of its answer, and is to be asked for
// it again after a while: the client may be sent away likewise (MCP 2025-11-25,
// basic/transports, "Sending Messages to the Server"). After the call, and by the zero
// Permit, it does nothing.
func (p Permit) Poll(after time.Duration) {
	if p.of != nil && !p.of.over.Load() {
		p.of.call.client().Poll(after)
	}
}

// Tasked says that the server carries the call out as a task, which may take long: the client that
// waits for the answer may be given a task likewise. After the call, and by the zero Permit, it
// does nothing.
func (p Permit) Tasked() {
	if p.of != nil && !p.of.over.Load() {
		p.of.call.client().Tasked()
	}
}
