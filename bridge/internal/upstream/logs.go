package upstream

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/gate"
)

// logged takes a log message of the server, in the call of which it is if the transport
// tells. Where it does not, a message belongs to the call that alone is under way; on a
// client's own connection to the foremost one, or else to the client. One that could be
// several clients' is dropped: it could tell one of another.
func (e *Endpoint) logged(l *link, params gate.Doc, of *underway.Call) {
	how := mcp.SeverityOf(params.Get("level").Text())
	if how == 0 || params.Kind() != gate.Object {
		return
	}
	switch {
	case of != nil:
	case e.audience != nil:
		of = e.under.Foremost()
	case l.overHTTP() == nil:
		of = e.under.Only()
	}
	switch {
	case of != nil && of.Level > 0 && how >= of.Level:
		of.Log(params)
	case of == nil && e.audience != nil && !e.audience.pooled:
		if from := e.levels.session(e.audience.session); from > 0 && how >= from {
			e.tell(mcp.Notice{Server: e.cfg.Server, Session: e.audience.session, Method: mcp.MethodLog, Params: params})
		}
	}
}

// SetLevel tells the server what a session wants, over the connection that carries its
// calls. Whatever is not connected is told with the next call.
func (e *Endpoint) SetLevel(ctx context.Context, k gate.SessionKey, from mcp.Severity) {
	ctx = context.WithoutCancel(ctx)
	tune := func(one *Endpoint, atMost bool) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if l := one.link; l != nil && one.phase == Ready {
			one.wg.Go(func() { l.dialect.tune(ctx, from, atMost) })
		}
	}
	own := e.audiences.of(k)
	for _, a := range own {
		tune(a.endpoint, false)
	}
	if len(own) == 0 {
		tune(e, true)
	}
}
