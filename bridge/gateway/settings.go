package gateway

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/session"
)

// settings are what of a [Config] may change while calls run, beside its servers and
// modules.
type settings struct {
	groups  *atomic.Pointer[Groups]
	catalog *atomic.Pointer[CatalogMode]
	limits  *session.Limits
	ofTools *atomic.Pointer[[]ToolLimit]
	atOnce  *perServer[int]    // calls at a server
	guests  *perServer[*Guest] // servers that are modules

	jobsOffered bool // the tools of jobs are; changed with setting
}

func newSettings(c Config) settings {
	s := settings{
		groups: new(atomic.Pointer[Groups]), catalog: new(atomic.Pointer[CatalogMode]), ofTools: new(atomic.Pointer[[]ToolLimit]),
		atOnce: newPerServer(c.Limits.Servers), guests: newPerServer[*Guest](nil),
	}
	s.groups.Store(&c.Groups)
	s.catalog.Store(&c.Catalog)
	s.ofTools.Store(&c.Limits.Tools)
	for id, guest := range c.Guests {
		s.guests.set(id, &guest)
	}
	s.limits = session.NewLimits(session.LimitOptions{
		Concurrent: c.Limits.Concurrent, Session: c.Limits.Session, Wait: c.Limits.Wait,
		Server: func(id string) int { n, _ := s.atOnce.get(id); return n },
		Tool:   s.ofTool,
	})
	return s
}

// ofTool returns how many calls of a tool may be under way; zero sets no limit.
func (s *settings) ofTool(name string) int {
	for _, t := range *s.ofTools.Load() {
		if match.Pattern(t.Pattern).Matches(name) {
			return t.Concurrent
		}
	}
	return 0
}

func (s *settings) catalogMode() CatalogMode { return *s.catalog.Load() }

// SetGroups puts other groups in the place of Config.Groups, and tells the clients, which
// stay connected, as the servers do.
func (g *Gateway) SetGroups(groups Groups) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.noteSetting("groups"); err != nil {
		return err
	}
	g.groups.Store(&groups)
	g.fleet.Regroup(groups)
	return nil
}

// SetCatalog puts another mode in the place of Config.Catalog, and tells the clients.
func (g *Gateway) SetCatalog(mode CatalogMode) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	before := g.catalogMode()
	if err := mode.check(); err != nil || mode == before {
		return err
	}
	if err := g.noteSetting("catalog"); err != nil {
		return err
	}
	switch CatalogOff {
	case mode:
		if err := g.fleet.Remove(CatalogServer); err != nil {
			return err
		}
	case before:
		if err := g.addLocal(CatalogServer, g.catalogTools()); err != nil {
			return err
		}
	}
	g.catalog.Store(&mode)
	g.host.Changed()
	return nil
}

// addLocal offers tools of the gateway's own.
func (g *Gateway) addLocal(server string, tools []LocalTool) error {
	l, err := local.New(server, g.toolOptions(), tools...)
	if err != nil {
		return err
	}
	return g.fleet.AddLocal(l)
}

// Places returns how many calls are at upstreams, how many wait for a place there, and how many
// places there are.
func (g operator) Places() (taken, waiting, most int64) { return g.limits.Places() }

// setLimits puts the Concurrent, Session and Tools of l in place. Calls under way beyond a
// smaller limit go on; where there was no limit before, they do not count. See
// [session.Limits.Change].
func (g *Gateway) setLimits(l Limits) {
	tools := slices.Clone(l.Tools)
	g.ofTools.Store(&tools)
	g.limits.Change(l.Concurrent, l.Session)
}

// SetOrder lists the servers in the order of ids, those too that come later; the others,
// as those of functions, come first, as they came. Of two that have one resource, template or method, the first has it.
func (g *Gateway) SetOrder(ids []string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.noteSetting("order of servers"); err != nil {
		return err
	}
	g.fleet.Reorder(ids)
	return nil
}

// noteSetting records that the operator has changed something, before it is done.
func (g *Gateway) noteSetting(what string) error {
	if err := g.note(audit.Entry{Event: audit.Server, Code: gate.CodeOK, Reasons: []string{"configuration: " + what + " changed"}}); err != nil {
		return fmt.Errorf("%s: all stays as it was: %w", what, err)
	}
	return nil
}
