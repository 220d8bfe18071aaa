package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// A connector connects, and again whenever the connection has ended.
type connector struct {
	*life
	listed     *listed
	hearing    *hearing
	calls      underway.Calls // over the connection
	ownership  ownership      // of it
	clientInfo []byte         // how the gateway calls itself, JSON
}

// Connect connects unless the endpoint is ready. Concurrent callers share one
// attempt, and one that leaves does not end it. The error is a [*fault.Fault] or wraps
// ctx.Err().
func (cn *connector) Connect(ctx context.Context) error {
	cn.mu.Lock()
	switch cn.phase {
	case status.Ready:
		cn.mu.Unlock()
		return nil
	case status.Closing, status.Closed:
		cn.mu.Unlock()
		return cn.cfg.closedFault()
	case status.Idle, status.Faulted:
		cn.begin(ctx)
	}
	a := cn.attempt
	cn.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("server %s: connect: %w", cn.cfg.Server, ctx.Err())
	}
}

// Start begins to connect an idle endpoint, and does not wait.
func (cn *connector) Start(ctx context.Context) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.phase == status.Idle {
		cn.begin(ctx)
	}
}

// begin starts an attempt. The caller holds mu.
func (cn *connector) begin(ctx context.Context) {
	cn.become(status.Connecting)
	if cn.again != nil {
		cn.again.Stop()
	}
	a := &attempt{first: cn.attempt == nil, done: make(chan struct{})}
	limit := newStartLimit(ctx, cn.cfg.ConnectTimeout, cn.failures)
	ctx, a.cancel, a.limit = limit.ctx, limit.cancel, limit
	cn.attempt = a
	if a.first && cn.listed.recalls {
		cn.wg.Go(cn.listed.recall)
	}
	cn.wg.Go(func() {
		defer limit.end()
		l, tools, err := cn.connect(ctx, limit)
		err = limit.of(err)
		shared := tools
		if err == nil {
			tools = cn.listed.joined(l, shared)
			cn.listed.observes(cn.listed.declaration(l, tools, time.Time{}))
		}
		cn.connected(ctx, a, l, shared, tools, err)
		if err == nil {
			cn.listed.keep(l, shared)
		}
	})
}

// connected ends an attempt with its outcome.
func (cn *connector) connected(ctx context.Context, a *attempt, l *link.Link, shared, tools *listing.Tools, err error) {
	changed := true
	cn.mu.Lock()
	if err == nil && l.Peer.Why() != nil { // lost came too early to be heard
		err = cn.cfg.broke(l.Peer.Why())
	}
	switch {
	case cn.phase == status.Closing: // Close waits for us and goes on
		cn.link, a.err = l, cn.cfg.closedFault()
	case err != nil:
		a.err, changed = cn.failed(ctx, fault.From(cn.cfg.Server, "connect", err))
	default:
		cn.circuit.Connected(true, time.Now())
		cn.become(status.Ready)
		cn.wasReady = true
		cn.fault, cn.failures, cn.link, cn.shared, cn.tools, cn.recalled = nil, 0, l, shared, tools, nil
		cn.wg.Go(func() { l.Watch(func(announced time.Time) { cn.relist(context.WithoutCancel(ctx), l, announced) }) })
		cn.wg.Go(func() { cn.hearing.resubscribe(context.WithoutCancel(ctx), l) })
		if cn.cfg.Health > 0 {
			cn.wg.Go(func() { l.Dialect.Pings(context.WithoutCancel(ctx), cn.cfg.Health) })
		}
		if cn.ownership.reports() {
			cn.cfg.Log.Info("endpoint ready", "tools", len(tools.All))
		}
	}
	cn.mu.Unlock()
	if changed {
		cn.changed() // before those who wait go on: they look for the tools
	}
	close(a.done)
}

// failed keeps why an attempt to connect has failed, and sees to the next. changed is
// whether it failed in another way than the one before. The caller holds mu.
func (cn *connector) failed(ctx context.Context, f *fault.Fault) (_ *fault.Fault, changed bool) {
	changed = cn.circuit.Connected(false, time.Now()) || cn.fault == nil || cn.fault.Error() != f.Error()
	cn.become(status.Faulted)
	cn.fault = f
	cn.said = cn.attempt.limit.said()
	cn.failures++
	cn.retry(ctx, false)
	if changed {
		cn.cfg.Log.Warn("endpoint faulted", "code", f.Code(), "error", f.Err)
	}
	return f, changed
}

