package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// Lookup implements [gate.Upstream]. While servers are connecting, a name that
// nobody has yet may still become known, so that it waits for them. Of a server
// that has announced changes it waits for the listing.
func (f *Fleet) Lookup(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	if action != gate.CallTool {
		return f.lookupFeature(ctx, action, name)
	}
	c := f.catalog.Load()
	t, ok := c.byName[name]
	if !ok {
		f.settle(ctx)
		t, ok = f.catalog.Load().byName[name]
	} else if e, remote := c.server[t.Name.Server].(*Endpoint); remote && f.relisted(ctx, e) {
		t, ok = f.catalog.Load().byName[name]
	}
	if !ok {
		return nil, fmt.Errorf("tool %q: %w", name, gate.ErrUnknown)
	}
	return t, nil
}

// relisted waits, for at most SettleTimeout, for the listing that a server has
// announced, and reports whether there was one to wait for.
func (f *Fleet) relisted(ctx context.Context, e *Endpoint) bool {
	if !e.announced() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.SettleTimeout)
	defer cancel()
	e.relisted(ctx)
	return true
}

// Invoke implements [gate.Upstream].
func (f *Fleet) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	_, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, errNoPermit
	}
	for range maxReplaced {
		up, ok := f.catalog.Load().server[tool.Name.Server]
		if !ok {
			return gate.Result{}, &Fault{NotConnected, tool.Name.Server, "call", errors.New("the server was removed")}
		}
		e, remote := up.(*Endpoint)
		if !remote {
			return up.Invoke(ctx, p)
		}
		if e.uses.begin() {
			defer e.uses.end()
			if err := e.offers(tool); err != nil {
				return gate.Result{}, err
			}
			res, err := e.Invoke(ctx, p)
			if err != nil {
				return res, err
			}
			res.Doc, err = f.catalog.Load().more.translated(tool.Name.Server, res.Doc)
			return res, err
		}
	}
	return gate.Result{}, &Fault{NotConnected, tool.Name.Server, "call", errors.New("the server is being replaced again and again")}
}

// maxReplaced is how many replacements of its server a call follows. One takes the
// time that connecting takes; more than that is a fault.
const maxReplaced = 8

// offers reports why a call that was permitted for a tool must not be made, since
// the tool has become another one while it was decided.
func (e *Endpoint) offers(t *gate.Tool) error {
	if t.Feature == gate.FeatureMethod && !slices.Contains(e.cfg.Methods, t.Local) {
		return &Fault{NotConnected, e.cfg.Server, "call", errors.New("the server has the method no more")}
	}
	if t.Feature != gate.FeatureTool {
		return nil
	}
	e.mu.Lock()
	now, known := e.tools.byName[t.Name.String()]
	e.mu.Unlock()
	if known && now.Digest == t.Digest {
		return nil
	}
	return &Fault{NotConnected, e.cfg.Server, "call", errors.New("the tool has changed since the call was permitted; list the tools and call again")}
}
