package fleet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
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

// owner returns the server that has a name, or [OwnerHost] if the host has it; "" if the name is
// free.
func (c *catalog) owner(name string) string {
	if slices.Contains(c.taken, name) {
		return OwnerHost
	}
	if t := c.byName[name]; t != nil {
		return t.Name.Server
	}
	return ""
}

// yield offers a tool by a free name, because another server has the tool's own name. It returns
// nil if there is no free name.
func (c *catalog) yield(m member, t *gate.Tool, owner string) *gate.Tool {
	its := *t
	its.Offered = ""
	for _, name := range []string{listing.Shorten(t.Offered+"_"+t.Digest[:6], t.Digest), listing.Shorten(t.Name.String(), t.Digest)} {
		if c.owner(name) == "" {
			its.Offered = name
			break
		}
	}
	conflict, note := newConflict(t, owner, t.Offered, its.Offered)
	c.conflicts, c.notes[m.id] = append(c.conflicts, conflict), append(c.notes[m.id], note)
	if its.Offered == "" {
		return nil
	}
	its.Definition = t.Definition.With("name", mcp.MustJSON(its.Offered))
	return &its
}

// hold keeps a tool only so that a client that asks for it learns why it cannot have it. The tool
// is not listed.
func (c *catalog) hold(m member, t, other *gate.Tool, why string) {
	held := *t
	held.Quarantine = fmt.Sprintf("its name looks like that of %s: %s", other.Name, why)
	c.held = append(c.held, &held)
	c.notes[m.id] = append(c.notes[m.id], status.Note{Feature: t.Feature, Tool: mcp.QuoteName(t.Local), Quarantined: true, Text: held.Quarantine + "; rename one of them, or disable a server"})
}

// knowHeld makes tools that are held findable by their names, unless another tool has the name.
func (c *catalog) knowHeld() {
	for _, t := range c.held {
		for _, name := range []string{t.Offered, t.Name.String()} {
			if c.byName[name] == nil {
				c.byName[name] = t
			}
		}
	}
}

// logHeld tells of the tools that are held and were not in the old catalog, which may be nil.
func (c *catalog) logHeld(old *catalog, log *slog.Logger) {
	for _, t := range c.held {
		known := old != nil && slices.ContainsFunc(old.held, func(o *gate.Tool) bool {
			return o.Name == t.Name && o.Local == t.Local && o.Quarantine == t.Quarantine
		})
		if !known {
			log.LogAttrs(context.Background(), slog.LevelWarn, "tool quarantined",
				slog.String("server", t.Name.Server), slog.String("tool", mcp.QuoteName(t.Local)), slog.String("error", t.Quarantine))
		}
	}
}
