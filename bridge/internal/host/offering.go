package host

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// offeringTime bounds how long a client that connects waits for servers that are
// connecting: it is told once what the gateway can do.
const offeringTime = 2 * time.Second

// offering returns what the servers offer beside tools. Of servers that are
// connecting it waits, at most for wait.
func (h *Host) offering(ctx context.Context, wait time.Duration) mcp.Offering {
	if h.cfg.Offering == nil || h.cfg.Features == nil {
		return mcp.Offering{}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := h.cfg.Offering(ctx)
	heard := h.cfg.SetLevel != nil && h.cfg.Unsubscribe != nil && h.cfg.Clean != nil
	o.Logging, o.Updates = o.Logging && heard, o.Updates && heard
	return o
}

// offers reports whether a method is served. What nobody offers is not.
func (h *Host) offers(ctx context.Context, method string) bool {
	switch method {
	case "prompts/list", string(gate.GetPrompt):
		return h.offering(ctx, 0).Prompts
	case "resources/list", "resources/templates/list", string(gate.ReadResource):
		return h.offering(ctx, 0).Resources
	case string(gate.Complete):
		return h.offering(ctx, 0).Completions
	case mcp.MethodSetLevel:
		return h.offering(ctx, 0).Logging
	case string(gate.Subscribe), mcp.MethodUnsubscribe:
		return h.offering(ctx, 0).Updates
	case mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		return h.OffersTasks()
	default:
		return true
	}
}

// OffersTasks reports whether clients may make tasks of calls.
func (h *Host) OffersTasks() bool { return h.cfg.Jobs != nil && !h.terms.Load().NoTasks }
