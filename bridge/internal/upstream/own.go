package upstream

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// allCapabilities are declared on a connection that is shared, so that the server lists
// what it has for clients with any of them.
var allCapabilities = gate.MustDoc(`{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`)

// declared returns what the client of a call can be asked; absent if that is nothing.
func declared(c *gate.Call) gate.Doc {
	if c.Peer == nil {
		return gate.Doc{}
	}
	return mcp.PeerCapabilities(c.Peer.Capabilities())
}

// declares returns the capabilities that the server is told of.
func (e *Endpoint) declares() gate.Doc {
	switch {
	case e.audience != nil:
		return e.audience.capabilities
	case e.cfg.Sessions == SessionsShared:
		return noCapabilities
	default:
		return allCapabilities
	}
}

// owns reports whether a call is made over a connection of its client's own. Servers of
// [mcp.Stateless] over HTTP need none: they ask with their answers.
func (e *Endpoint) owns(c *gate.Call) bool {
	switch {
	case e.audience != nil || e.cfg.Sessions == SessionsShared:
		return false
	case e.apart():
		return true
	case declared(c).IsZero():
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.link == nil || !e.link.dialect.asksByAnswers()
}

// apart reports whether the clients of the server have a connection each, whatever they
// are capable of.
func (e *Endpoint) apart() bool {
	return e.cfg.Personal || e.cfg.Sessions == SessionsOwn || e.cfg.Command != "" && e.cfg.Sessions != SessionsShared
}

// invokeOwn carries out a call over its client's own connection.
func (e *Endpoint) invokeOwn(ctx context.Context, p gate.Permit, c *gate.Call) (gate.Result, error) {
	if err := e.admitted(ctx, p, c); err != nil {
		return gate.Result{}, err
	}
	a, err := e.audiences.take(e, c)
	if err != nil {
		return gate.Result{}, err
	}
	defer e.audiences.giveBack(a)
	if a.endpoint == e { // the spare
		return e.invoke(ctx, p)
	}
	return a.endpoint.Invoke(ctx, p)
}

// connectOwn connects a client's own endpoint, which nothing else does: the server may
// ask its client something at once, and only within a call it can.
func (e *Endpoint) connectOwn(ctx *pace.Deadline) error {
	if e.audience == nil || e.Phase() != Idle && e.FirstAttempt() == nil { // faulted: see ready
		return nil
	}
	if err := e.Connect(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &Fault{NotConnected, e.cfg.Server, "call", err}
	}
	ctx.Extend()
	return nil
}

// ownFor returns an endpoint to the same server for one audience.
func (e *Endpoint) ownFor(a *audience) *Endpoint {
	own := newEndpoint(e.cfg)
	if !a.pooled {
		own.cfg.Log = e.cfg.Log.With("session", a.session.ID)
	}
	own.audience, own.levels, own.tell = a, e.levels, e.tell
	own.observe = e.observeOwn
	return own
}

// mostAudiences is how many connections may belong to a client each.
func (e *Endpoint) mostAudiences() int {
	switch {
	case e.cfg.Personal:
		return maxPersonal
	case e.cfg.Command == "":
		return MaxAudiences
	case e.cfg.Processes > 0:
		return e.cfg.Processes
	}
	return MaxProcesses
}

// errAudiences is the cause of a fault for want of connections.
var errAudiences = errors.New("every connection that the server may have for a client alone is in use")

// tooMany is the fault of a call for which there is no connection.
func (e *Endpoint) tooMany() *Fault {
	err := errAudiences
	if e.cfg.Command != "" {
		err = &processesError{e.mostAudiences()}
	}
	return &Fault{Busy, e.cfg.Server, "connect", err}
}

// renew starts the process that lists anew, for the next owner: what the last one has left
// there is nobody else's.
func (e *Endpoint) renew(s *audiences) {
	e.mu.Lock()
	l := e.link
	e.mu.Unlock()
	if l != nil {
		l.peer.Fail(errRenewed)
		<-l.ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = nil
}

// errRenewed is why a connection ended whose owner has gone.
var errRenewed = errors.New("the client whose process it was has gone")

// prepare makes a connection what a call needs it to be.
func (e *Endpoint) prepare(ctx context.Context, l *link, of *underway.Call) {
	a := e.audience
	if a == nil {
		from := of.Level
		if others := e.levels.lowest(); from == 0 || others > 0 && others < from {
			from = others
		}
		l.dialect.tune(ctx, from, true)
		return
	}
	l.dialect.tune(ctx, of.Level, false)
	if !of.Call.Detached && a.owner.takeNews(a) && l.peer.Tell(ctx, mcp.MethodRootsChanged, "{}") == nil {
		l.dialect.greet(ctx)
	}
}

// onBehalf returns the call on whose behalf the server asks something: the one whose
// stream the request came on, or else the foremost of the client whose connection it is. A
// server on stdio does not say for which of several it asks, and a client that waits for its
// call answers, which it could not if a job or task beside it were asked.
func (e *Endpoint) onBehalf(of *underway.Call) *underway.Call {
	switch {
	case e.audience == nil:
		return nil // clients share the connection
	case of != nil:
		return of
	default:
		return e.under.Foremost()
	}
}

// asker returns the call on whose behalf the server asks something: that of the task which
// it names, and which the connection must have; else see onBehalf.
func (e *Endpoint) asker(of *underway.Call, params gate.Doc) *underway.Call {
	related := params.Get("_meta").Get(mcp.MetaRelatedTask)
	if related.IsZero() || e.audience == nil {
		return e.onBehalf(of)
	}
	return e.under.ByTask(related.Get("taskId").Text())
}

// RootsChanged says that the roots of the client of a session have changed.
func (e *Endpoint) RootsChanged(k gate.SessionKey) { e.audiences.rootsChanged(k) }

// EndSession closes the connections that a session has of its own. It does not wait.
func (e *Endpoint) EndSession(k gate.SessionKey) { e.audiences.end(k) }

// errNotTheirs is the cause of a fault of a call whose connection would be another's.
var errNotTheirs = errors.New("the connection belongs to somebody else than the caller")

// admitted returns why a call cannot have a connection of its principal's own. Nothing is
// connected for somebody who has no credential.
func (e *Endpoint) admitted(ctx context.Context, p gate.Permit, c *gate.Call) error {
	if !e.cfg.Personal {
		return nil
	}
	if c.Who == nil || c.Who.Owner != c.Audience().Owner {
		return &Fault{Credential, e.cfg.Server, "call", errNotTheirs}
	}
	_, err := e.cfg.Authorize(ctx, c.Who, p, nil)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &Fault{Credential, e.cfg.Server, "call", &wire.Unauthorized{Err: err}}
}
