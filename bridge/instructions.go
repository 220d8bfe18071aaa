package bridge

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// Bounds of what servers say of how they are used, in bytes: of one, and of all that a
// client is told. It goes into the context of a model, with each conversation.
const (
	maxInstructions    = 8 << 10
	maxAllInstructions = 32 << 10
)

// Instructions are what a server says of how it is used, safe to be shown.
type Instructions struct{ Server, Text string }

// Instructions returns what the servers say of how they are used, in the order of
// configuration. What is not approved says nothing.
func (f *Fleet) Instructions() []Instructions {
	var all []Instructions
	for _, m := range f.snapshot() {
		if m.endpoint == nil {
			continue
		}
		said := m.endpoint.Declared().Instructions
		if said.Kind() != gate.String || f.cfg.Pins != nil && f.cfg.Pins.CheckInstructions(m.id, said) != nil {
			continue
		}
		text, _ := m.endpoint.cfg.Tools.Sanitizer.Sanitize(gate.Text{Server: m.id, Profile: "text", Text: clipped(said.Text(), maxInstructions)})
		if text = clipped(strings.TrimSpace(text), maxInstructions); text != "" {
			all = append(all, Instructions{m.id, text})
		}
	}
	return all
}

// clipped returns the beginning of s, of at most n bytes.
func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// instruct adds to the answer to a client that connects what the servers of which it is
// offered something say of themselves.
func (h *Host) instruct(ctx context.Context, p peerInfo, res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.InitializeResult:
		if r != nil {
			r.Instructions = h.instructionsFor(ctx, p)
		}
	case *mcp.DiscoverResult:
		if r != nil {
			r.Instructions = h.instructionsFor(ctx, p)
		}
	}
	return res
}

func (h *Host) instructionsFor(ctx context.Context, p peerInfo) string {
	if h.cfg.Instructions == nil {
		return ""
	}
	all := h.cfg.Instructions()
	if len(all) == 0 {
		return ""
	}
	offered, err := h.serversOffered(withoutWaiting(ctx), p)
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

// serversOffered returns the servers of which a client is offered anything.
func (h *Host) serversOffered(ctx context.Context, p peerInfo) (map[string]bool, error) {
	servers := make(map[string]bool)
	for _, one := range listings {
		if one.feature != gate.FeatureTool && h.cfg.Features == nil {
			continue
		}
		tools, err := h.listed(ctx, p, one.feature)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			servers[t.Name.Server] = true
		}
	}
	return servers, nil
}

// notWaiting is the key of a context in which a listing takes what is known now.
type notWaiting struct{}

func withoutWaiting(ctx context.Context) context.Context {
	return context.WithValue(ctx, notWaiting{}, true)
}
