package gateway

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// phases are those of the servers as the audit log has them.
type phases struct {
	mu   sync.Mutex
	last map[string]bridge.Phase
}

// changed returns the servers that have become ready or faulted since it was last
// asked.
func (p *phases) changed(now []bridge.ServerStatus) (changed []bridge.ServerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[string]bridge.Phase)
	}
	for _, s := range now {
		if before := p.last[s.Server]; !s.Local && before != s.Phase && (s.Phase == bridge.Ready || s.Phase == bridge.Faulted) {
			p.last[s.Server] = s.Phase
			changed = append(changed, s)
		}
	}
	return changed
}

// noteServers records which servers have become ready or faulted.
func (g *Gateway) noteServers() {
	for _, s := range g.phases.changed(g.fleet.Status()) {
		entry := audit.Entry{Event: audit.Server, Server: s.Server, Code: "ok"}
		if s.Phase == bridge.Faulted {
			entry.Code, entry.Error = string(s.Fault), s.Error
		}
		if err := g.note(entry); err != nil {
			g.cfg.Log.Error("audit log not written", "server", s.Server, "error", err)
		}
	}
}
