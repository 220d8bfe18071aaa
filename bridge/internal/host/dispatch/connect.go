package dispatch

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// connectTime is how long a call waits for its person in a browser. Clients give up after
// a minute; who takes longer calls again.
const connectTime = 55 * time.Second

// connect has the caller of a call that was refused for want of a login log in, if the client
// can send its person to a page (MCP, client/elicitation, "URL Mode"), and carries the call out
// again. Consent is not the login yet: the call waits for that.
func (cr *carrier) connect(ctx context.Context, p sessions.Client, c *gate.Call, params gate.Doc, why error) (gate.Result, error) {
	if cr.cfg.Connect == nil {
		return gate.Result{}, why
	}
	url, ended := cr.cfg.Connect(c, why)
	if url == "" {
		return gate.Result{}, why
	}
	why = &elicit.LoginError{Err: why, URL: url}
	agreed, complete := false, func() {}
	switch ask := elicit.Page(c.Name, url); {
	case p.Stateless && params.Get("requestState").IsZero() && elicit.Pages(c.Meta.Get(mcp.MetaCapabilities)):
		return gate.Result{InputRequired: true, Doc: elicit.ToVisit(ask, cr.states.SealAs(sealed.Connect, c, nil, time.Now().Add(roundTime)))}, nil
	case p.Stateless:
		agreed = params.At("/inputResponses/"+elicit.ConnectKey).Get("action").Text() == "accept"
	case p.Asks() && elicit.Pages(p.Capabilities):
		id := rand.Text()
		answer, err := p.Channel.Request(ctx, elicit.Method, ask.With("elicitationId", mcp.MustJSON(id)))
		agreed = err == nil && answer.Get("action").Text() == "accept"
		complete = func() {
			p.Channel.Notify(ctx, "notifications/elicitation/complete", gate.MustDoc(`{}`).With("elicitationId", mcp.MustJSON(id)))
		}
	}
	if !agreed {
		return gate.Result{}, why
	}
	select {
	case <-ended:
		complete()
	case <-time.After(connectTime):
		return gate.Result{}, why
	case <-ctx.Done():
		return gate.Result{}, ctx.Err()
	}
	c.ID, c.Brought = gate.NewID(), gate.Brought{} // one that was refused is recorded already
	res, err := cr.carry(ctx, p, c, mcp.Without(params, "requestState", "inputResponses"))
	if url, _ := cr.cfg.Connect(c, err); url != "" { // the caller has not logged in there
		err = &elicit.LoginError{Err: err, URL: url}
	}
	return res, err
}
