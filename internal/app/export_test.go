package app

import (
	"context"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/config"
)

// Reread reads the configuration anew, as when its files have changed.
func (a *App) Reread(ctx context.Context) error { return a.Settings.Reload(ctx) }

// PutRest puts in place what the files say about anything but how calls are checked.
func (a *App) PutRest(ctx context.Context) error {
	next, err := a.Settings.Config().Reread(config.Options{})
	if err != nil {
		return err
	}
	return a.Settings.PutRest(ctx, next)
}

// EndGateway ends the gateway, which records nothing then and refuses changes.
func (a *App) EndGateway(ctx context.Context) error { return a.gateway.Close(ctx) }

// RecordDenials puts what was refused until now into the audit log.
func (a *App) RecordDenials() { a.Callers.RecordDenials() }

// AskOnly is the client for issuers and authorization servers.
var AskOnly = callers.AskOnly

// Proxied is whom the proxy names in a request for a page.
func (a *App) Proxied(r *http.Request) (*gate.Principal, error) { return a.Callers.Proxied(r) }

// IssuerClient and LoginClients are those for one issuer, and for the servers of a configuration.
var IssuerClient = callers.IssuerClient

// LoginClients see [IssuerClient].
func LoginClients(c *config.Config) (all []*http.Client) {
	for _, s := range logins.Servers(c) {
		all = append(all, s.Client)
	}
	return all
}

// Public is the URL by which clients reach the gateway.
func (a *App) Public() string { return a.Callers.Public() }

// SetBodyTime sets how long the body of a request may take, before it runs.
func (a *App) SetBodyTime(d time.Duration) { a.bodyTime, a.Desk.BodyTime = d, d }

// SetLookAgain sets how often who has opened a stream is found out again, before there are streams.
func (a *App) SetLookAgain(d time.Duration) { a.Callers.LookAgain = d }

// Handler is what listens for MCP, and for browsers that log in.
func (a *App) Handler() http.Handler { return a.handler() }

// Bound returns what would decide whether an approval holds: the snapshot of the
// configuration, the revision of the policy, and the binding of a call of each tool.
func (a *App) Bound(ctx context.Context) (map[string]string, error) {
	if err := a.gateway.Connect(ctx); err != nil {
		return nil, err
	}
	all := map[string]string{"snapshot": translation.Snapshot(a.cfg), "policy": a.gateway.Operator().Policy().Revision()}
	for _, t := range a.gateway.Fleet().Tools(ctx) {
		all[t.Offered] = gate.Question{
			Query: gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local(), Args: gate.MustDoc("{}")}, Tool: t}, Revision: all["policy"],
		}.Binding()
	}
	return all, nil
}
