package host

import (
	"context"
	"strings"
)

// maxAllInstructions bounds what a client is told of how servers are used, in bytes.
const maxAllInstructions = 32 << 10

// instructionsFor returns what a client that connects is told that the servers say of
// themselves of which it is offered something.
func (h *Host) instructionsFor(ctx context.Context, p client) string {
	if h.cfg.Instructions == nil || h.cfg.Known == nil {
		return ""
	}
	all := h.cfg.Instructions()
	if len(all) == 0 {
		return ""
	}
	offered, err := h.serversOffered(ctx, p)
	if err != nil {
		h.cfg.Log.Error("listing failed", "principal", p.who.ID, "error", err)
		return ""
	}
	var b strings.Builder
	for _, one := range all {
		if !offered[one.Server] {
			continue
		}
		text := one.Text
		if len(offered) > 1 {
			text = "## " + one.Server + "\n\n" + text
		}
		if b.Len() > 0 {
			text = "\n\n" + text
		}
		if b.Len()+len(text) > maxAllInstructions {
			break // half of what a server says could say something else
		}
		b.WriteString(text)
	}
	return b.String()
}

// serversOffered returns the servers of which a client is offered anything now. None that
// is connecting is waited for.
func (h *Host) serversOffered(ctx context.Context, p client) (map[string]bool, error) {
	servers := make(map[string]bool)
	for _, one := range listings {
		offered, err := h.cfg.Known(ctx, p.who, one.feature)
		if err != nil {
			return nil, err
		}
		for _, t := range within(p.groups, offered) {
			servers[t.Name.Server] = true
		}
	}
	return servers, nil
}
