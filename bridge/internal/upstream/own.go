package upstream

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// invokeOwn carries out a call over its client's own connection.
func (e *Endpoint) invokeOwn(ctx context.Context, p gate.Permit, c *gate.Call) (gate.Result, error) {
	if err := e.checkCredential(ctx, p, c); err != nil {
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

// ownFor returns an endpoint to the same server for one audience.
func (e *Endpoint) ownFor(a *audience) *Endpoint {
	own := newEndpoint(e.cfg)
	if !a.pooled {
		own.cfg.Log = e.cfg.Log.With("session", a.session.ID)
	}
	own.ownership, own.levels, own.notify = owned{own.caller, a}, e.levels, e.notify
	own.observe = e.observeOwn
	return own
}

// errAudiences is the cause of a fault if there is no free connection.
var errAudiences = errors.New("all connections to the server that belong to single clients are in use; try again later")

// tooMany is the fault of a call for which there is no connection.
func tooMany(processes bool, server string, most int) *fault.Fault {
	err := errAudiences
	if processes {
		err = &fault.ProcessesError{Most: most}
	}
	return fault.New(fault.Busy, server, "connect", err)
}

// renew starts the listing process again for the next owner, so that what the last owner has left
// in it reaches no other client.
func (e *Endpoint) renew(s *audiences) {
	e.mu.Lock()
	l := e.link
	e.mu.Unlock()
	if l != nil {
		l.Peer.Fail(errRenewed)
		<-l.Ended()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = nil
}

// errNotTheirs is the cause of a fault of a call whose connection would be another's.
var errNotTheirs = errors.New("the connection belongs to another client, not to the caller")

// checkCredential returns why a call cannot have a connection of its principal's own. Nothing is
// connected for a principal without a credential.
func (e *Endpoint) checkCredential(ctx context.Context, p gate.Permit, c *gate.Call) error {
	if !e.cfg.Personal {
		return nil
	}
	if c.Who == nil || c.Who.Owner != c.Audience().Owner {
		return fault.New(fault.Credential, e.cfg.Server, "call", errNotTheirs)
	}
	_, err := e.cfg.Authorize(ctx, c.Who, p, nil)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fault.New(fault.Credential, e.cfg.Server, "call", &wire.Unauthorized{Err: err})
}
