package upstream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/gate"
)

// listed is what the server lists, as it is offered.
type listed struct {
	*life
	reader  *reader
	methods []*gate.Tool // which stand for the methods that MCP does not have and the server does
	memory  Memory       // nil keeps nothing
	recalls bool
	late    func(shared []gate.Doc) []gate.Doc // returns the tools that only own connections list

	joining   sync.Mutex         // one listing after the other is put together
	declaring sync.Mutex         // one declaration after the other is observed
	declared  status.Declaration // the last one of all that the server lists
}

// Lookup implements [gate.Upstream]. A name that is not known may be so because
// the server cannot be reached. It is not waited for: the time that the answer takes
// would tell of a server.
func (ls *listed) Lookup(_ context.Context, action gate.Action, name string) (*gate.Tool, error) {
	ls.mu.RLock()
	tools := ls.tools
	ls.mu.RUnlock()
	return tools.Lookup(action, name)
}

// Features implements [gate.Upstream]: an endpoint alone offers tools.
func (ls *listed) Features(ctx context.Context, f gate.Feature) []*gate.Tool {
	if f != gate.FeatureTool {
		return nil
	}
	return ls.Tools(ctx)
}

// Tools returns the server's tools. The tools of a server that is faulted are
// those it had.
func (ls *listed) Tools(context.Context) []*gate.Tool {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	return ls.tools.All
}

// ListedFeatures returns what the server lists in addition to tools; nil if that is not known.
func (ls *listed) ListedFeatures() *listing.Features {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	return ls.tools.Features
}

// Methods returns what stands for the methods that MCP does not have and the server does.
func (ls *listed) Methods() []*gate.Tool { return ls.methods }

// Offers reports why a call that was permitted for a tool must not be made, since
// the tool has become another one while it was decided.
func (ls *listed) Offers(t *gate.Tool) error {
	if t.Feature == gate.FeatureMethod && !slices.Contains(ls.cfg.Methods, t.Local) {
		return fault.New(fault.NotConnected, ls.cfg.Server, "call", &fault.NotConnectedError{Words: "the server has the method no more"})
	}
	if t.Feature != gate.FeatureTool {
		return nil
	}
	ls.mu.RLock()
	now, known := ls.tools.ByName[t.Name.String()]
	ls.mu.RUnlock()
	if known && now.Digest == t.Digest {
		return nil
	}
	return fault.New(fault.NotConnected, ls.cfg.Server, "call", &fault.NotConnectedError{Words: "the server has changed the tool since it was listed; list the tools and call again"})
}

// offer has a listing of the shared connection seen and offered, with the tools of own
// connections. The caller holds joining.
func (ls *listed) offer(l *link.Link, shared, tools *listing.Tools, announced time.Time) {
	ls.observes(ls.declaration(l, tools, announced))
	ls.mu.Lock()
	other := ls.link == l && !tools.Same(ls.tools)
	if ls.link == l {
		ls.shared, ls.tools = shared, tools
	}
	ls.mu.Unlock()
	if other {
		ls.changed()
		ls.keep(l, shared)
	}
}

// joined returns what the shared connection lists together with what own ones have beyond
// it.
func (ls *listed) joined(l *link.Link, tools *listing.Tools) *listing.Tools {
	late := ls.late(tools.Listed)
	if late == nil {
		return tools
	}
	all := ls.reader.toolsOf(l, slices.Concat(tools.Listed, late))
	all.Features = tools.Features
	all.LinkPages()
	return all
}

// join has the tools listed that there are now, after an own connection has told of its
// own, or has ended.
func (ls *listed) join() {
	ls.joining.Lock()
	defer ls.joining.Unlock()
	ls.mu.Lock()
	l, shared := ls.link, ls.shared
	ls.mu.Unlock()
	if l != nil && shared != nil { // else the listing is made anew, with these
		ls.offer(l, shared, ls.joined(l, shared), time.Now())
	}
}

func (ls *listed) declaration(l *link.Link, tools *listing.Tools, announced time.Time) status.Declaration {
	d := ls.cfg.declarationOf(tools)
	d.TLSKey, d.Instructions, d.Announced = l.TLSKey, l.Instructions, announced
	return d
}

// Declared returns what the server has declared last, also definitions of tools that are
// quarantined.
func (ls *listed) Declared() status.Declaration {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	d := status.Declaration{Server: ls.cfg.Server, Config: &ls.cfg.Endpoint, Tools: ls.tools.Listed}
	d.Own = make([]bool, len(d.Tools))
	addFeatures(&d, ls.tools.Features)
	switch {
	case ls.link != nil:
		d.Instructions, d.TLSKey = ls.link.Instructions, ls.link.TLSKey
	case ls.recalled != nil:
		d.Instructions, d.TLSKey = ls.recalled.Instructions, ls.recalled.TLSKey
	}
	return d
}

// observes has a listing seen, and keeps it for [listed.observeOwn].
func (ls *listed) observes(d status.Declaration) {
	ls.declaring.Lock()
	defer ls.declaring.Unlock()
	ls.declared = d
	ls.observe(d)
}

// observeOwn sees what is at the other end of a client's own connection: it is to be the
// server whose tools were listed, and if it is another program, or has another key, none
// of them is approved any more.
func (ls *listed) observeOwn(d status.Declaration) {
	ls.declaring.Lock()
	known := ls.declared
	if known.Config != nil {
		known.TLSKey, known.Announced = d.TLSKey, time.Time{}
		ls.observe(known)
	}
	ls.declaring.Unlock()
	ls.changed()
}
