package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/notify"
)

// Conditions are what someone should know of, if it is so now.
func (o *Overview) Conditions(ctx context.Context) (all []background.Condition) {
	if err := o.Gateway.Operator().Healthy(); err != nil && !errors.Is(err, gateway.ErrDraining) {
		all = append(all, background.Condition{Key: "audit", Notice: notify.Notice{Kind: notify.Audit, Text: "The audit log cannot be written, and all calls are refused: " + err.Error(), Command: "wasmgate status", Link: o.Desk.Page("")}})
	}
	if q := o.Gateway.Approvals(); q != nil {
		for _, r := range q.Pending(ctx) {
			one := o.Approvals.Describe(r)
			all = append(all, background.Condition{Key: "approval " + one.ID, Notice: notify.Notice{
				Kind: notify.Approval, Text: fmt.Sprintf("%s wants to call %s.", one.Principal, one.Tool), Command: "wasmgate approvals show " + one.ID, Link: o.Desk.Page("approvals"),
				ID: one.ID, Principal: one.Principal, Server: one.Server, Tool: one.Tool, Reasons: one.Reasons, Expires: one.Expires, Arguments: one.Arguments,
			}})
		}
	}
	needed := translation.Required(o.Settings.Config())
	for _, s := range o.Pins.Describe(o.Gateway.Fleet().Status()) {
		for _, name := range s.Quarantined {
			all = append(all, background.Condition{Key: "quarantine " + s.Server + " " + name, Notice: notify.Notice{
				Kind: notify.Quarantine, Text: fmt.Sprintf("%s of server %s is new or has changed, and no one has approved it.", name, s.Server),
				Command: "wasmgate pin diff " + s.Server, Link: o.Desk.Page("pins"), Server: s.Server, Tool: name,
			}})
		}
		if s.Phase == status.Faulted && slices.Contains(needed, s.Server) {
			all = append(all, background.Condition{Key: "server " + s.Server, Notice: notify.Notice{
				Kind: notify.Server, Text: fmt.Sprintf("Server %s is required and faulted: %s", s.Server, s.Error), Command: "wasmgate status " + s.Server, Link: o.Desk.Page("servers"), Server: s.Server,
			}})
		}
	}
	return all
}
