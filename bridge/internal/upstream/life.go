package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// Connect connects unless the endpoint is ready. Concurrent callers share one
// attempt, and one that leaves does not end it. The error is a [*fault.Fault] or wraps
// ctx.Err().
func (e *Endpoint) Connect(ctx context.Context) error {
	e.mu.Lock()
	switch e.phase {
	case status.Ready:
		e.mu.Unlock()
		return nil
	case status.Closing, status.Closed:
		e.mu.Unlock()
		return e.closedFault()
	case status.Idle, status.Faulted:
		e.begin(ctx)
	}
	a := e.attempt
	e.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("server %s: connect: %w", e.cfg.Server, ctx.Err())
	}
}

// Start begins to connect an idle endpoint, and does not wait.
func (e *Endpoint) Start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == status.Idle {
		e.begin(ctx)
	}
}

// starts reports whether the first attempt to connect is under way. The caller holds mu, or
// shares it.
func (e *Endpoint) starts() bool {
	if e.attempt == nil || !e.attempt.first {
		return false
	}
	select {
	case <-e.attempt.done:
		return false
	default:
		return true
	}
}

// begin starts an attempt. The caller holds mu.
func (e *Endpoint) begin(ctx context.Context) {
	e.become(status.Connecting)
	if e.again != nil {
		e.again.Stop()
	}
	a := &attempt{first: e.attempt == nil, done: make(chan struct{})}
	limit := newStartLimit(ctx, e.cfg.ConnectTimeout, e.failures)
	ctx, a.cancel, a.limit = limit.ctx, limit.cancel, limit
	e.attempt = a
	if a.first && e.recalls {
		e.wg.Go(e.recall)
	}
	e.wg.Go(func() {
		defer limit.end()
		l, tools, err := e.connect(ctx, limit)
		err = limit.of(err)
		shared := tools
		if err == nil {
			tools = e.joined(l, shared)
			e.observes(e.declaration(l, tools, time.Time{}))
		}
		e.connected(ctx, a, l, shared, tools, err)
		if err == nil {
			e.keep(l, shared)
		}
	})
}

// connected ends an attempt with its outcome.
func (e *Endpoint) connected(ctx context.Context, a *attempt, l *link.Link, shared, tools *listing.Tools, err error) {
	changed := true
	e.mu.Lock()
	if err == nil && l.Peer.Why() != nil { // lost came too early to be heard
		err = e.broke(l.Peer.Why())
	}
	switch {
	case e.phase == status.Closing: // Close waits for us and goes on
		e.link, a.err = l, e.closedFault()
	case err != nil:
		a.err, changed = e.failed(ctx, fault.From(e.cfg.Server, "connect", err))
	default:
		e.circuit.Connected(true, time.Now())
		e.become(status.Ready)
		e.wasReady = true
		e.fault, e.failures, e.link, e.shared, e.tools, e.recalled = nil, 0, l, shared, tools, nil
		e.wg.Go(func() { l.Watch(func(announced time.Time) { e.relist(context.WithoutCancel(ctx), l, announced) }) })
		e.wg.Go(func() { e.resubscribe(context.WithoutCancel(ctx), l) })
		if e.cfg.Health > 0 {
			e.wg.Go(func() { l.Dialect.Pings(context.WithoutCancel(ctx), e.cfg.Health) })
		}
		if e.ownership.reports() {
			e.cfg.Log.Info("endpoint ready", "tools", len(tools.All))
		}
	}
	e.mu.Unlock()
	if changed {
		e.changed() // before those who wait go on: they look for the tools
	}
	close(a.done)
}

// failed keeps why an attempt to connect has failed, and sees to the next. changed is
// whether it failed in another way than the one before. The caller holds mu.
func (e *Endpoint) failed(ctx context.Context, f *fault.Fault) (_ *fault.Fault, changed bool) {
	changed = e.circuit.Connected(false, time.Now()) || e.fault == nil || e.fault.Error() != f.Error()
	e.become(status.Faulted)
	e.fault = f
	e.said = e.attempt.limit.said()
	e.failures++
	e.retry(ctx, false)
	if changed {
		e.cfg.Log.Warn("endpoint faulted", "code", f.Code(), "error", f.Err)
	}
	return f, changed
}

// lost is called when the connection of l has ended.
func (e *Endpoint) lost(ctx context.Context, l *link.Link, err error) {
	e.mu.Lock()
	if e.phase != status.Ready || e.link != l {
		e.mu.Unlock()
		return
	}
	if l.Useful.Load() {
		e.pauses.Reset()
	}
	_, expired := errors.AsType[*wire.SessionEnded](err)
	renewed := errors.Is(err, errRenewed)
	atOnce := expired || renewed || time.Since(e.since) > workedTime
	e.become(status.Faulted)
	e.link, e.fault = nil, e.broke(err)
	if c, ok := l.Peer.Conn.(*wire.StdioConn); ok {
		e.said = c.Said()
	}
	e.retry(ctx, atOnce)
	if !renewed {
		e.cfg.Log.Warn("endpoint faulted", "code", e.fault.Code(), "error", err)
	}
	e.mu.Unlock()
	e.changed()
}

func (e *Endpoint) broke(err error) *fault.Fault {
	return fault.New(fault.KindOf(err, fault.Transport), e.cfg.Server, "connection", err)
}

// Close ends the connection and the server's process, and waits for both. It
// may be called more than once.
func (e *Endpoint) Close() error {
	e.audiences.close()
	e.mu.Lock()
	switch e.phase {
	case status.Idle:
		e.become(status.Closed)
		close(e.closed)
		e.mu.Unlock()
		return nil
	case status.Closing, status.Closed:
		e.mu.Unlock()
		<-e.closed
		return nil
	}
	e.become(status.Closing)
	if e.again != nil {
		e.again.Stop()
	}
	a := e.attempt
	e.mu.Unlock()

	a.cancel()
	<-a.done
	e.mu.Lock()
	l := e.link
	e.link = nil
	e.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	e.wg.Wait()
	e.mu.Lock()
	e.become(status.Closed)
	close(e.closed)
	e.mu.Unlock()
	return err
}

// End closes the endpoint, and logs what goes wrong with that.
func (e *Endpoint) End() {
	if err := e.Close(); err != nil {
		e.cfg.Log.Warn("server not ended", "error", err)
	}
}
