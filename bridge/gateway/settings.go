package gateway

import (
	"slices"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/internal/match"
)

// settings are the parts of a [Config] that may change while calls run, other than its servers and
// modules.
type settings struct {
	groups  *atomic.Pointer[options.Groups]
	catalog *atomic.Pointer[CatalogMode]
	limits  *limits.Limits
	ofTools *atomic.Pointer[[]ToolLimit]
	atOnce  *perServer[int]    // calls at a server
	guests  *perServer[*Guest] // servers that are modules
	paused  *pauses
}

func newSettings(c Config) settings {
	s := settings{
		groups: new(atomic.Pointer[options.Groups]), catalog: new(atomic.Pointer[CatalogMode]), ofTools: new(atomic.Pointer[[]ToolLimit]),
		atOnce: newPerServer(c.Limits.Servers), guests: newPerServer[*Guest](nil), paused: new(pauses),
	}
	s.groups.Store(&c.Groups)
	s.catalog.Store(&c.Catalog)
	s.ofTools.Store(&c.Limits.Tools)
	for id, guest := range c.Guests {
		s.guests.set(id, &guest)
	}
	s.limits = limits.New(limits.Options{
		Concurrent: c.Limits.Concurrent, Session: c.Limits.Session, Wait: c.Limits.Wait,
		Server: func(id string) int { n, _ := s.atOnce.get(id); return n },
		Tool:   s.ofTool, Paused: s.paused.reason, Rates: c.Limits.Rates,
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

// setLimits puts the Concurrent, Session and Tools of l in place. Calls under way beyond a
// smaller limit go on; where there was no limit before, they do not count. See
// [limits.Limits.Change].
func (s *settings) setLimits(l Limits) {
	tools := slices.Clone(l.Tools)
	s.ofTools.Store(&tools)
	s.limits.Change(l.Concurrent, l.Session)
}

func (s *settings) catalogMode() CatalogMode { return *s.catalog.Load() }
