package dispatch

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// offeringTime bounds how long a client that connects waits for servers that are connecting: the
// gateway states its capabilities only once.
const offeringTime = 2 * time.Second

// offering returns what the servers offer in addition to tools. It waits for servers that are
// connecting, at most for wait.
func (d *Dispatcher) offering(ctx context.Context, wait time.Duration) mcp.Offering {
	if d.cfg.Offering == nil || d.cfg.Features == nil {
		return mcp.Offering{}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := d.cfg.Offering(ctx)
	heard := d.cfg.SetLevel != nil && d.cfg.Unsubscribe != nil && d.cfg.Clean != nil
	o.Skills = o.Skills && d.cfg.LoadedSkills != nil
	o.Logging, o.Updates = o.Logging && heard, o.Updates && heard
	return o
}

// offers reports whether a method is served. A method that no server offers is not.
func (d *Dispatcher) offers(ctx context.Context, method string) bool {
	switch method {
	case "prompts/list", string(gate.GetPrompt):
		return d.offering(ctx, 0).Prompts
	case "resources/list", "resources/templates/list", string(gate.ReadResource):
		return d.offering(ctx, 0).Resources
	case mcp.MethodSkills, string(gate.GetSkill), string(gate.ReadDirectory):
		return d.offering(ctx, 0).Skills
	case string(gate.Complete):
		return d.offering(ctx, 0).Completions
	case mcp.MethodSetLevel:
		return d.offering(ctx, 0).Logging
	case string(gate.Subscribe), mcp.MethodUnsubscribe:
		return d.offering(ctx, 0).Updates
	case mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		return d.OffersTasks()
	default:
		return true
	}
}

// OffersTasks reports whether clients may make tasks of calls.
func (d *Dispatcher) OffersTasks() bool { return d.cfg.Jobs != nil && !d.terms.Load().NoTasks }

// mayBeTask reports whether a call of a client without a session may become a task.
func (d *Dispatcher) mayBeTask(ctx context.Context, c *gate.Call) bool {
	return c.Action == gate.CallTool && message.DeclaresTasks(c.Meta) && d.OffersTasks() && !d.relays(ctx, c)
}

// relays reports whether a call is one of a tool that makes calls itself: such a tool is
// no task.
func (d *Dispatcher) relays(ctx context.Context, c *gate.Call) bool {
	if d.cfg.Lookup == nil {
		return false
	}
	t, err := d.cfg.Lookup(ctx, c.Action, c.Name)
	return err == nil && t.Relay
}
