package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// retry has a faulted endpoint connect again in the background, at once or after a
// pause. The caller holds mu.
func (e *Endpoint) retry(ctx context.Context, atOnce bool) {
	if e.cfg.Broken != "" {
		return // nothing but another configuration can help
	}
	var pause time.Duration
	if atOnce {
		e.pauses.Reset()
	} else {
		pause = rand.N(e.pauses.Next())
	}
	ctx = context.WithoutCancel(ctx)
	e.next = time.Now().Add(pause)
	e.again = time.AfterFunc(pause, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.phase == status.Faulted && e.ownership.reconnects() {
			e.begin(ctx)
		}
		e.again = nil
	})
}

// usable returns the connection, nil if none can be used. The caller holds mu, or shares it.
func (e *Endpoint) usable() *link.Link {
	if e.phase == status.Ready && e.link.Peer.Why() == nil {
		return e.link
	}
	return nil
}

// ready returns the connection. While the endpoint is connecting again it waits for
// that, unless the circuit is open; a call that tries a half-open one does not wait
// for the pause to end either. waited says that the server may offer other things now.
func (e *Endpoint) ready(ctx context.Context, trial bool) (l *link.Link, waited bool, err error) {
	e.mu.RLock() // as nearly always, so that calls do not wait for each other
	l = e.usable()
	e.mu.RUnlock()
	if l != nil {
		return l, false, nil
	}
	var late <-chan time.Time
	for {
		e.mu.Lock()
		if l := e.usable(); l != nil {
			e.mu.Unlock()
			return l, waited, nil
		}
		if e.phase == status.Faulted && e.cfg.Broken == "" && (trial && !waited || e.again == nil) {
			e.begin(ctx)
		}
		turn, f := e.turn, e.notReady()
		coming := e.mayConnect()
		e.mu.Unlock()
		if !coming {
			return nil, waited, f
		}
		if until := e.circuit.OpenUntil(); !trial && !until.IsZero() {
			return nil, waited, e.circuitFault(until)
		}
		if late == nil {
			timer := time.NewTimer(waitReady)
			defer timer.Stop()
			late, waited = timer.C, true
		}
		select {
		case <-turn:
		case <-late:
			e.mu.Lock()
			defer e.mu.Unlock()
			return nil, waited, e.notReady() // as it is by now
		case <-ctx.Done():
			return nil, waited, ctx.Err()
		}
	}
}

// mayConnect reports whether there may be a connection soon: one that is Ready is about to be
// faulted. The caller holds mu.
func (e *Endpoint) mayConnect() bool {
	return e.cfg.Broken == "" && slices.Contains([]status.Phase{status.Ready, status.Connecting, status.Faulted}, e.phase)
}

// notReady is the fault of a call that finds no connection. The caller holds mu.
func (e *Endpoint) notReady() *fault.Fault {
	if f := e.credentialFault(e.fault); f != nil {
		return f
	}
	return fault.New(fault.NotConnected, e.cfg.Server, "call", e.notConnected())
}

// notConnected returns why there is no connection, and what is done about it. The caller holds mu.
func (e *Endpoint) notConnected() error {
	words, now := "the server is "+string(e.phase), time.Now()
	switch {
	case e.cfg.Broken != "":
		words = "the server cannot be used as it is configured"
	case e.phase == status.Connecting:
		what := "being connected"
		if e.cfg.Command != "" {
			what = "starting"
		}
		if e.wasReady {
			what += " again"
		}
		words = fmt.Sprintf("the server is %s (for %s so far); call again in %s", what, seconds(now.Sub(e.since)), waitReady)
	case e.phase == status.Faulted && e.again != nil:
		words = fmt.Sprintf("the server is not connected, and is tried again in %s; call again then", seconds(e.next.Sub(now)))
	}
	return &fault.NotConnectedError{Words: words, Fault: e.fault}
}

// seconds rounds up, to a second at least.
func seconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// circuitFault is the fault of a call that an open circuit does not let through.
func (e *Endpoint) circuitFault(until time.Time) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := &pace.OpenError{Until: until}
	if e.fault != nil {
		open.Why = e.fault
	}
	return fault.New(fault.NotConnected, e.cfg.Server, "call", open)
}

// repeats reports whether a call that failed with err is sent again: if the server
// cannot have seen it, or if it may be seen twice and the connection broke.
func (e *Endpoint) repeats(err error, t *gate.Tool) bool {
	if err == nil {
		return false
	}
	if _, never := errors.AsType[*wire.Unseen](err); never {
		return true
	}
	if f, ours := errors.AsType[*fault.Fault](err); ours {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.cfg.Retries > 0 && f.Kind == fault.NotConnected && e.mayConnect()
	}
	return e.cfg.Retry == options.RetryIdempotent && t.Feature == gate.FeatureTool && repeatable(t) && fault.KindOf(err, fault.Transport) == fault.Transport
}

// repeatable reports whether calling twice is as calling once: what is read is, and a tool if the
// server declares it (MCP 2025-11-25, server/tools, ToolAnnotations).
func repeatable(t *gate.Tool) bool {
	switch t.Feature {
	case gate.FeatureTool:
		hints := t.Definition.Get("annotations")
		return hints.Get("idempotentHint").True() || hints.Get("readOnlyHint").True()
	case gate.FeatureMethod:
		return false
	default:
		return true
	}
}
