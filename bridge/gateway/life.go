package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Start begins to connect the servers, and does not wait for them: a listing
// does, for a while.
func (g *Gateway) Start(ctx context.Context) {
	g.fleet.Start(ctx)
	if g.jobs.Runner != nil {
		g.serving.Go(func() { g.jobs.Run(g.life) })
	}
	if g.asking != nil {
		g.serving.Go(func() { g.asking.Run(g.life) })
	}
}

// Connect connects the servers and waits until each is ready or faulted, and no module
// is compiled any more. Of a gateway that is shutting down or closed the error is [ErrDraining].
func (g *Gateway) Connect(ctx context.Context) error {
	if g.draining.Load() {
		return ErrDraining
	}
	err := g.fleet.Connect(ctx)
	select {
	case <-g.locals.compiling.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drain refuses new requests and waits for those under way, or for ctx. Calls that
// wait for a person are refused: the answer would come too late. Jobs that still run
// then are cancelled.
func (g *Gateway) Drain(ctx context.Context) error {
	g.draining.Store(true)
	g.host.Refuse()
	if g.asking != nil {
		g.asking.Close(ctx)
	}
	g.calls.Close()
	var work sync.WaitGroup
	if g.jobs.Runner != nil {
		work.Go(func() { g.jobs.Drain(ctx) }) // while the host drains, because some of its calls wait for jobs
	}
	err := errors.Join(g.host.Drain(ctx), g.calls.Drain(ctx))
	work.Wait()
	return err
}

// Close refuses new calls, ends those under way with all servers and sessions, and closes the log
// when each of them has its record, or ctx ends: then the error says how many have none.
// [Gateway.Drain] first lets calls end by themselves. Calls that ignore the end of their context go
// on after the gateway is closed. Close may be called again, also with a context that has ended.
func (g *Gateway) Close(ctx context.Context) error {
	g.draining.Store(true)
	if g.host != nil {
		g.host.Refuse()
	}
	g.calls.Close()
	g.end()
	var errs []error
	if g.jobs.Runner != nil {
		errs = append(errs, g.jobs.Close(ctx))
	}
	if g.fleet != nil {
		errs = append(errs, g.fleet.Close())
	}
	errs = append(errs, g.ended(ctx), g.machine.close(ctx))
	if g.jobs.store != nil {
		errs = append(errs, g.jobs.store.Close())
	}
	if g.journal.audit != nil {
		errs = append(errs, g.journal.audit.Close())
	}
	return errors.Join(errs...)
}

// endsAtOnce is how long what has nothing to wait for may take to end.
const endsAtOnce = time.Second

// ended waits until nothing is under way, or for ctx.
func (g *Gateway) ended(ctx context.Context) error {
	done := make(chan struct{})
	forever := context.WithoutCancel(ctx)
	go func() { // ends with the last call
		defer close(done)
		if g.asking != nil {
			g.asking.Close(forever)
		}
		if g.host != nil {
			g.host.Close()
			_ = g.host.Drain(forever) // has no other error than that of its context
		}
		_ = g.calls.Drain(forever)
		g.serving.Wait()
		if g.agents != nil {
			g.agents.Wait()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	if n := g.underWay(); n > 0 {
		return fmt.Errorf("%d calls and requests did not end in time, and the audit log has no end of them: %w", n, ctx.Err())
	}
	select {
	case <-done:
		return nil
	case <-time.After(endsAtOnce):
		return ctx.Err()
	}
}

// underWay is how many calls and requests of clients have begun and not ended.
func (g *Gateway) underWay() int {
	n := g.calls.Count()
	if g.host != nil {
		n += g.host.UnderWay()
	}
	return n
}
