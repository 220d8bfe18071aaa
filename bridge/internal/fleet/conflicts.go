package fleet

import (
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// OwnerHost stands for the program that embeds the gateway, as the owner of names.
const OwnerHost = "host"

// Conflicts returns the names that more than one would offer, in the order of the
// servers that do not have them.
func (f *Fleet) Conflicts() []status.Conflict {
	c := f.catalog.Load()
	return slices.Concat(c.conflicts, c.more.prompts.conflicts, c.more.conflicts)
}

// newConflict returns a conflict about a name, and the note that tells of it.
func newConflict(t *gate.Tool, owner, name, offered string) (status.Conflict, status.Note) {
	c := status.Conflict{Feature: t.Feature, Name: name, Server: t.Name.Server, ShadowedBy: owner, Offered: offered, Resolution: "not offered"}
	if offered != "" {
		c.Resolution = "offered as " + offered
	}
	who := "server " + owner + ", which comes first, has"
	if owner == OwnerHost {
		who = "the host has a tool of its own by"
	}
	return c, status.Note{Feature: t.Feature, Tool: mcp.QuoteName(t.Local), Quarantined: offered == "", Text: fmt.Sprintf("%s, for %s %s", c.Resolution, who, mcp.QuoteName(name))}
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
