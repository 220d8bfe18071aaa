package app

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// takeHook takes what the hook of an agent reports.
var takeHook = operation.New[hook.Request, options.HookAnswer](hook.Method)

// Ask implements [operation.Gateway].
func (a *App) Ask(ctx context.Context, name string, params, result any) error {
	return a.operations.Ask(ctx, name, params, result)
}

// table returns all operations.
func (a *App) table() operation.Table {
	t := operation.Table{}
	takeHook.Add(t, a.Hook)
	for _, part := range []interface{ Operations(operation.Table) }{
		a.Approvals, a.Callers, a.Calls, a.Desk, a.Exceptions, a.Inventory, a.Logins, a.Overview, a.Pauses, a.Pins, a.Policies, a.Sessions,
	} {
		part.Operations(t)
	}
	return t
}
