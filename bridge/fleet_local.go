package bridge

import (
	"fmt"
	"slices"
)

// AddLocal adds a server of functions while the fleet runs. An id that another server
// has is an error. [Fleet.Remove] takes it out again.
func (f *Fleet) AddLocal(l *Local) error {
	l.changed = func() { f.observe(l.declaration()); f.rebuild() }
	f.observe(l.declaration())
	f.mu.Lock()
	err := checkServers(f.members, l.server)
	switch {
	case err != nil:
	case f.closed:
		err = errClosed
	case slices.ContainsFunc(f.members, func(m member) bool { return m.id == l.server }):
		err = fmt.Errorf("server %s: there is one already", l.server)
	default:
		f.put(member{id: l.server, upstream: l, status: l.Status})
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	f.rebuild()
	return nil
}
