package fleet

import (
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// OwnerHost stands for the program that embeds the gateway, as the owner of names.
const OwnerHost = "host"

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
