package lock

import (
	"context"
	"strings"
)

// Share has what is seen first, and what [Pins.Approve] approves, kept in documents that several
// gateways share. The lockfile counts, too. What servers have declared is held against them as if
// it came now.
func (p *Pins) Share(shared Shared) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.store.shared = shared
	return p.renew()
}

// Approve approves digests at all gateways that share pins, and returns those that were not
// approved there before. [Pins.Reload] then takes them over here.
func (p *Pins) Approve(ctx context.Context, pins []Pin) (added []Pin, err error) {
	doc := p.store.shared(approvedName)
	err = doc.Change(ctx, func(raw []byte) (out []byte, err error) {
		f, err := Parse(doc.Name(), raw)
		if err == nil {
			out, added, err = f.adding(doc.Name(), pins)
		}
		if out == nil {
			out = raw
		}
		return out, err
	})
	return added, err
}

// Follow takes over what other gateways have seen and approved, as the names of changed documents
// say, and tries again to keep what could not be kept. By is who has approved what is new. It reports
// whether there was anything.
func (p *Pins) Follow(by string, changed []string) (took bool, err error) {
	approved := false
	var stale []string
	for _, name := range changed {
		server, seen := strings.CutPrefix(name, seenPrefix)
		if seen {
			stale = append(stale, server)
		}
		approved = approved || name == approvedName
	}
	if !approved && stale == nil && !p.Unkept() {
		return false, nil
	}
	return true, p.reload(by, stale)
}

// Unkept reports whether something that is shared could not be read or kept.
func (p *Pins) Unkept() bool {
	for _, s := range p.view.Load().servers {
		if s.unkept {
			return true
		}
	}
	return false
}
