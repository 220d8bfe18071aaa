package gateway

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
)

// phases are those of the servers as the audit log has them.
type phases struct {
	mu   sync.Mutex
	last map[string]state
}

// A state is what the audit log has of a server: that it is ready or faulted, and whether it has
// failed so often that calls are not let through.
type state struct {
	phase status.Phase
	open  bool
}

// changed returns the servers that have become ready or faulted, or whose circuit has
// opened or closed, since it was last asked.
func (p *phases) changed(now []status.Server) (changed []status.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[string]state)
	}
	for _, s := range now {
		is := state{s.Phase, s.Circuit != ""}
		if !s.Local && p.last[s.Server] != is && (s.Phase == status.Ready || s.Phase == status.Faulted) {
			p.last[s.Server] = is
			changed = append(changed, s)
		}
	}
	return changed
}

// forget has the phase of a server told again.
func (p *phases) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, id)
}