// lost is called when the connection of l has ended.
func (cn *connector) lost(ctx context.Context, l *link.Link, err error) {
	cn.mu.Lock()
	if cn.phase != status.Ready || cn.link != l {
		cn.mu.Unlock()
		return
	}
	if l.Useful.Load() {
		cn.pauses.Reset()
	}
	_, expired := errors.AsType[*wire.SessionEnded](err)
	renewed := errors.Is(err, errRenewed)
	atOnce := expired || renewed || time.Since(cn.since) > workedTime
	cn.become(status.Faulted)
	cn.link, cn.fault = nil, cn.cfg.broke(err)
	if c, ok := l.Peer.Conn.(*wire.StdioConn); ok {
		cn.said = c.Said()
	}
	cn.retry(ctx, atOnce)
	if !renewed {
		cn.cfg.Log.Warn("endpoint faulted", "code", cn.fault.Code(), "error", err)
	}
	cn.mu.Unlock()
	cn.changed()
}

// close ends the connection and the server's process, for good, and waits for both.
func (cn *connector) close() error {
	cn.mu.Lock()
	switch cn.phase {
	case status.Idle:
		cn.become(status.Closed)
		close(cn.closed)
		cn.mu.Unlock()
		return nil
	case status.Closing, status.Closed:
		cn.mu.Unlock()
		<-cn.closed
		return nil
	}
	cn.become(status.Closing)
	if cn.again != nil {
		cn.again.Stop()
	}
	a := cn.attempt
	cn.mu.Unlock()

	a.cancel()
	<-a.done
	cn.mu.Lock()
	l := cn.link
	cn.link = nil
	cn.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	cn.wg.Wait()
	cn.mu.Lock()
	cn.become(status.Closed)
	close(cn.closed)
	cn.mu.Unlock()
	return err
}

// retry has a faulted endpoint connect again in the background, at once or after a
// pause. The caller holds mu.
func (cn *connector) retry(ctx context.Context, atOnce bool) {
	if cn.cfg.Broken != "" {
		return // nothing but another configuration can help
	}
	var pause time.Duration
	if atOnce {
		cn.pauses.Reset()
	} else {
		pause = rand.N(cn.pauses.Next())
	}
	ctx = context.WithoutCancel(ctx)
	cn.next = time.Now().Add(pause)
	cn.again = time.AfterFunc(pause, func() {
		cn.mu.Lock()
		defer cn.mu.Unlock()
		if cn.phase == status.Faulted && cn.ownership.reconnects() {
			cn.begin(ctx)
		}
		cn.again = nil
	})
}

// ready returns the connection. While the endpoint is connecting again it waits for
// that, unless the circuit is open; a call that tries a half-open one does not wait
// for the pause to end either. waited says that the server may offer other things now.
func (cn *connector) ready(ctx context.Context, trial bool) (l *link.Link, waited bool, err error) {
	cn.mu.RLock() // as nearly always, so that calls do not wait for each other
	l = cn.usable()
	cn.mu.RUnlock()
	if l != nil {
		return l, false, nil
	}
	var late <-chan time.Time
	for {
		cn.mu.Lock()
		if l := cn.usable(); l != nil {
			cn.mu.Unlock()
			return l, waited, nil
		}
		if cn.phase == status.Faulted && cn.cfg.Broken == "" && (trial && !waited || cn.again == nil) {
			cn.begin(ctx)
		}
		turn, f := cn.turn, cn.notReady()
		coming := cn.mayConnect()
		cn.mu.Unlock()
		if !coming {
			return nil, waited, f
		}
		if until := cn.circuit.OpenUntil(); !trial && !until.IsZero() {
			return nil, waited, cn.circuitFault(until)
		}
		if late == nil {
			timer := time.NewTimer(waitReady)
			defer timer.Stop()
			late, waited = timer.C, true
		}
		select {
		case <-turn:
		case <-late:
			cn.mu.Lock()
			defer cn.mu.Unlock()
			return nil, waited, cn.notReady() // as it is by now
		case <-ctx.Done():
			return nil, waited, ctx.Err()
		}
	}
}

// relist reads the listing anew, which the server announced to have changed.
func (cn *connector) relist(ctx context.Context, l *link.Link, announced time.Time) {
	ctx, cancel := context.WithTimeout(ctx, cn.cfg.ConnectTimeout)
	defer cancel()
	cn.ownership.relist(ctx, l, announced)
}

// errRenewed is why a connection ended whose owner has gone.
var errRenewed = errors.New("the client whose process it was has gone")
