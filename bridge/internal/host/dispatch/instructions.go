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
func (d *Dispatcher) instructionsFor(ctx context.Context, p sessions.Client) string {
	if d.cfg.Instructions == nil || d.cfg.Known == nil {
		return ""
	}
	all := d.cfg.Instructions()
	if len(all) == 0 {
		return ""
	}
	offered, err := d.serversOffered(ctx, p)
	if err != nil {
		d.cfg.Log.Error("listing failed", "principal", p.Who.ID, "error", err)
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

// serversOffered returns the servers that offer a client anything now. It does not wait for servers
// that are connecting.
func (d *Dispatcher) serversOffered(ctx context.Context, p sessions.Client) (map[string]bool, error) {
	servers := make(map[string]bool)
	for _, one := range message.Listings {
		offered, err := d.cfg.Known(ctx, p.Who, one.Feature)
		if err != nil {
			return nil, err
		}
		for _, t := range within(p.Groups, offered) {
			servers[t.Name.Server] = true
		}
	}
	return servers, nil
}
