package fleet

import (
	"bytes"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/gate"
)

// catalog is all tools at one time, immutable.
type catalog struct {
	tools  []*gate.Tool
	byName map[string]*gate.Tool    // by offered and by qualified name
	server map[string]gate.Upstream // by id
	notes  map[string][]status.Note // by id
	held   []*gate.Tool             // quarantined for their names; not in tools
	more   *features                // what servers offer in addition to tools
	taken  []string                 // names that are the host's own

	conflicts []status.Conflict
}

// rebuild makes the catalog anew and notifies the watchers.
func (f *Fleet) rebuild() {
	f.mu.Lock()
	old, now := f.catalog.Load(), newCatalog(f.roster.members, &f.cfg, &f.mentions)
	f.catalog.Store(now)
	watchers := slices.Collect(maps.Values(f.watchers))
	close(f.turn)
	f.turn = make(chan struct{})
	f.mu.Unlock()
	now.logHeld(old, f.cfg.Log)
	changed := now.since(old)
	for _, w := range watchers {
		w(changed)
	}
}

// since compares what is listed with what was.
func (c *catalog) since(old *catalog) status.Lists {
	if old == nil { // the first
		return status.Lists{Tools: true, Prompts: true, Resources: true}
	}
	prompts := func(c *catalog) []*gate.Tool {
		if c.more.prompts == nil {
			return nil
		}
		return c.more.prompts.tools
	}
	skills := !slices.EqualFunc(c.more.skills.listed(), old.more.skills.listed(), listedAlike)
	pages := !slices.EqualFunc(c.more.pages, old.more.pages, listedAlike)
	return status.Lists{
		Tools:     pages || !slices.EqualFunc(c.tools, old.tools, listedAlike),
		Prompts:   !slices.EqualFunc(prompts(c), prompts(old), listedAlike),
		Resources: pages || skills || !slices.EqualFunc(c.more.resources, old.more.resources, listedAlike) || !slices.EqualFunc(c.more.listed, old.more.listed, listedAlike),
	}
}

// listedAlike reports whether two tools are the same for clients, and for policies that decide what
// clients are offered.
func listedAlike(a, b *gate.Tool) bool {
	return a == b || a.Name == b.Name && a.Offered == b.Offered && a.Digest == b.Digest && a.ModuleDigest == b.ModuleDigest && a.Pinned == b.Pinned && a.Quarantine == b.Quarantine &&
		slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Findings, b.Findings) && bytes.Equal(a.Definition.Raw(), b.Definition.Raw()) &&
		bytes.Equal(a.Capabilities.Raw(), b.Capabilities.Raw()) && bytes.Equal(a.Origin.Raw(), b.Origin.Raw())
}

// newCatalog joins the tools of all servers. Of two tools with one offered name
// the earlier keeps it; the later gets six hex digits of its digest, or else its
// server's name. One whose name looks like an earlier one's is quarantined.
func newCatalog(members []member, cfg *Config, said *mentions) *catalog {
	c := &catalog{byName: make(map[string]*gate.Tool), server: make(map[string]gate.Upstream), notes: make(map[string][]status.Note), taken: cfg.HostTools}
	for _, m := range members {
		c.server[m.id] = m.upstream
	}
	tools, names := pinned(members, cfg.Pins), newNames()
	said.note(tools, c)
	for _, one := range tools {
		if other, why := names.like(one.tool); other != nil {
			c.hold(one.member, one.tool, other, why)
			continue
		}
		names.add(one.tool)
		c.add(one.member, listing.Grouped(one.tool, cfg.Groups))
	}
	c.knowHeld()
	c.more = newFeatures(members, cfg.Groups, cfg.Pins, c.notes)
	c.more.apps = c.more.apps || slices.ContainsFunc(c.tools, func(t *gate.Tool) bool { return t.App != nil })
	return c
}

func (c *catalog) add(m member, t *gate.Tool) {
	if owner := c.owner(t.Offered); owner != "" {
		if t = c.yield(m, t, owner); t == nil {
			return
		}
	}
	c.tools = append(c.tools, t)
	c.byName[t.Offered] = t
	if _, clash := c.byName[t.Name.String()]; !clash {
		c.byName[t.Name.String()] = t
	}
}
