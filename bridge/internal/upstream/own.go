package upstream

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// AlwaysOwn reports whether the clients of the server have a connection each, whatever they
// are capable of.
func (e *Endpoint) AlwaysOwn() bool {
	return e.cfg.Personal || e.cfg.Sessions == options.SessionsOwn || e.cfg.Command != "" && e.cfg.Sessions != options.SessionsShared
}

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
	own.ownership, own.levels, own.notify = owned{own, a}, e.levels, e.notify
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

// errRenewed is why a connection ended whose owner has gone.
var errRenewed = errors.New("the client whose process it was has gone")

// RootsChanged says that the roots of the client of a session have changed.
func (e *Endpoint) RootsChanged(k gate.SessionKey) { e.audiences.rootsChanged(k) }

// EndSession closes the connections that a session has of its own. It does not wait.
func (e *Endpoint) EndSession(k gate.SessionKey) { e.audiences.end(k) }

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
