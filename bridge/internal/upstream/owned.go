package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/gate"
)

// owned is the ownership of a connection that belongs to one client, which the server can ask
// on it while a call is under way. What is offered is what the shared connection lists.
type owned struct {
	of       *caller
	audience *audience
}

var _ ownership = owned{}

func (o owned) capabilities() gate.Doc { return o.audience.capabilities }

// reports is false: those of single clients come and go, and what every process of a server
// says is worth one line.
func (owned) reports() bool { return false }

func (o owned) list(ctx context.Context, l *link.Link) (_ *listing.Tools, err error) {
	if o.of.cfg.Command != "" {
		err = l.ListDeclared(ctx)
	}
	return new(listing.Tools), err
}

func (o owned) opened(ctx context.Context, l *link.Link) {
	if !o.audience.asked() {
		return
	}
	l.Dialect.Greet(ctx)
	if of := o.of.calls.Foremost(); of != nil && of.Call.Reach().Detached { // its question for roots may be unanswered
		o.audience.owner.mu.Lock()
		o.audience.rootsChanged = true
		o.audience.owner.mu.Unlock()
	}
}

// relist shows what is listed to the endpoint that lists.
func (o owned) relist(ctx context.Context, l *link.Link, _ time.Time) {
	raw, _, err := l.List(ctx, "tools/list", "tools")
	if err != nil {
		o.of.cfg.Log.Warn("listing failed", "error", err)
		return // the old listing stays
	}
	l.SetDeclared(raw)
	o.audience.owner.keepListed(o.audience, raw)
}

func (owned) listsFeatures() bool { return false }

func (owned) owns(*gate.Call) bool { return false }

// connect connects it: the server may ask its client something at once, and only within a
// call it can. The time of the start is none of the call's.
func (o owned) connect(ctx context.Context, of *underway.Call) error {
	o.of.mu.RLock()
	connects := o.of.phase == status.Idle || o.of.starts()
	o.of.mu.RUnlock()
	if !connects || !of.Hold() { // faulted: see ready
		return nil
	}
	defer of.Release()
	if err := o.of.Connect(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fault.New(fault.NotConnected, o.of.cfg.Server, "call", err)
	}
	return nil
}

// reconnects is true only while a call waits for the connection, because only then can the client
// be asked something.
func (o owned) reconnects() bool { return o.of.calls.Foremost() != nil }

func (o owned) approves(ctx context.Context, l *link.Link, t *gate.Tool, _ bool) error {
	return l.CheckDeclared(ctx, o.of.cfg.Server, t)
}

func (o owned) prepare(ctx context.Context, l *link.Link, of *underway.Call) {
	l.Dialect.Tune(ctx, of.Level, false)
	if !of.Call.Reach().Detached && o.audience.owner.takeRootsChanged(o.audience) && l.Peer.Tell(ctx, mcp.MethodRootsChanged, "{}") == nil {
		l.Dialect.Greet(ctx)
	}
}

// caller is always the principal whose connection it is, if each has a connection with a credential
// of their own.
func (o owned) caller(p gate.Permit) (who *gate.Principal, _ gate.Permit) {
	if call, _, ok := p.Open(); ok {
		who = call.Who
	}
	if o.of.cfg.Personal && (who == nil || who.Owner != o.audience.who.Owner) {
		return o.audience.who, gate.Permit{}
	}
	return who, p
}

// asker is the call of the task that the server names, which this connection must have; or else the
// one whose stream the request came on, or the foremost. A server on stdio does not say for which
// of several calls it asks. A client that waits for its call can answer, but could not if a job or
// task that runs at the same time were asked.
func (o owned) asker(of *underway.Call, params gate.Doc) *underway.Call {
	if related := params.Get("_meta").Get(mcp.MetaRelatedTask); !related.IsZero() {
		return o.of.calls.ByTask(related.Get("taskId").Text())
	}
	if of != nil {
		return of
	}
	return o.of.calls.Foremost()
}

func (o owned) logger(*link.Link) *underway.Call { return o.of.calls.Foremost() }

// logged tells the client of the session.
func (o owned) logged(how mcp.Severity, params gate.Doc) {
	if o.audience.pooled {
		return
	}
	if from := o.of.levels.Session(o.audience.session); from > 0 && how >= from {
		o.of.notify(mcp.Notice{Server: o.of.cfg.Server, Session: o.audience.session, Method: mcp.MethodLog, Params: params})
	}
}
