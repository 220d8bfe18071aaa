package gateway

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// Pause refuses every new call of a server, or of all if server is "", until [operator.Resume].
// Calls under way end as they began. by names the requester, for the audit log. After an error the
// server is paused, but that is not recorded.
func (g operator) Pause(server, by string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	g.setPaused(server, true)
	return g.notePause(server, "paused by "+by)
}

// Resume takes a pause back. The audit log has it before it is done.
func (g operator) Resume(server, by string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.notePause(server, "resumed by "+by); err != nil {
		return fmt.Errorf("it stays paused: %w", err)
	}
	g.setPaused(server, false)
	return nil
}

// Paused returns what is paused, sorted: servers, and "" for all.
func (g operator) Paused() []string { return slices.Sorted(maps.Keys(g.paused.load())) }

func (g *Gateway) setPaused(server string, paused bool) {
	set := maps.Clone(g.paused.load())
	if set == nil {
		set = make(map[string]bool)
	}
	if delete(set, server); paused {
		set[server] = true
	}
	g.paused.Store(&set)
}

func (g *Gateway) notePause(server, what string) error {
	return g.note(audit.Entry{Event: audit.Server, Server: server, Code: codes.OK, Reasons: []string{what}})
}
