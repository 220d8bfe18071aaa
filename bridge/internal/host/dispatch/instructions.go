package dispatch

import (
	"context"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
)

// maxAllInstructions bounds the instructions of all servers that a client gets, in bytes.
const maxAllInstructions = 32 << 10

// instructionsFor returns the instructions for a client that connects: those of the servers that
// offer it something.
func (b *backend) instructionsFor(ctx context.Context, p sessions.Client) string {
	if b.cfg.Instructions == nil || b.cfg.Known == nil {
		return ""
	}
	all := b.cfg.Instructions()
	if len(all) == 0 {
		return ""
	}
	offered, err := b.serversOffered(ctx, p)
	if err != nil {
		b.cfg.Log.Error("listing failed", "principal", p.Who.ID, "error", err)
		return ""
	}
	var text strings.Builder
	for _, one := range all {
		if !offered[one.Server] {
			continue
		}
		section := one.Text
		if len(offered) > 1 {
			section = "## " + one.Server + "\n\n" + section
		}
		if text.Len() > 0 {
			section = "\n\n" + section
		}
		if text.Len()+len(section) > maxAllInstructions {
			break // half of what a server says could say something else
		}
		text.WriteString(section)
	}
	return text.String()
}

// serversOffered returns the servers that offer a client anything now. It does not wait for servers
// that are connecting.
func (b *backend) serversOffered(ctx context.Context, p sessions.Client) (map[string]bool, error) {
	servers := make(map[string]bool)
	for _, one := range message.Listings {
		offered, err := b.cfg.Known(ctx, p.Who, one.Feature)
		if err != nil {
			return nil, err
		}
		for _, t := range within(p.Groups, offered) {
			servers[t.Name.Server] = true
		}
	}
	return servers, nil
}
