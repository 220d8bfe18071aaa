package gateway

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// pauses are the servers that carry out nothing new, "" for all; a set that is replaced as a whole.
type pauses struct {
	atomic.Pointer[map[string]bool]
}

func (p *pauses) load() map[string]bool {
	if set := p.Load(); set != nil {
		return *set
	}
	return nil
}

func (p *pauses) set(server string, paused bool) {
	set := maps.Clone(p.load())
	if set == nil {
		set = make(map[string]bool)
	}
	if delete(set, server); paused {
		set[server] = true
	}
	p.Store(&set)
}

// reason returns why no new call goes to a server, "" if calls do.
func (p *pauses) reason(server string) string {
	set := p.load()
	switch {
	case len(set) == 0:
		return ""
	case set[""]:
		return "the operator has paused the gateway"
	case set[server]:
		return fmt.Sprintf("the operator has paused server %s", server)
	}
	return ""
}

// Pause refuses every new call of a server, or of all if server is "", until [Operator.Resume].
// Calls under way end as they began. by names the requester, for the audit log. After an error the
// server is paused, but that is not recorded.
func (g Operator) Pause(server, by string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	g.settings.paused.set(server, true)
	return g.journal.notePause(server, "paused by "+by)
}

// Resume takes a pause back. The audit log has it before it is done.
func (g Operator) Resume(server, by string) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.journal.notePause(server, "resumed by "+by); err != nil {
		return fmt.Errorf("it stays paused: %w", err)
	}
	g.settings.paused.set(server, false)
	return nil
}

// Paused returns what is paused, sorted: servers, and "" for all.
func (g Operator) Paused() []string { return slices.Sorted(maps.Keys(g.settings.paused.load())) }
