package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// PeerChanged says that the roots of the client of a session have changed.
func (f *Fleet) PeerChanged(k gate.SessionKey) {
	for _, m := range f.snapshot() {
		if m.endpoint != nil {
			m.endpoint.RootsChanged(k)
		}
	}
}

// EndSession closes the connections that a session has of its own, and forgets what it
// wants to be told. It does not wait.
func (f *Fleet) EndSession(k gate.SessionKey) {
	f.levels.Set(k, 0)
	for _, m := range f.snapshot() {
		if m.endpoint != nil {
			m.endpoint.EndSession(k)
		}
	}
}

// OnNotice has notify told what servers say outside of calls. It is called once, before the
// servers are connected. notify must not block.
func (f *Fleet) OnNotice(notify func(mcp.Notice)) { f.onNotice.Store(&notify) }

func (f *Fleet) notify(n mcp.Notice) {
	if tell := f.onNotice.Load(); tell != nil {
		if n.Method == mcp.MethodUpdated {
			params, err := f.catalog.Load().more.translated(n.Server, n.Params, true)
			if err != nil {
				return // of a URI that a client has subscribed to
			}
			n.Params = params
		}
		(*tell)(n)
	}
}

// SetLevel sets the severity from which on a session wants the log messages of servers, in the
// words of MCP; "" is none. Servers that take a level get it in the background.
func (f *Fleet) SetLevel(ctx context.Context, k gate.SessionKey, level string) error {
	from := mcp.SeverityOf(level)
	if from == 0 && level != "" {
		return errors.New("no such level")
	}
	f.levels.Set(k, from)
	for _, m := range f.snapshot() {
		if m.endpoint != nil && from > 0 {
			m.endpoint.SetLevel(ctx, k, from)
		}
	}
	return nil
}

// Unsubscribe ends the subscription to a resource that a call of the given ID has made.
func (f *Fleet) Unsubscribe(ctx context.Context, call, uri string) error {
	uri = plainURI(uri)
	for _, one := range append([]string{uri}, listing.Spellings(uri)...) {
		for _, m := range f.snapshot() {
			if m.endpoint != nil && m.endpoint.Unsubscribe(ctx, call, one) {
				return nil
			}
		}
	}
	return fmt.Errorf("no server has a subscription to %q that call %s made", uri, call)
}
