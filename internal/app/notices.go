package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/notify"
)

// reportTime is for how long one gateway has the right to report a condition. All see it within seconds.
const reportTime = time.Minute

// reports says whether this gateway reports a condition: of several that see it, the first one does. If
// that cannot be known, it does, too: a notice that comes twice is better than none.
func (a *App) reports(ctx context.Context, c background.Condition) bool {
	if a.shared.Store == nil || c.Kind == notify.Audit { // each has a log of its own
		return true
	}
	mine, err := a.shared.Lease(ctx, "notice "+c.Key, reportTime)
	return mine || err != nil
}

// conditions are what somebody should be told of, if it is so now.
func (a *App) conditions(ctx context.Context) (all []background.Condition) {
	if err := a.gateway.Operator().Healthy(); err != nil && !errors.Is(err, gateway.ErrDraining) {
		all = append(all, background.Condition{Key: "audit", Notice: notify.Notice{Kind: notify.Audit, Text: "The audit log cannot be written, and all calls are refused: " + err.Error(), Command: "wasmgate status", Link: a.page("")}})
	}
	if q := a.gateway.Approvals(); q != nil {
		for _, r := range q.Pending(ctx) {
			one := a.describe(r)
			all = append(all, background.Condition{Key: "approval " + one.ID, Notice: notify.Notice{
				Kind: notify.Approval, Text: fmt.Sprintf("%s wants to call %s.", one.Principal, one.Tool), Command: "wasmgate approvals show " + one.ID, Link: a.page("approvals"),
				ID: one.ID, Principal: one.Principal, Server: one.Server, Tool: one.Tool, Reasons: one.Reasons, Expires: one.Expires, Arguments: one.Arguments,
			}})
		}
	}
	needed := translation.Required(a.config.Load().cfg)
	for _, s := range a.addPins(a.gateway.Fleet().Status()) {
		for _, name := range s.Quarantined {
			all = append(all, background.Condition{Key: "quarantine " + s.Server + " " + name, Notice: notify.Notice{
				Kind: notify.Quarantine, Text: fmt.Sprintf("%s of server %s is new or has changed, and no one has approved it.", name, s.Server),
				Command: "wasmgate pin diff " + s.Server, Link: a.page("pins"), Server: s.Server, Tool: name,
			}})
		}
		if s.Phase == status.Faulted && slices.Contains(needed, s.Server) {
			all = append(all, background.Condition{Key: "server " + s.Server, Notice: notify.Notice{
				Kind: notify.Server, Text: fmt.Sprintf("Server %s is required and faulted: %s", s.Server, s.Error), Command: "wasmgate status " + s.Server, Link: a.page("servers"), Server: s.Server,
			}})
		}
	}
	return all
}
